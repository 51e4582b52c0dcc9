// SPDX-License-Identifier: Apache-2.0
//
// Labels of cached objects, in little memory: a sorted list of labels, each of which is in memory
// once for all objects that have it. Nodes have tens of labels and the pods of a job the same ones,
// but for their index.
#ifndef RAILHEAD_OPERATOR_OBJECTS_LABEL_SET_H_
#define RAILHEAD_OPERATOR_OBJECTS_LABEL_SET_H_

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/shared_value.h"
#include "operator/objects/label_selector.h"

namespace railhead::op {

// Immutable; compared by content.
class LabelSet {
 public:
  using Label = std::pair<std::string, std::string>;  // key and value
  using Pool = ValuePool<Label>;

  // Visits labels in the order of their keys.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Label;
    using difference_type = std::ptrdiff_t;
    using pointer = const Label*;
    using reference = const Label&;

    Iterator() = default;
    explicit Iterator(const SharedValue<Label>* at) : at_(at) {}
    const Label& operator*() const { return **at_; }
    const Label* operator->() const { return &**at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    bool operator==(const Iterator&) const = default;

   private:
    const SharedValue<Label>* at_ = nullptr;
  };
  using const_iterator = Iterator;
  using value_type = Label;

  LabelSet() = default;
  LabelSet(const Labels& labels);  // NOLINT: as convenient as the map
  LabelSet(std::initializer_list<Labels::value_type> labels) : LabelSet(Labels(labels)) {}

  // Returns the value; null if there is no such label.
  const std::string* Find(absl::string_view key) const;
  Labels ToMap() const { return {begin(), end()}; }
  // Returns the same labels, in the memory of those in the pool.
  LabelSet SharedIn(Pool& pool) const;

  bool empty() const { return labels_.empty(); }
  size_t size() const { return labels_.size(); }
  const_iterator begin() const { return const_iterator(labels_.data()); }
  const_iterator end() const { return const_iterator(labels_.data() + labels_.size()); }

  bool operator==(const LabelSet&) const = default;

 private:
  std::vector<SharedValue<Label>> labels_;  // by key
};

// Returns whether the selector matches these labels.
bool Matches(const LabelSelector& selector, const LabelSet& labels);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_OBJECTS_LABEL_SET_H_
