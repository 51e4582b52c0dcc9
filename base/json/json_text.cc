// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/document_error.h"
#include "base/printable_text.h"

namespace railhead {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxName = 253;  // what Kubernetes allows for a node's

// Position of the parser. It takes its input by copies of an iterator, which all lead here.
struct Cursor {
  absl::string_view text;
  size_t at = 0;
  int line = 1;
};

class CursorIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  explicit CursorIterator(Cursor* cursor) : cursor_(cursor) {}
  reference operator*() const { return cursor_->text[cursor_->at]; }
  CursorIterator& operator++() {
    if (cursor_->text[cursor_->at++] == '\n') ++cursor_->line;
    return *this;
  }
  // Only ever compared with the end, which has no cursor.
  bool operator==(const CursorIterator& other) const {
    return (other.cursor_ == nullptr ? cursor_ : other.cursor_)->at >=
           (other.cursor_ == nullptr ? cursor_ : other.cursor_)->text.size();
  }
  bool operator!=(const CursorIterator& other) const { return !(*this == other); }

 private:
  Cursor* cursor_;
};

// Builds the tree from what the parser meets.
class TreeBuilder {
 public:
  using Json = nlohmann::json;

  TreeBuilder(const Cursor* cursor, const std::vector<absl::string_view>* skipped)
      : cursor_(*cursor), skipped_(*skipped) {}

  JsonValue Take() { return std::move(root_); }
  const std::string& error() const { return error_; }

  bool null() { return Add(JsonValue::Type::kNull, ""); }
  bool boolean(bool value) { return Add(JsonValue::Type::kBoolean, value ? "true" : "false"); }
  bool number_integer(int64_t value) { return Add(JsonValue::Type::kNumber, absl::StrCat(value)); }
  bool number_unsigned(uint64_t value) {
    return Add(JsonValue::Type::kNumber, absl::StrCat(value));
  }
  bool number_float(double /*value*/, const std::string& text) {
    return Add(JsonValue::Type::kNumber, text);
  }
  bool string(std::string& text) { return Add(JsonValue::Type::kText, std::move(text)); }
  static bool binary(Json::binary_t& /*bytes*/) { return false; }
  bool start_object(size_t /*size*/) { return Open(JsonValue::Type::kObject); }
  bool start_array(size_t /*size*/) { return Open(JsonValue::Type::kList); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool key(std::string& name) {
    key_ = std::move(name);
    if (dropping_ == 0 && std::find(skipped_.begin(), skipped_.end(), key_) != skipped_.end()) {
      drop_next_ = true;
    }
    return true;
  }
  bool parse_error(size_t /*at*/, const std::string& token, const Json::exception& /*error*/) {
    if (error_.empty()) {
      error_ = absl::StrCat("is no JSON at ", QuotedText(token), "; is the text complete?");
    }
    return false;
  }

 private:
  bool Add(JsonValue::Type type, std::string text) {
    if (dropping_ > 0) return true;
    if (std::exchange(drop_next_, false)) return true;
    Put(type).text = std::move(text);
    return true;
  }

  JsonValue& Put(JsonValue::Type type) {
    JsonValue value;
    value.type = type;
    value.line = cursor_.line;
    if (open_.empty()) {
      root_ = std::move(value);
      return root_;
    }
    std::vector<JsonValue::Field>& fields = open_.back()->fields;
    const bool named = open_.back()->Is(JsonValue::Type::kObject);
    fields.push_back({named ? std::move(key_) : std::string(), std::move(value)});
    return fields.back().value;
  }

  bool Open(JsonValue::Type type) {
    if (++depth_ > kMaxDepth) {
      error_ = absl::StrCat("nests deeper than ", kMaxDepth, " levels");
      return false;
    }
    if (dropping_ > 0 || std::exchange(drop_next_, false)) {
      ++dropping_;
      return true;
    }
    // Stays where it is: what holds it gets nothing more before this is closed.
    open_.push_back(&Put(type));
    return true;
  }

  bool Close() {
    --depth_;
    if (dropping_ > 0) {
      --dropping_;
    } else {
      open_.pop_back();
    }
    return true;
  }

  const Cursor& cursor_;
  const std::vector<absl::string_view>& skipped_;
  JsonValue root_;
  std::vector<JsonValue*> open_;
  std::string key_;
  std::string error_;
  size_t depth_ = 0;
  size_t dropping_ = 0;
  bool drop_next_ = false;
};

void SkipSpace(Cursor& cursor) {
  while (cursor.at < cursor.text.size() &&
         absl::string_view(" \t\r\n").find(cursor.text[cursor.at]) != absl::string_view::npos) {
    if (cursor.text[cursor.at++] == '\n') ++cursor.line;
  }
}

std::string Kind(JsonValue::Type type) {
  switch (type) {
    case JsonValue::Type::kNull:
      return "null";
    case JsonValue::Type::kBoolean:
      return "true or false";
    case JsonValue::Type::kNumber:
      return "a number";
    case JsonValue::Type::kText:
      return "a text";
    case JsonValue::Type::kList:
      return "a list";
    case JsonValue::Type::kObject:
      break;
  }
  return "an object";
}

}  // namespace

