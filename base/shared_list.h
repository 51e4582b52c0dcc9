// SPDX-License-Identifier: Apache-2.0
//
// Lists that many values share: the pods of a job have equal containers, and mostly equal rails.
// Each distinct list is in memory once.
#ifndef RAILHEAD_BASE_SHARED_LIST_H_
#define RAILHEAD_BASE_SHARED_LIST_H_

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "base/shared_value.h"

namespace railhead {

// Immutable list, cheap to copy. Compared by content.
template <typename T>
class SharedList {
 public:
  SharedList() : SharedList(std::vector<T>()) {}
  SharedList(std::initializer_list<T> items) : SharedList(std::vector<T>(items)) {}
  SharedList(std::vector<T> items)  // NOLINT: as convenient as the vector
      : items_(items.empty() ? nullptr : std::make_shared<const std::vector<T>>(std::move(items))) {
  }

  const T* begin() const { return items_ == nullptr ? nullptr : items_->data(); }
  const T* end() const { return begin() + size(); }
  size_t size() const { return items_ == nullptr ? 0 : items_->size(); }
  bool empty() const { return size() == 0; }
  const T* data() const { return begin(); }
  const T& front() const { return items_->front(); }
  const T& back() const { return items_->back(); }
  const T& operator[](size_t at) const { return (*items_)[at]; }
  // Replaces the list by a changed copy, which other objects do not share.
  template <typename Edit>
  void Change(Edit edit) {
    std::vector<T> items = {begin(), end()};
    edit(items);
    *this = SharedList(std::move(items));
  }
  // Returns true if no other list shares this memory.
  bool IsAlone() const { return items_.use_count() == 1; }
  // Returns the approximate number of lists that share this memory; other threads may change it.
  size_t sharers() const { return static_cast<size_t>(items_.use_count()); }

  friend bool operator==(const SharedList& a, const SharedList& b) {
    return a.items_ == b.items_ || std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend bool operator<(const SharedList& a, const SharedList& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::shared_ptr<const std::vector<T>> items_;  // null: none
};

template <typename T>
using ListPool = Pool<SharedList<T>>;

}  // namespace railhead

#endif  // RAILHEAD_BASE_SHARED_LIST_H_
