// SPDX-License-Identifier: Apache-2.0
//
// Reader of YAML documents with known fields. Errors name file, line, field and fix. Used by all
// configuration readers.
#ifndef RAILHEAD_BASE_YAML_READER_H_
#define RAILHEAD_BASE_YAML_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/yaml/document.h"

namespace railhead {

// Keeps the first error; later reads return defaults, so callers check status() once at the end.
class YamlReader {
 public:
  using Value = YamlDocument::Value;
  using Names = std::vector<std::string>;

  // Fields of a mapping, in document order.
  class Fields {
   public:
    std::optional<Value> Find(absl::string_view name) const;
    const std::vector<std::pair<absl::string_view, Value>>& all() const { return fields_; }

   private:
    friend class YamlReader;
    std::vector<std::pair<absl::string_view, Value>> fields_;
  };

  // `source` is the name of the document in messages; it must outlive the reader. More than
  // `max_values` values, counting those of an alias each time, are an error.
  explicit YamlReader(absl::string_view source, int64_t max_values = 4'000'000)
      : source_(source), max_values_(max_values) {}

  const absl::Status& status() const { return status_; }
  void Fail(Value value, absl::string_view path, absl::string_view what);

  // Reads a mapping. Rejects unknown, empty and duplicate fields.
  Fields Mapping(Value value, const std::string& path, const Names& known);
  // Reads a mapping whose keys are the user's names.
  Fields FreeMapping(Value value, const std::string& path);
  // Returns a required field, or nullopt after recording an error. `hint` is the fix.
  std::optional<Value> Need(const Fields& fields, Value mapping, const std::string& path,
                            absl::string_view name, absl::string_view hint);

  // Calls `read` with each entry of a list, and with its path.
  void ForEach(Value value, const std::string& path,
               absl::FunctionRef<void(Value, const std::string&)> read);
  // ForEach for a list that must not be empty.
  void ForEachOfSome(Value value, const std::string& path,
                     absl::FunctionRef<void(Value, const std::string&)> read);

  // Reads text: quoted, or neither a number nor a boolean.
  std::string AnyText(Value value, const std::string& path);
  // AnyText that is not empty and has at most 253 bytes.
  std::string Text(Value value, const std::string& path);
  // Reads a name: text, or a number as written (racks are often numbered).
  std::string Name(Value value, const std::string& path);
  std::string OneOf(Value value, const std::string& path, const Names& known);
  int Integer(Value value, const std::string& path, int low, int high, absl::string_view hint);
  bool Boolean(Value value, const std::string& path);
  // Reads a finite number above zero.
  double Positive(Value value, const std::string& path, absl::string_view hint);

  // Checks apiVersion railhead.io/v1alpha1 and `kind`, and returns metadata.name.
  std::string Header(const Fields& fields, Value root, absl::string_view kind);

 private:
  bool Visit(Value value, absl::string_view path);
  std::string Scalar(Value value, const std::string& path);

  absl::string_view source_;
  int64_t max_values_;
  absl::Status status_;
  int64_t visited_ = 0;
};

// Returns the value as shown in messages: "a list", 7, "7".
std::string ShownValue(YamlDocument::Value value);

}  // namespace railhead

#endif  // RAILHEAD_BASE_YAML_READER_H_
