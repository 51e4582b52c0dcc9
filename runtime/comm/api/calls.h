// SPDX-License-Identifier: Apache-2.0
//
// How a call whose arguments are right gets done: now, by a stream, or when its group ends.
#ifndef RAILHEAD_RUNTIME_COMM_API_CALLS_H_
#define RAILHEAD_RUNTIME_COMM_API_CALLS_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "runtime/collectives/point_to_point.h"
#include "runtime/comm/api/handle.h"

namespace railhead::comm {

using Body = std::function<absl::Status(Communicator&)>;

// What a thread has noted since rhGroupStart.
struct Group {
  // For one communicator, on one stream or none.
  struct Part {
    const char* name;  // of its first call
    rhComm_t comm;
    rhStream_t stream;
    std::vector<Body> calls;
    const char* transfer_name = nullptr;  // of its first transfer
    std::vector<collectives::Transfer> transfers;
  };
  // The one of this communicator and stream, which may be new.
  Part& Of(const char* name, rhComm_t comm, rhStream_t stream);

  int depth = 0;
  std::vector<Part> parts;
};
Group& ThreadGroup();

// Does a call that blocks.
rhResult_t RunNow(const char* name, rhComm_t comm,
                  absl::FunctionRef<absl::Status(Communicator&)> body);
// Leaves it to the stream. `group`: as Stream::Add has it.
rhResult_t RunOnStream(const char* name, rhComm_t comm, rhStream_t stream, Body body,
                       const std::shared_ptr<const void>& group = nullptr);

// Any of the three. `body` is copied only if it is done later.
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
