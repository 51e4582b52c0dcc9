// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/memory.h"

#include <unistd.h>

#include <array>

#include "absl/strings/str_cat.h"

namespace railhead::device {
namespace {

// While it exists, this thread may call what a capture of a stream (for a CUDA graph) by any other
// thread prohibits: without it such a call fails and ends the capture. It must not touch the
// captured stream, of which the library knows none; but the default stream waits for all that were
// created without CU_STREAM_NON_BLOCKING, so that copies still fail while one of those is captured.
class Relaxed {
 public:
  explicit Relaxed(const CudaApi& cuda)
      : cuda_(cuda), exchanged_(cuda.ThreadExchangeStreamCaptureMode(&mode_) == kCudaSuccess) {}
  ~Relaxed() {
    if (exchanged_) cuda_.ThreadExchangeStreamCaptureMode(&mode_);
  }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  const CudaApi& cuda_;
  int mode_ = kCaptureModeRelaxed;  // then the thread's own
  bool exchanged_;
};

uint64_t Address(const std::byte* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// Queries the driver, which does not change the values if an address is not its own, or if the
// driver is not initialized, or is shut down.
absl::Status Ask(const CudaApi& cuda, const void* address, absl::Span<int> attributes,
                 absl::Span<void*> values) {
  const int result =
      cuda.PointerGetAttributes(attributes, values, reinterpret_cast<uintptr_t>(address));
  switch (result) {
    case kCudaSuccess:
    case kCudaInvalidValue:
    case kCudaNotInitialized:
    case kCudaDeinitialized:
    case kCudaStubLibrary:
    case kCudaInvalidContext:  // a thread that has never had to do with a GPU
      return absl::OkStatus();
    default:
      return absl::InternalError(
          absl::StrCat("the CUDA driver cannot determine whether a buffer is in GPU memory: ",
                       cuda.ErrorText(result), " (CUDA error ", result,
                       "). A kernel or copy of this process has failed before; look for it with "
                       "CUDA_LAUNCH_BLOCKING=1, and in the node's log for Xid"));
  }
}

}  // namespace

absl::StatusOr<std::optional<Memory>> Memory::Find(const CudaApi& cuda, const void* address) {
  unsigned type = 0;
  unsigned managed = 0;
  Memory memory(cuda);
  std::array<int, 5> attributes = {kPointerMemoryType, kPointerIsManaged, kPointerDeviceOrdinal,
                                   kPointerContext, kPointerBufferId};
  std::array<void*, 5> values = {&type, &managed, &memory.gpu_,
                                 static_cast<void*>(&memory.context_), &memory.allocation_};
  absl::Status asked = Ask(cuda, address, absl::MakeSpan(attributes), absl::MakeSpan(values));
  if (!asked.ok()) return asked;
  if (type != kMemoryOfDevice || managed != 0) return std::nullopt;
  return memory;
}

absl::StatusOr<bool> Memory::IsManaged(const CudaApi& cuda, const void* address) {
  unsigned managed = 0;
  std::array<int, 1> attributes = {kPointerIsManaged};
  std::array<void*, 1> values = {&managed};
  absl::Status asked = Ask(cuda, address, absl::MakeSpan(attributes), absl::MakeSpan(values));
  if (!asked.ok()) return asked;
  return managed != 0;
}

std::string Memory::Name() const { return absl::StrCat("GPU ", gpu_); }

absl::Status Memory::Error(absl::string_view what, int result) const {
  const std::string message = absl::StrCat(Name(), ": cannot ", what, ": ",
                                           cuda_->ErrorText(result), " (CUDA error ", result, ")");
  switch (result) {
    case kCudaOutOfMemory:
      return absl::ResourceExhaustedError(message);
    case kCudaNotSupported:
      return absl::UnimplementedError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::StatusOr<CudaContext> Memory::RetainPrimary() const {
  int device = 0;
  CudaContext context = nullptr;
  int result = cuda_->DeviceGet(&device, gpu_);
  if (result == kCudaSuccess) result = cuda_->DevicePrimaryCtxRetain(&context, device);
  if (result != kCudaSuccess) return Error("get a context", result);
  return context;
}

void Memory::ReleasePrimary() const {
  int device = 0;
  if (cuda_->DeviceGet(&device, gpu_) == kCudaSuccess) cuda_->DevicePrimaryCtxRelease(device);
}

absl::Status Memory::DoIn(CudaContext context, absl::string_view what,
                          absl::FunctionRef<int()> what_to_do) const {
  const Relaxed relaxed(*cuda_);
  int result = cuda_->CtxPushCurrent(context);
  if (result == kCudaSuccess) {
    result = what_to_do();
    CudaContext popped = nullptr;
    cuda_->CtxPopCurrent(&popped);
  }
  return result == kCudaSuccess ? absl::OkStatus() : Error(what, result);
}

absl::Status Memory::Do(absl::string_view what, absl::FunctionRef<int()> what_to_do) const {
  if (context_ != nullptr) return DoIn(context_, what, what_to_do);
  // Memory that was mapped or comes from a pool belongs to no context.
  const absl::StatusOr<CudaContext> primary = RetainPrimary();
  if (!primary.ok()) return primary.status();
  absl::Status done = DoIn(*primary, what, what_to_do);
  ReleasePrimary();
  return done;
}

absl::Status Memory::CopyOut(const std::byte* from, std::byte* to, size_t bytes) const {
  return Do(absl::StrCat("copy ", bytes, " bytes to the host"),
            [&] { return cuda_->MemcpyDtoH(to, Address(from), bytes); });
}

absl::Status Memory::CopyIn(const std::byte* from, std::byte* to, size_t bytes) const {
  return Do(absl::StrCat("copy ", bytes, " bytes from the host"), [&] {
    const int copied = cuda_->MemcpyHtoD(Address(to), from, bytes);
    return copied == kCudaSuccess ? cuda_->StreamSynchronize() : copied;
  });
}

absl::Status Memory::CopyWithin(const std::byte* from, std::byte* to, size_t bytes) const {
  return Do(absl::StrCat("copy ", bytes, " bytes"), [&] {
    const int copied = cuda_->MemcpyDtoD(Address(to), Address(from), bytes);
    return copied == kCudaSuccess ? cuda_->StreamSynchronize() : copied;
  });
}

absl::Status Memory::Synchronize(const std::byte* address) const {
  const unsigned on = 1;
  return Do("make copies wait for their end",
            [&] { return cuda_->PointerSetAttribute(&on, kPointerSyncMemops, Address(address)); });
}

absl::StatusOr<DmaBuf> Memory::Export(absl::Span<const std::byte> bytes) const {
  int device = 0;
  int supported = 0;
  int result = cuda_->DeviceGet(&device, gpu_);
  if (result == kCudaSuccess) {
    result = cuda_->DeviceGetAttribute(&supported, kDeviceDmaBufSupported, device);
  }
  if (result != kCudaSuccess || supported == 0) {
    return absl::UnimplementedError(
        absl::StrCat(Name(),
                     ": its driver exports no dma-buf; it does with NVIDIA's open kernel "
                     "modules and CUDA 11.7 or newer, on Linux 5.12 or newer"));
  }
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t begin = Address(bytes.data()) / page * page;
  const uint64_t end = (Address(bytes.data()) + bytes.size() + page - 1) / page * page;
  int fd = -1;
  absl::Status exported = Do(absl::StrCat("export ", bytes.size(), " bytes as a dma-buf"), [&] {
    return cuda_->MemGetHandleForAddressRange(&fd, begin, end - begin, kRangeHandleDmaBuf, 0);
  });
  if (!exported.ok()) return exported;
  return DmaBuf{net::Fd(fd), Address(bytes.data()) - begin};
}

absl::StatusOr<std::byte*> PinnedMemory::Get(size_t bytes, const Memory& for_whom) {
  if (bytes <= size_) return data_;
  Free();
  const absl::StatusOr<CudaContext> primary = for_whom.RetainPrimary();
  if (!primary.ok()) return primary.status();
  void* memory = nullptr;
  absl::Status pinned = for_whom.DoIn(
      *primary,
      absl::StrCat("pin ", bytes, " bytes of host memory, through which its memory is copied"),
      [&] { return for_whom.cuda_->MemHostAlloc(&memory, bytes, kHostPortable); });
  if (!pinned.ok()) {
    for_whom.ReleasePrimary();
    return pinned;
  }
  of_ = for_whom;
  primary_ = *primary;
  data_ = static_cast<std::byte*>(memory);
  size_ = bytes;
  return data_;
}

void PinnedMemory::Free() {
  if (data_ == nullptr) return;
  // If the driver is shut down before, it has freed what it had pinned.
  of_->DoIn(primary_, "free pinned memory", [this] { return of_->cuda_->MemFreeHost(data_); })
      .IgnoreError();
  of_->ReleasePrimary();
  data_ = nullptr;
  size_ = 0;
}

}  // namespace railhead::device
