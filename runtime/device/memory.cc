// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/memory.h"

#include <unistd.h>

#include <array>

#include "absl/strings/str_cat.h"

namespace railhead::device {
namespace {

uint64_t Address(const std::byte* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

}  // namespace

std::optional<Memory> Memory::Find(const CudaApi& cuda, const void* address) {
  unsigned type = 0;
  unsigned managed = 0;
  Memory memory(cuda);
  std::array<int, 5> attributes = {kPointerMemoryType, kPointerIsManaged, kPointerDeviceOrdinal,
                                   kPointerContext, kPointerBufferId};
  std::array<void*, 5> values = {&type, &managed, &memory.gpu_, &memory.context_,
                                 &memory.allocation_};
  // An error is that the driver is not in use yet, or not any more.
  const int result = cuda.PointerGetAttributes(absl::MakeSpan(attributes), absl::MakeSpan(values),
                                               reinterpret_cast<uintptr_t>(address));
  if (result != kCudaSuccess || type != kMemoryOfDevice || managed != 0) return std::nullopt;
  return memory;
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

absl::Status Memory::Do(absl::string_view what, absl::FunctionRef<int()> what_to_do) const {
  // Memory that was mapped or comes from a pool has no context of its own.
  CudaContext context = context_;
  int device = 0;
  int result = kCudaSuccess;
  if (context == nullptr) {
    result = cuda_->DeviceGet(&device, gpu_);
    if (result == kCudaSuccess) result = cuda_->DevicePrimaryCtxRetain(&context, device);
    if (result != kCudaSuccess) return Error("get a context", result);
  }
  result = cuda_->CtxPushCurrent(context);
  if (result == kCudaSuccess) {
    result = what_to_do();
    CudaContext popped = nullptr;
    cuda_->CtxPopCurrent(&popped);
  }
  if (context_ == nullptr) cuda_->DevicePrimaryCtxRelease(device);
  return result == kCudaSuccess ? absl::OkStatus() : Error(what, result);
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
  void* memory = nullptr;
  absl::Status pinned =
      for_whom.Do(absl::StrCat("pin ", bytes,
                               " bytes of host memory, through which its memory is "
                               "copied"),
                  [&] { return for_whom.cuda_->MemHostAlloc(&memory, bytes, kHostPortable); });
  if (!pinned.ok()) return pinned;
  of_ = for_whom;
  data_ = static_cast<std::byte*>(memory);
  size_ = bytes;
  return data_;
}

void PinnedMemory::Free() {
  if (data_ == nullptr) return;
  // Where the driver is gone before, so is what it had pinned.
  of_->Do("free pinned memory", [this] { return of_->cuda_->MemFreeHost(data_); }).IgnoreError();
  data_ = nullptr;
  size_ = 0;
}

}  // namespace railhead::device
