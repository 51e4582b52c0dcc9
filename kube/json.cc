// SPDX-License-Identifier: Apache-2.0
#include "kube/json.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace railhead::kube {
namespace {

// Heap bytes of a tree's parts in glibc: a separate map or vector, a map's node, an element with
// the spare room of its vector, and a string.
constexpr size_t kMapBytes = 64;
constexpr size_t kVectorBytes = 32;
constexpr size_t kNodeBytes = 96;
constexpr size_t kElementBytes = 48;
constexpr size_t kStringBytes = 80;

struct Shape {
  int depth = 0;  // the greatest
  size_t tree_bytes = kElementBytes;
};

// Counts what stands outside of strings.
Shape ShapeOf(absl::string_view text) {
  Shape shape;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      ++shape.tree_bytes;
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    switch (c) {
      case '"':
        in_string = true;
        shape.tree_bytes += kStringBytes;
        break;
      case '{':
      case '[':
        shape.depth = std::max(shape.depth, ++depth);
        shape.tree_bytes += c == '{' ? kMapBytes : kVectorBytes + kElementBytes;
        break;
      case '}':
      case ']':
        --depth;
        break;
      case ':':
        shape.tree_bytes += kNodeBytes;
        break;
      case ',':
        shape.tree_bytes += kElementBytes;
        break;
      default:
        break;
    }
  }
  return shape;
}

absl::StatusOr<Json> Parse(absl::string_view text, const Json::parser_callback_t& callback) {
  // The parser itself is iterative; only the depth of its result can hurt.
  if (ShapeOf(text).depth > kMaxJsonDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("JSON nests deeper than ", kMaxJsonDepth, " levels"));
  }
  Json value = Json::parse(text.begin(), text.end(), callback, /*allow_exceptions=*/false);
  if (value.is_discarded()) {
    return absl::InvalidArgumentError(absl::StrCat("not valid JSON (", text.size(), " bytes)"));
  }
  return value;
}

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text) { return Parse(text, nullptr); }

absl::StatusOr<Json> ParseJsonList(absl::string_view text, absl::string_view list,
                                   absl::FunctionRef<absl::Status(const Json& object)> visit) {
  absl::Status visited;
  bool in_list = false;
  absl::StatusOr<Json> rest = Parse(text, [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key && depth == 1) {
      in_list = value.get_ref<const std::string&>() == list;
    }
    if (event != Json::parse_event_t::object_end || depth != 2 || !in_list) return true;
    if (visited.ok()) visited = visit(value);
    return false;  // leaves it out
  });
  if (!visited.ok()) return visited;
  return rest;
}

size_t JsonTreeBytes(absl::string_view text) { return ShapeOf(text).tree_bytes; }

std::string DumpJson(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Json* Find(const Json& object, absl::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(std::string(key));
  return it == object.end() ? nullptr : &*it;
}

const Json* FindPath(const Json& object, std::initializer_list<absl::string_view> path) {
  const Json* at = &object;
  for (const absl::string_view key : path) {
    at = Find(*at, key);
    if (at == nullptr) return nullptr;
  }
  return at;
}

std::string StringAt(const Json& object, std::initializer_list<absl::string_view> path) {
  const Json* value = FindPath(object, path);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::string PointerToken(absl::string_view key) {
  return absl::StrReplaceAll(key, {{"~", "~0"}, {"/", "~1"}});
}

}  // namespace railhead::kube
