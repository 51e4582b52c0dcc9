// SPDX-License-Identifier: Apache-2.0
//
// Lists that many values share: the pods of a job have equal containers, and mostly equal rails.
// Each distinct list is in memory once.
#ifndef RAILHEAD_OPERATOR_VERDICT_SHARED_LIST_H_
#define RAILHEAD_OPERATOR_VERDICT_SHARED_LIST_H_

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace railhead::op::verdict {

// Immutable list, cheap to copy. Compared by content.
template <typename T>
class SharedList {
 public:
  SharedList() : SharedList(std::vector<T>()) {}
  SharedList(std::initializer_list<T> items) : SharedList(std::vector<T>(items)) {}
  explicit SharedList(std::vector<T> items)
      : items_(items.empty() ? nullptr : std::make_shared<const std::vector<T>>(std::move(items))) {
  }

  const T* begin() const { return items_ == nullptr ? nullptr : items_->data(); }
  const T* end() const { return begin() + size(); }
  size_t size() const { return items_ == nullptr ? 0 : items_->size(); }
  bool empty() const { return size() == 0; }
  const T& front() const { return items_->front(); }
  const T& operator[](size_t at) const { return (*items_)[at]; }
  // Returns a copy to modify.
  std::vector<T> Copy() const { return {begin(), end()}; }
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

// Deduplicates lists. Not thread-safe; the returned lists are.
template <typename T>
class ListPool {
 public:
  // Returns the stored list that is equal to this one. Unused lists are freed whenever the number
  // has doubled since the last cleanup.
  SharedList<T> Share(const SharedList<T>& list) {
    if (lists_.size() >= tidy_at_) {
      std::erase_if(lists_, [](const SharedList<T>& kept) { return kept.IsAlone(); });
      tidy_at_ = std::max<size_t>(64, 2 * lists_.size());
    }
    return *lists_.insert(list).first;
  }
  size_t size() const { return lists_.size(); }

 private:
  std::set<SharedList<T>> lists_;
  size_t tidy_at_ = 64;
};

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_SHARED_LIST_H_
