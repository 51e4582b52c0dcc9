// SPDX-License-Identifier: Apache-2.0
//
// Sharing of a cluster-wide limit among namespaces: a namespace with a small share can always get
// some. Used for the memory of scraped reports, for the number of RailReports, and for pods' rules.
#ifndef RAILHEAD_OPERATOR_CLUSTER_FAIR_SHARE_H_
#define RAILHEAD_OPERATOR_CLUSTER_FAIR_SHARE_H_

#include <cstddef>

namespace railhead::op {

struct FairShare {
  size_t most = 0;         // in total
  size_t most_of_one = 0;  // per namespace
  size_t reserve = 0;      // last part of `most`, for namespaces with at most `small`
  size_t small = 0;

  // Returns whether a namespace that holds `own` of the `all` in use may take `more`.
  constexpr bool Allows(size_t all, size_t own, size_t more) const {
    const bool is_small = own + more <= small;
    return own + more <= most_of_one && all + more <= (is_small ? most : most - reserve);
  }
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CLUSTER_FAIR_SHARE_H_
