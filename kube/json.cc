// SPDX-License-Identifier: Apache-2.0
#include "kube/json.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace railhead::kube {
namespace {

// The parser itself is iterative; only the depth of its result can hurt. Counting brackets outside
// strings before parsing bounds it without building anything.
bool NestsTooDeep(absl::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxJsonDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text) {
  if (NestsTooDeep(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat("JSON nests deeper than ", kMaxJsonDepth, " levels"));
  }
  Json value = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) {
    return absl::InvalidArgumentError(absl::StrCat("not valid JSON (", text.size(), " bytes)"));
  }
  return value;
}

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
