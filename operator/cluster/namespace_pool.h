// SPDX-License-Identifier: Apache-2.0
//
// Values that many pods share, such as rules about nodes, each in memory once (ValuePool), with a
// bound on the sum of large ones by namespace: users of one namespace cannot use up the memory.
#ifndef RAILHEAD_OPERATOR_CLUSTER_NAMESPACE_POOL_H_
#define RAILHEAD_OPERATOR_CLUSTER_NAMESPACE_POOL_H_

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "base/shared_value.h"
#include "operator/cluster/fair_share.h"

namespace railhead::op {

// Not thread-safe; the returned values are.
template <typename T>
class NamespacePool {
 public:
  // Bytes of a value that do not count: about as many as a pod takes anyway.
  static constexpr size_t kFree = 2048;

  explicit NamespacePool(const FairShare& share) : share_(share) {}

  // Returns the stored value that is equal to this one, of a pod in namespace `space`; nullopt if
  // it is new and the large values of the namespace take too much. `bytes`: size of the value.
  std::optional<SharedValue<T>> Share(const SharedValue<T>& value, const std::string& space,
                                      size_t bytes) {
    if (value == SharedValue<T>()) return SharedValue<T>();
    if (const auto stored = values_.find(value); stored != values_.end()) return stored->first;
    if (values_.size() >= tidy_at_) Tidy();
    const size_t counts = bytes > kFree ? bytes - kFree : 0;
    if (counts > 0 && !Allows(space, counts)) {
      Tidy();
      if (!Allows(space, counts)) return std::nullopt;
    }
    if (counts > 0) used_[space] += counts;
    all_ += counts;
    values_.emplace(value, Holder{counts > 0 ? space : "", counts});
    return value;
  }

 private:
  struct Holder {
    std::string space;  // that the value counts for; empty: none
    size_t bytes = 0;
  };

  bool Allows(const std::string& space, size_t more) const {
    const auto own = used_.find(space);
    return share_.Allows(all_, own == used_.end() ? 0 : own->second, more);
  }

  // Frees unused values.
  void Tidy() {
    for (auto at = values_.begin(); at != values_.end();) {
      if (!at->first.IsAlone()) {
        ++at;
        continue;
      }
      all_ -= at->second.bytes;
      if (const auto used = used_.find(at->second.space); used != used_.end()) {
        used->second -= at->second.bytes;
        if (used->second == 0) used_.erase(used);
      }
      at = values_.erase(at);
    }
    tidy_at_ = std::max<size_t>(64, 2 * values_.size());
  }

  const FairShare share_;
  std::map<SharedValue<T>, Holder> values_;
  std::map<std::string, size_t> used_;  // by namespace
  size_t all_ = 0;
  size_t tidy_at_ = 64;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CLUSTER_NAMESPACE_POOL_H_
