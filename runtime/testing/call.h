// SPDX-License-Identifier: Apache-2.0
//
// A trial's collective, called as users of the C API do.
#ifndef RAILHEAD_RUNTIME_TESTING_CALL_H_
#define RAILHEAD_RUNTIME_TESTING_CALL_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/testing/collectives.h"

namespace railhead::testing {

inline rhResult_t Call(rhComm_t comm, Trial& trial, rhRedOp_t op) {
  const CollectiveCase& c = trial.what();
  const void* const send = trial.send();
  void* const receive = trial.receive();
  switch (c.collective) {
    case Collective::kAllReduce:
      return rhAllReduce(send, receive, c.count, c.type, op, comm, nullptr);
    case Collective::kAllGather:
      return c.uneven ? rhAllGatherv(send, receive, trial.receive_counts().data(),
                                     trial.receive_displs().data(), c.type, comm, nullptr)
                      : rhAllGather(send, receive, c.count, c.type, comm, nullptr);
    case Collective::kReduceScatter:
      return c.uneven ? rhReduceScatterv(send, receive, trial.send_counts().data(), c.type, op,
                                         comm, nullptr)
                      : rhReduceScatter(send, receive, c.count, c.type, op, comm, nullptr);
    case Collective::kBroadcast:
      return rhBroadcast(send, receive, c.count, c.type, c.root, comm, nullptr);
    case Collective::kReduce:
      return rhReduce(send, receive, c.count, c.type, op, c.root, comm, nullptr);
    case Collective::kBarrier:
      return rhBarrier(comm, nullptr);
    case Collective::kAllToAll:
      return c.uneven ? rhAlltoAllv(send, trial.send_counts().data(), trial.send_displs().data(),
                                    receive, trial.receive_counts().data(),
                                    trial.receive_displs().data(), c.type, comm, nullptr)
                      : rhAlltoAll(send, receive, c.count, c.type, comm, nullptr);
    case Collective::kGather:
      return rhGather(send, receive, c.count, c.type, c.root, comm, nullptr);
    case Collective::kScatter:
      return rhScatter(send, receive, c.count, c.type, c.root, comm, nullptr);
    case Collective::kSendReceive: {
      int rank = 0;
      int ranks = 0;
      rhCommUserRank(comm, &rank);
      rhCommCount(comm, &ranks);
      rhGroupStart();
      const rhResult_t received =
          rhRecv(receive, c.count, c.type, (rank - c.root % ranks + ranks) % ranks, comm, nullptr);
      const rhResult_t sent = rhSend(send, c.count, c.type, (rank + c.root) % ranks, comm, nullptr);
      const rhResult_t done = rhGroupEnd();
      return received != rhSuccess ? received : sent != rhSuccess ? sent : done;
    }
  }
  return rhInternalError;
}

// Does it, and returns what went wrong; "" if nothing.
inline std::string Play(rhComm_t comm, Trial& trial) {
  const CollectiveCase& c = trial.what();
  uint64_t factor = trial.factor();
  rhRedOp_t op = c.op;
  if (c.scaled &&
      rhRedOpCreatePreMulSum(&op, &factor, c.type, rhScalarHostImmediate, comm) != rhSuccess) {
    return rhGetLastError(comm);
  }
  if (Call(comm, trial, op) != rhSuccess) {
    return absl::StrCat(ToString(c), ": ", rhGetLastError(comm));
  }
  if (c.scaled) rhRedOpDestroy(op, comm);
  return trial.Check();
}

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_CALL_H_
