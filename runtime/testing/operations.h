// SPDX-License-Identifier: Apache-2.0
//
// Operations (collectives/operation.h) of test cases, as the C API makes them.
#ifndef RAILHEAD_RUNTIME_TESTING_OPERATIONS_H_
#define RAILHEAD_RUNTIME_TESTING_OPERATIONS_H_

#include <cstddef>

#include "runtime/base/parts.h"
#include "runtime/collectives/operation.h"
#include "runtime/reduce/reduce.h"
#include "runtime/testing/collectives.h"

namespace railhead::testing {

inline Parts EqualParts(int ranks, size_t each) {
  const auto count = static_cast<size_t>(ranks);
  return {count, count * each};
}

inline collectives::Operation AllReduceOf(int ranks, rhDataType_t type, rhRedOp_t op,
                                          const std::byte* send, std::byte* receive, size_t count) {
  return {.collective = collectives::Collective::kAllReduce,
          .ranks = ranks,
          .reduction = {type, op, ranks, {}},
          .send = send,
          .receive = receive,
          .count = count};
}

// The result refers to the trial's buffers and lists.
inline collectives::Operation AsOperation(const CollectiveCase& c, int ranks, Trial& trial) {
  using collectives::Collective;
  const size_t element = reduce::SizeOf(c.type);
  collectives::Operation operation =
      AllReduceOf(ranks, c.type, c.op, trial.send(), trial.receive(), c.count);
  operation.collective = c.collective;
  operation.root = c.root;
  if (!collectives::Reduces(c.collective)) operation.count *= element;
  const Parts equal = EqualParts(ranks, operation.count);
  switch (c.collective) {
    case Collective::kAllGather:
      operation.receive_parts =
          c.uneven ? Parts(trial.receive_counts(), trial.receive_displs(), element) : equal;
      break;
    case Collective::kReduceScatter:
      operation.send_parts = c.uneven ? Parts(trial.send_counts(), trial.send_displs(), 1) : equal;
      break;
    case Collective::kAllToAll:
      operation.send_parts = operation.receive_parts = equal;
      break;
    default:
      break;
  }
  return operation;
}

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_OPERATIONS_H_
