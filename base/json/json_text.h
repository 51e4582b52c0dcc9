// SPDX-License-Identifier: Apache-2.0
//
// Parser of untrusted JSON: a tree of values with line numbers for messages. Used by the readers of
// sources.
#ifndef RAILHEAD_BASE_JSON_JSON_TEXT_H_
#define RAILHEAD_BASE_JSON_JSON_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead {

struct JsonValue {
  enum class Type { kNull, kBoolean, kNumber, kText, kList, kObject };
  struct Field;

  Type type = Type::kNull;
  int line = 1;
  std::string text;           // of a text; of others, as written
  std::vector<Field> fields;  // of an object; of a list, without names

  bool Is(Type wanted) const { return type == wanted; }
  // Returns the field of this name, or null; also for values that are not objects.
  const JsonValue* Find(absl::string_view name) const;
};

struct JsonValue::Field {
  std::string name;
  JsonValue value;
};

// Parses consecutive texts, as programs print them. Values of fields in `skipped` are checked but
// not stored: they can be nine tenths of a list of nodes. InvalidArgument gives source and line:
// for invalid JSON or UTF-8, nesting deeper than 64, or more than 256 MiB.
absl::StatusOr<std::vector<JsonValue>> ParseJsonTexts(
    absl::string_view text, absl::string_view source,
    const std::vector<absl::string_view>& skipped = {});

// Reads fields and keeps the first error; later reads return defaults.
class JsonReader {
 public:
  // `source` is the name of the text; it must outlive the reader.
  explicit JsonReader(absl::string_view source) : source_(source) {}

  absl::string_view source() const { return source_; }
  const absl::Status& status() const { return status_; }
  void Fail(const JsonValue& value, absl::string_view path, absl::string_view what);

  // Returns a required field, or null after recording an error.
  const JsonValue* Need(const JsonValue& object, const std::string& path, absl::string_view name,
                        JsonValue::Type type);
  // Returns an optional field; null if absent. Another type or null is an error.
  const JsonValue* Find(const JsonValue& object, const std::string& path, absl::string_view name,
                        JsonValue::Type type);
  // Reads a name of 1 to 253 bytes; escapes characters that are not printable.
  std::string Name(const JsonValue& value, const std::string& path);
  int Integer(const JsonValue& value, const std::string& path, int low, int high);

 private:
  absl::string_view source_;
  absl::Status status_;
};

inline constexpr size_t kMaxJsonText = size_t{256} << 20;

}  // namespace railhead

#endif  // RAILHEAD_BASE_JSON_JSON_TEXT_H_