const JsonValue* JsonValue::Find(absl::string_view name) const {
  if (type != Type::kObject) return nullptr;
  for (const auto& [key, value] : fields) {
    if (key == name) return &value;
  }
  return nullptr;
}

absl::StatusOr<std::vector<JsonValue>> ParseJsonTexts(
    absl::string_view text, absl::string_view source,
    const std::vector<absl::string_view>& skipped) {
  if (text.size() > kMaxJsonText) {
    return DocumentError(
        source, 0, "", absl::StrCat("has more than the ", kMaxJsonText, " bytes that are allowed"));
  }
  std::vector<JsonValue> values;
  Cursor cursor{text};
  for (SkipSpace(cursor); cursor.at < text.size(); SkipSpace(cursor)) {
    TreeBuilder builder(&cursor, &skipped);
    // Not strict: what follows is the next text.
    if (!nlohmann::json::sax_parse(CursorIterator(&cursor), CursorIterator(nullptr), &builder,
                                   nlohmann::json::input_format_t::json, false)) {
      return DocumentError(source, cursor.line, "", builder.error());
    }
    values.push_back(builder.Take());
    if (values.back().fields.empty()) {
      return DocumentError(source, values.back().line, "", "is not a JSON object or list");
    }
  }
  return values;
}

void JsonReader::Fail(const JsonValue& value, absl::string_view path, absl::string_view what) {
  if (status_.ok()) status_ = DocumentError(source_, value.line, path, what);
}

const JsonValue* JsonReader::Need(const JsonValue& object, const std::string& path,
                                  absl::string_view name, JsonValue::Type type) {
  const JsonValue* value = Find(object, path, name, type);
  if (value == nullptr) {
    Fail(object, absl::StrCat(path, ".", name), absl::StrCat("is missing; it is ", Kind(type)));
  }
  return value;
}

const JsonValue* JsonReader::Find(const JsonValue& object, const std::string& path,
                                  absl::string_view name, JsonValue::Type type) {
  const JsonValue* value = object.Find(name);
  if (value == nullptr || value->Is(JsonValue::Type::kNull)) return nullptr;
  if (value->Is(type)) return value;
  Fail(*value, absl::StrCat(path, ".", name),
       absl::StrCat("must be ", Kind(type), ", not ", Kind(value->type)));
  return nullptr;
}

std::string JsonReader::Name(const JsonValue& value, const std::string& path) {
  if (!value.Is(JsonValue::Type::kText) || value.text.empty() || value.text.size() > kMaxName) {
    Fail(value, path, absl::StrCat("must be a text of 1 to ", kMaxName, " bytes"));
  }
  // Only the odd text itself is spoilt: one in a switch's description must not hide a fabric.
  return PrintableText(value.text, kMaxName);
}

int JsonReader::Integer(const JsonValue& value, const std::string& path, int low, int high) {
  int number = 0;
  if (!value.Is(JsonValue::Type::kNumber) || !absl::SimpleAtoi(value.text, &number) ||
      number < low || number > high) {
    Fail(value, path, absl::StrCat("must be a whole number from ", low, " to ", high));
    return low;
  }
  return number;
}

}  // namespace railhead
