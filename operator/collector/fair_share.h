// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_COLLECTOR_FAIR_SHARE_H_
#define RAILHEAD_OPERATOR_COLLECTOR_FAIR_SHARE_H_

#include <cstddef>

namespace railhead::op {

// How namespaces share what there is for a cluster: whoever has little gets some, whatever others
// have taken.
struct FairShare {
  size_t most = 0;         // of all together
  size_t most_of_one = 0;  // of one namespace
  size_t reserve = 0;      // the last of all: for those that have no more than `small`
  size_t small = 0;

  // Whether a namespace that has `own` of the `all` that are taken may take `more`.
  constexpr bool Allows(size_t all, size_t own, size_t more) const {
    const bool is_small = own + more <= small;
    return own + more <= most_of_one && all + more <= (is_small ? most : most - reserve);
  }
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_FAIR_SHARE_H_
