// SPDX-License-Identifier: Apache-2.0
//
// Calls on memory of a GPU. No CPU may touch it, and what does the collectives are CPUs; so what a
// call reads is copied to pinned memory of the host before it, and what it has written from there
// after it. A rank decides that for itself: other ranks' buffers may be anywhere.
#ifndef RAILHEAD_RUNTIME_COMM_API_ON_HOST_H_
#define RAILHEAD_RUNTIME_COMM_API_ON_HOST_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/point_to_point.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/device/cuda_api.h"

namespace railhead::comm {

// What a call reads or writes of a buffer on this rank: all of these bytes, or only parts of them.
struct Area {
  const void* data = nullptr;
  size_t bytes = 0;              // 0: the call does not use the buffer
  const Parts* parts = nullptr;  // in bytes
};

// What does a call, given where it reads and writes.
using Placed = absl::FunctionRef<absl::Status(const std::byte* send, std::byte* receive)>;

// `call` is the C API's name for it. A copy that fails ends the job.
absl::Status RunStaged(const char* call, Communicator& communicator, const device::CudaApi& cuda,
                       const Area& send, const Area& receive, Placed run);

// Calls run(send, receive) with the buffers, or with what stands for them on the host. The areas
// are apart, or one is in the other and that is a call in place.
template <class Run>
absl::Status OnHost(const char* call, Communicator& communicator, const Area& send,
                    const Area& receive, Run run) {
  const device::CudaApi* const cuda = communicator.cuda();
  if (cuda != nullptr) return RunStaged(call, communicator, *cuda, send, receive, run);
  return run(static_cast<const std::byte*>(send.data),
             static_cast<std::byte*>(const_cast<void*>(receive.data)));
}

// A few bytes, wherever they are.
absl::Status CopyToHost(const Communicator& communicator, const void* from, size_t bytes,
                        std::byte* to);

// Sends and receives that go on at the same time, and a broadcast: what they send from known memory
// of a GPU is read there by the rails' NICs, where these can.
absl::Status Broadcast(const char* call, Communicator& communicator, const Area& send,
                       const Area& receive, int root);
absl::Status Transfer(const char* call, Communicator& communicator,
                      absl::Span<const collectives::Transfer> transfers);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_API_ON_HOST_H_
