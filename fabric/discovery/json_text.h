// SPDX-License-Identifier: Apache-2.0
//
// JSON from outside as a tree of values that know their line, so that a message can name it.
#ifndef RAILHEAD_FABRIC_DISCOVERY_JSON_TEXT_H_
#define RAILHEAD_FABRIC_DISCOVERY_JSON_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::fabric {

struct JsonValue {
  enum class Type { kNull, kBoolean, kNumber, kText, kList, kObject };
  struct Field;

  Type type = Type::kNull;
  int line = 1;
  std::string text;           // of a text; of others as it is written
  std::vector<Field> fields;  // of an object; of a list without names

  bool Is(Type wanted) const { return type == wanted; }
  // The field of this name, or none: also of what is no object.
  const JsonValue* Find(absl::string_view name) const;
};

struct JsonValue::Field {
  std::string name;
  JsonValue value;
};

// Reads all texts that stand one after the other, as programs print them. What stands in fields of
// the names `skipped` is checked and not kept: it can be nine tenths of a list of nodes.
// InvalidArgument says source and line: for what is no JSON or no UTF-8, nests deeper than 64, or
// has more than 256 MiB.
absl::StatusOr<std::vector<JsonValue>> ParseJsonTexts(
    absl::string_view text, absl::string_view source,
    const std::vector<absl::string_view>& skipped = {});

// Remembers the first thing that is wrong; what is read after that does not count.
class JsonReader {
 public:
  // `source` is what the text is called; it must outlive the reader.
  explicit JsonReader(absl::string_view source) : source_(source) {}

  absl::string_view source() const { return source_; }
  const absl::Status& status() const { return status_; }
  void Fail(const JsonValue& value, absl::string_view path, absl::string_view what);

  // The field, or nothing, with the error remembered.
  const JsonValue* Need(const JsonValue& object, const std::string& path, absl::string_view name,
                        JsonValue::Type type);
  // The field where it is there: not of another type, and not null.
  const JsonValue* Find(const JsonValue& object, const std::string& path, absl::string_view name,
                        JsonValue::Type type);
  // A text of 1 to 253 bytes as a name, with escapes for characters that are not printable.
  std::string Name(const JsonValue& value, const std::string& path);
  int Integer(const JsonValue& value, const std::string& path, int low, int high);

 private:
  absl::string_view source_;
  absl::Status status_;
};

inline constexpr size_t kMaxJsonText = size_t{256} << 20;

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_JSON_TEXT_H_
