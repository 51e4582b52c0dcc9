// SPDX-License-Identifier: Apache-2.0
//
// Values that many objects have alike, such as what the pods of a gang ask for: each different
// value is in memory once. Used for what a replica keeps of pods.
#ifndef RAILHEAD_OPERATOR_SHARED_VALUE_H_
#define RAILHEAD_OPERATOR_SHARED_VALUE_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <utility>

namespace railhead::op {

// A value that does not change, and is cheap to copy. Compared by value.
template <typename T>
class SharedValue {
 public:
  SharedValue() = default;                                                       // T()
  SharedValue(T value) : value_(std::make_shared<const T>(std::move(value))) {}  // NOLINT

  const T& operator*() const {
    static const T kDefault = {};
    return value_ == nullptr ? kDefault : *value_;
  }
  const T* operator->() const { return &**this; }
  // No other object has the same place in memory.
  bool IsAlone() const { return value_.use_count() <= 1; }

  friend bool operator==(const SharedValue& a, const SharedValue& b) {
    return a.value_ == b.value_ || *a == *b;
  }
  friend bool operator<(const SharedValue& a, const SharedValue& b) { return *a < *b; }

 private:
  std::shared_ptr<const T> value_;
};

// Not thread-safe; the values that it gives are.
template <typename T>
class ValuePool {
 public:
  // Returns the value that is kept for all that are equal to this one. Those that nothing else has
  // any more are let go when there are twice as many as there were the last time.
  SharedValue<T> Share(const SharedValue<T>& value) {
    if (values_.size() >= tidy_at_) {
      std::erase_if(values_, [](const SharedValue<T>& kept) { return kept.IsAlone(); });
      tidy_at_ = std::max<size_t>(64, 2 * values_.size());
    }
    return *values_.insert(value).first;
  }
  size_t size() const { return values_.size(); }

 private:
  std::set<SharedValue<T>> values_;
  size_t tidy_at_ = 64;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_SHARED_VALUE_H_
