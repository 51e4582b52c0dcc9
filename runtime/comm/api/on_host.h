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
#include "runtime/collectives/operation.h"
#include "runtime/collectives/point_to_point.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/device/cuda_api.h"

namespace railhead::comm {

// Runs an operation whose buffers may be in GPU memory: `run` gets it with host memory in the place
// of each that is. A broadcast runs without `run`, and without a copy, if NICs of the rails read
// its registered GPU memory themselves. `call`: name in the C API, for errors. A failed copy fails
// the job.
absl::Status RunStaged(const char* call, Communicator& communicator, const device::CudaApi& cuda,
                       const collectives::Operation& operation,
                       absl::FunctionRef<absl::Status(const collectives::Operation& on_host)> run);

// Copies a few bytes from host or GPU memory.
absl::Status CopyToHost(const Communicator& communicator, const void* from, size_t bytes,
                        std::byte* to);

// Sends and receives that run concurrently. NICs of the rails read registered GPU memory directly,
// if they can.
absl::Status Transfer(const char* call, Communicator& communicator,
                      absl::Span<const collectives::Transfer> transfers);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_API_ON_HOST_H_
