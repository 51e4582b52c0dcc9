// SPDX-License-Identifier: Apache-2.0
//
// YAML parser: a tree of values with line numbers. Used by YamlReader.
#ifndef RAILHEAD_BASE_YAML_DOCUMENT_H_
#define RAILHEAD_BASE_YAML_DOCUMENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead {

// Stored in few large arrays: a fabric of 16384 nodes has a quarter of a million values, and a tree
// of small objects would need more memory than the results.
class YamlDocument {
 public:
  enum class Type : uint8_t { kNull, kScalar, kList, kMap };

 private:
  struct Item {
    Type type = Type::kNull;
    bool quoted = false;
    int32_t line = 1;
    uint32_t first = 0;  // into text_ or children_
    uint32_t count = 0;
  };

 public:
  // A value, valid for as long as the document. Cheap to copy.
  class Value {
   public:
    Type type() const { return item().type; }
    int line() const { return item().line; }       // from 1
    bool quoted() const { return item().quoted; }  // quoted scalars are never numbers or booleans
    size_t size() const { return type() == Type::kMap ? item().count / 2 : item().count; }
    absl::string_view text() const;  // of a scalar
    Value at(size_t i) const;        // of a list
    Value key(size_t i) const;       // of a map, in the order of the text
    Value value(size_t i) const;

   private:
    friend class YamlDocument;
    Value(const YamlDocument* document, uint32_t index) : document_(document), index_(index) {}
    const Item& item() const { return document_->items_[index_]; }
    Value child(size_t i) const;

    const YamlDocument* document_;
    uint32_t index_;
  };

  // Parses one document; `source` is its name in messages. InvalidArgument names the line of a
  // syntax error, a control character, a second document or a recursive value; also for more than
  // kMaxText bytes. Aliases (*) are not copied: readers that follow them must limit the number of
  // visited values.
  static absl::StatusOr<YamlDocument> Parse(absl::string_view text, absl::string_view source);
  // Parses all documents of a text; skips empty ones. Errors as above.
  static absl::StatusOr<std::vector<YamlDocument>> ParseAll(absl::string_view text,
                                                            absl::string_view source);

  Value root() const { return {this, root_}; }

  static constexpr size_t kMaxText = size_t{16} << 20;

 private:
  friend class YamlTreeBuilder;
  std::vector<Item> items_;
  std::vector<uint32_t> children_;
  std::string text_;
  uint32_t root_ = 0;
};

}  // namespace railhead

#endif  // RAILHEAD_BASE_YAML_DOCUMENT_H_
