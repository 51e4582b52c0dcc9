// SPDX-License-Identifier: Apache-2.0
//
// All-reduce along two binary trees at once (P. Sanders, J. Speck, J. L. Traff, "Two-tree
// algorithms for full bandwidth broadcast, reduction and scan", 2009): each half of the values is
// reduced up one tree and broadcast down it, in pipelined segments. An inner rank of one tree is a
// leaf of the other (except one, if their number is odd), so all ranks send and receive about the
// same; latency grows with log2(n).
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_DOUBLE_TREE_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_DOUBLE_TREE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/collectives/messenger.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Like RingAllReduce (ring_allreduce.h).
absl::Status DoubleTreeAllReduce(Messenger& messenger, int rank, int world_size,
                                 const reduce::Reduction& reduction, const std::byte* send,
                                 std::byte* receive, size_t count);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_DOUBLE_TREE_H_
