// SPDX-License-Identifier: Apache-2.0
#include "tests/nccl/stock/cuda/stream.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tests/nccl/stock/cuda/api.h"
#include "tests/nccl/stock/cuda/device.h"
#include "tests/nccl/stock/cuda/memory.h"

namespace railhead::stock {
namespace {

// Handles below this number are names of default streams (cudaStreamLegacy is 1).
constexpr uintptr_t kDefaultHandles = 16;

struct Streams {
  std::mutex mutex;
  std::set<Stream*> all;
};

Streams& TheStreams() {
  static auto* const streams = new Streams;
  return *streams;
}

}  // namespace

Stream::Stream() : thread_([this, device = CurrentDevice()] { Work(device); }) {}

Stream::~Stream() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  pushed_.notify_all();
  thread_.join();
}

Stream& Stream::Of(void* handle) {
  static auto* const fallback = new Stream;
  return reinterpret_cast<uintptr_t>(handle) < kDefaultHandles ? *fallback
                                                               : *static_cast<Stream*>(handle);
}

void Stream::Push(std::function<void()> work) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(work));
  }
  pushed_.notify_one();
}

void Stream::Synchronize() {
  std::unique_lock<std::mutex> lock(mutex_);
  idle_.wait(lock, [this] { return queue_.empty() && !busy_; });
}

bool Stream::Idle() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return queue_.empty() && !busy_;
}

void Stream::Work(int device) {
  SetCurrentDevice(device);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    pushed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
    busy_ = false;
    if (queue_.empty()) idle_.notify_all();
  }
}

}  // namespace railhead::stock

using namespace railhead::stock;  // NOLINT: the functions below have CUDA's names

CUDA_API int cudaStreamCreateWithFlags(void** handle, unsigned /*flags*/) {
  auto* const stream = new Stream;
  const std::lock_guard<std::mutex> lock(TheStreams().mutex);
  TheStreams().all.insert(stream);
  *handle = stream;
  return kSuccess;
}
CUDA_API int cudaStreamCreateWithPriority(void** handle, unsigned flags, int /*priority*/) {
  return cudaStreamCreateWithFlags(handle, flags);
}
CUDA_API int cudaStreamCreate(void** handle) { return cudaStreamCreateWithFlags(handle, 0); }
CUDA_API int cudaStreamDestroy(void* handle) {
  if (reinterpret_cast<uintptr_t>(handle) < kDefaultHandles) return kInvalidHandle;
  auto* const stream = static_cast<Stream*>(handle);
  {
    const std::lock_guard<std::mutex> lock(TheStreams().mutex);
    TheStreams().all.erase(stream);
  }
  delete stream;
  return kSuccess;
}
CUDA_API int cudaStreamSynchronize(void* handle) {
  Stream::Of(handle).Synchronize();
  return kSuccess;
}
CUDA_API int cudaStreamQuery(void* handle) {
  return Stream::Of(handle).Idle() ? kSuccess : kNotReady;
}
CUDA_API int cudaDeviceSynchronize() {
  std::set<Stream*> all;
  {
    const std::lock_guard<std::mutex> lock(TheStreams().mutex);
    all = TheStreams().all;
  }
  for (Stream* const stream : all) stream->Synchronize();
  return cudaStreamSynchronize(nullptr);
}
// NOLINTNEXTLINE(google-runtime-int): CUDA's type
CUDA_API int cudaStreamGetId(void* handle, unsigned long long* id) {
  *id = reinterpret_cast<uintptr_t>(handle);
  return kSuccess;
}
CUDA_API int cudaStreamGetPriority(void* /*handle*/, int* priority) {
  *priority = 0;
  return kSuccess;
}

// No stream captures a graph. The versions differ in their later arguments, which are outputs.
CUDA_API int cudaStreamIsCapturing(void* /*handle*/, int* status) {
  *status = 0;
  return kSuccess;
}
CUDA_API int cudaStreamGetCaptureInfo(void* /*handle*/, int* status) {
  *status = 0;
  return kSuccess;
}
CUDA_API int cudaStreamGetCaptureInfo_v2(void* /*handle*/, int* status) {
  *status = 0;
  return kSuccess;
}
CUDA_API int cudaStreamGetCaptureInfo_v3(void* /*handle*/, int* status) {
  *status = 0;
  return kSuccess;
}
CUDA_API int cudaThreadExchangeStreamCaptureMode(int* mode) {
  static thread_local int current = 0;
  std::swap(current, *mode);
  return kSuccess;
}

CUDA_API int cudaLaunchHostFunc(void* handle, void (*function)(void*), void* argument) {
  Stream::Of(handle).Push([=] { function(argument); });
  return kSuccess;
}
CUDA_API int cudaFreeAsync(void* pointer, void* handle) {
  Stream::Of(handle).Push([=] { Free(pointer); });
  return kSuccess;
}
CUDA_API int cudaMemcpy(void* to, const void* from, size_t bytes, int /*kind*/) {
  cudaStreamSynchronize(nullptr);
  std::memmove(to, from, bytes);
  return kSuccess;
}
CUDA_API int cudaMemset(void* to, int value, size_t bytes) {
  cudaStreamSynchronize(nullptr);
  std::memset(to, value, bytes);
  return kSuccess;
}
CUDA_API int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int /*kind*/, void* handle) {
  Stream& stream = Stream::Of(handle);
  if (AllocationOf(from)) {
    stream.Push([=] { std::memmove(to, from, bytes); });
    return kSuccess;
  }
  // Other memory is read before the call returns: it may be on the caller's stack.
  const auto* const begin = static_cast<const char*>(from);
  auto copy = std::make_shared<std::vector<char>>(begin, begin + bytes);
  stream.Push([=] { std::memcpy(to, copy->data(), bytes); });
  if (!AllocationOf(to)) stream.Synchronize();
  return kSuccess;
}
CUDA_API int cudaMemsetAsync(void* to, int value, size_t bytes, void* handle) {
  Stream::Of(handle).Push([=] { std::memset(to, value, bytes); });
  return kSuccess;
}
