// SPDX-License-Identifier: Apache-2.0
//
// Execution of a call whose arguments are valid: immediately, on a stream, or at the end of its
// group. Used by the functions of the C API.
#ifndef RAILHEAD_RUNTIME_COMM_API_CALLS_H_
#define RAILHEAD_RUNTIME_COMM_API_CALLS_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "runtime/collectives/point_to_point.h"
#include "runtime/comm/api/handle.h"

namespace railhead::comm {

using Body = std::function<absl::Status(Communicator&)>;

// Calls that a thread has recorded since rhGroupStart.
struct Group {
  // Calls on one communicator and one stream, or without a stream.
  struct Part {
    const char* name = nullptr;  // of its first call
    rhComm_t comm = nullptr;
    rhStream_t stream = nullptr;
    std::vector<Body> calls;
    const char* transfer_name = nullptr;  // of its first transfer
    // Inlined: a send and a receive in a group allocate no memory.
    absl::InlinedVector<collectives::Transfer, 4> transfers;
  };
  // Returns the part of this communicator and stream, created if needed.
  Part& Of(const char* name, rhComm_t comm, rhStream_t stream);

  int depth = 0;
  absl::InlinedVector<Part, 1> parts;
};
Group& ThreadGroup();

// Runs a blocking call.
rhResult_t RunNow(const char* name, rhComm_t comm,
                  absl::FunctionRef<absl::Status(Communicator&)> body);
// Queues a call on the stream. `group`: see Stream::Add.
rhResult_t RunOnStream(const char* name, rhComm_t comm, rhStream_t stream, Body body,
                       const std::shared_ptr<const void>& group = nullptr);

// Runs, queues or records a call. Copies `body` only if the call runs later.
template <class AnyBody>
rhResult_t Submit(const char* name, rhComm_t comm, rhStream_t stream, const AnyBody& body) {
  Group& group = ThreadGroup();
  if (group.depth > 0) {
    group.Of(name, comm, stream).calls.push_back(body);
    return rhSuccess;
  }
  return stream == nullptr ? RunNow(name, comm, body) : RunOnStream(name, comm, stream, body);
}

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_API_CALLS_H_
