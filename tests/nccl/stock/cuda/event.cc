// SPDX-License-Identifier: Apache-2.0
#include "tests/nccl/stock/cuda/event.h"

#include <future>

#include "tests/nccl/stock/cuda/api.h"
#include "tests/nccl/stock/cuda/stream.h"

namespace railhead::stock {
namespace {

// An event stands for its last record, which work that waits for it keeps.
struct Event {
  std::shared_future<void> reached;  // not valid: not recorded
};

Event& Of(void* handle) { return *static_cast<Event*>(handle); }

}  // namespace

void MarkReached(void* event) {
  std::promise<void> reached;
  reached.set_value();
  Of(event).reached = reached.get_future();
}

}  // namespace railhead::stock

using namespace railhead::stock;  // NOLINT: the functions below have CUDA's names

CUDA_API int cudaEventCreateWithFlags(void** event, unsigned /*flags*/) {
  *event = new Event;
  return kSuccess;
}
CUDA_API int cudaEventCreate(void** event) { return cudaEventCreateWithFlags(event, 0); }
CUDA_API int cudaEventDestroy(void* event) {
  delete static_cast<Event*>(event);
  return kSuccess;
}
CUDA_API int cudaEventRecord(void* event, void* stream) {
  auto reached = std::make_shared<std::promise<void>>();
  Of(event).reached = reached->get_future();
  Stream::Of(stream).Push([reached] { reached->set_value(); });
  return kSuccess;
}
CUDA_API int cudaEventRecordWithFlags(void* event, void* stream, unsigned /*flags*/) {
  return cudaEventRecord(event, stream);
}
CUDA_API int cudaEventQuery(void* event) {
  const std::shared_future<void>& reached = Of(event).reached;
  const bool done =
      !reached.valid() || reached.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  return done ? kSuccess : kNotReady;
}
CUDA_API int cudaEventSynchronize(void* event) {
  if (Of(event).reached.valid()) Of(event).reached.wait();
  return kSuccess;
}
CUDA_API int cudaStreamWaitEvent(void* stream, void* event, unsigned /*flags*/) {
  if (Of(event).reached.valid()) {
    Stream::Of(stream).Push([reached = Of(event).reached] { reached.wait(); });
  }
  return kSuccess;
}
