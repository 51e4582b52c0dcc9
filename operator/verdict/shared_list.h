// SPDX-License-Identifier: Apache-2.0
//
// Lists that many values have alike: the pods of a job have the same containers, and mostly the
// same rails. Each different list is in memory once.
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

// A list that does not change, and is cheap to copy. Compared by what is in it.
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
  // For who changes it into another list.
  std::vector<T> Copy() const { return {begin(), end()}; }
  // No other list has the same place in memory.
  bool IsAlone() const { return items_.use_count() == 1; }
  // How many lists have it, roughly: other threads may be making or dropping some.
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

// Not thread-safe; the lists that it gives are.
template <typename T>
class ListPool {
 public:
  // The list that is kept for all that are equal to this one. Those that nobody has any more are
  // let go when there are twice as many as there were the last time.
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
