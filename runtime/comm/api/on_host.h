// SPDX-License-Identifier: Apache-2.0
//
// Host staging of GPU buffers. CPUs perform the collectives and cannot access GPU memory, so a
// call's input is copied to pinned host memory before it, and its output from there after it. Each
// rank decides this for itself; other ranks' buffers may be in host memory.
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

// The bytes that a call reads or writes in a buffer of this rank: all of them, or those of `parts`.
struct Area {
  const void* data = nullptr;
  size_t bytes = 0;              // 0: the call does not use the buffer
  const Parts* parts = nullptr;  // in bytes
};

// Performs a call, with the addresses to read and write.
using Placed = absl::FunctionRef<absl::Status(const std::byte* send, std::byte* receive)>;

// `call`: name in the C API, for errors. A failed copy fails the job.
absl::Status RunStaged(const char* call, Communicator& communicator, const device::CudaApi& cuda,
                       const Area& send, const Area& receive, Placed run);

// Calls run(send, receive) with the buffers, or with host memory in their place. The areas must be
// disjoint; if one contains the other, the call is in place.
template <class Run>
absl::Status OnHost(const char* call, Communicator& communicator, const Area& send,
                    const Area& receive, Run run) {
  const device::CudaApi* const cuda = communicator.cuda();
  if (cuda != nullptr) return RunStaged(call, communicator, *cuda, send, receive, run);
  return run(static_cast<const std::byte*>(send.data),
             static_cast<std::byte*>(const_cast<void*>(receive.data)));
}

// Copies a few bytes from host or GPU memory.
absl::Status CopyToHost(const Communicator& communicator, const void* from, size_t bytes,
                        std::byte* to);

// A broadcast, and sends and receives that run concurrently. NICs of the rails read registered GPU
// memory directly, if they can.
absl::Status Broadcast(const char* call, Communicator& communicator, const Area& send,
                       const Area& receive, int root);
absl::Status Transfer(const char* call, Communicator& communicator,
                      absl::Span<const collectives::Transfer> transfers);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_API_ON_HOST_H_
