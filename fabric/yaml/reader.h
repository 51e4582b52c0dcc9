// SPDX-License-Identifier: Apache-2.0
//
// Reading a document whose fields are known, with messages that say file, line, field and remedy.
#ifndef RAILHEAD_FABRIC_YAML_READER_H_
#define RAILHEAD_FABRIC_YAML_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "fabric/yaml/document.h"

namespace railhead::fabric {

// Remembers the first thing that is wrong; what is read after that does not count, so that callers
// need not ask at each step.
class YamlReader {
 public:
  using Value = YamlDocument::Value;
  using Names = std::vector<std::string>;

  // The fields of a mapping, in the order of the text.
  class Fields {
   public:
    std::optional<Value> Find(absl::string_view name) const;
    const std::vector<std::pair<absl::string_view, Value>>& all() const { return fields_; }

   private:
    friend class YamlReader;
    std::vector<std::pair<absl::string_view, Value>> fields_;
  };

  // `source` is what the document is called; it must outlive the reader.
  explicit YamlReader(absl::string_view source) : source_(source) {}

  const absl::Status& status() const { return status_; }
  void Fail(Value value, absl::string_view path, absl::string_view what);

  // The fields of `value`, none of them unknown, empty or there twice.
  Fields Mapping(Value value, const std::string& path, const Names& known);
  // The same for a mapping whose keys are names of the user's.
  Fields FreeMapping(Value value, const std::string& path);
  // A field that must be there, or nothing, with the error remembered. `hint` says what to write.
  std::optional<Value> Need(const Fields& fields, Value mapping, const std::string& path,
                            absl::string_view name, absl::string_view hint);

  void ForEach(Value value, const std::string& path,
               absl::FunctionRef<void(Value, const std::string&)> read);

  // A scalar that is text: in quotes, or no number and no boolean. Not empty.
  std::string Text(Value value, const std::string& path);
  // A name: text, or a number, taken as it is written (racks are often numbered).
  std::string Name(Value value, const std::string& path);
  std::string OneOf(Value value, const std::string& path, const Names& known);
  int Integer(Value value, const std::string& path, int low, int high, absl::string_view hint);
  // A finite number above zero.
  double Positive(Value value, const std::string& path, absl::string_view hint);

  // apiVersion railhead.io/v1alpha1, this kind, and metadata.name, which it returns.
  std::string Header(const Fields& fields, Value root, absl::string_view kind);

 private:
  bool Visit(Value value, absl::string_view path);

  absl::string_view source_;
  absl::Status status_;
  int64_t visited_ = 0;
};

// "a list", 7, "7": what stands there, as a message says it.
std::string ShownValue(YamlDocument::Value value);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_YAML_READER_H_
