// SPDX-License-Identifier: Apache-2.0
//
// Values that many objects share, such as the resources that a gang's pods request. Each distinct
// value is in memory once. Used for cached nodes and pods.
#ifndef RAILHEAD_BASE_SHARED_VALUE_H_
#define RAILHEAD_BASE_SHARED_VALUE_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <utility>

namespace railhead {

// Immutable value, cheap to copy. Compared by value.
template <typename T>
class SharedValue {
 public:
  SharedValue() = default;  // T(), without allocated memory
  SharedValue(T value)      // NOLINT: as convenient as the value
      : value_(value == T() ? nullptr : std::make_shared<const T>(std::move(value))) {}

  const T& operator*() const {
    static const T kDefault = {};
    return value_ == nullptr ? kDefault : *value_;
  }
  const T* operator->() const { return &**this; }
  // Replaces the value by a changed copy, which other objects do not share.
  template <typename Edit>
  void Change(Edit edit) {
    T copy = **this;
    edit(copy);
    *this = SharedValue(std::move(copy));
  }
  // Returns true if no other object shares this memory.
  bool IsAlone() const { return value_.use_count() <= 1; }

  friend bool operator==(const SharedValue& a, const SharedValue& b) {
    return a.value_ == b.value_ || *a == *b;
  }
  friend bool operator<(const SharedValue& a, const SharedValue& b) { return *a < *b; }

 private:
  std::shared_ptr<const T> value_;
};

// Deduplicates values of a type that shares its memory, such as SharedValue. Not thread-safe; the
// returned values are.
template <typename Shared>
class Pool {
 public:
  // Returns the stored value that is equal to this one. Unused values are freed whenever the number
  // has doubled since the last cleanup.
  Shared Share(const Shared& value) {
    if (value == Shared()) return Shared();
    if (values_.size() >= tidy_at_) {
      std::erase_if(values_, [](const Shared& kept) { return kept.IsAlone(); });
      tidy_at_ = std::max<size_t>(64, 2 * values_.size());
    }
    return *values_.insert(value).first;
  }
  size_t size() const { return values_.size(); }

 private:
  std::set<Shared> values_;
  size_t tidy_at_ = 64;
};

template <typename T>
using ValuePool = Pool<SharedValue<T>>;

}  // namespace railhead

#endif  // RAILHEAD_BASE_SHARED_VALUE_H_
