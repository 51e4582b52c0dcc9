// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/fake_cuda.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace railhead::device {
namespace {

constexpr int kGpus = 8;
// What the default alignment of the driver's allocations is.
constexpr size_t kLine = 64;

// The contexts that this thread has made current, the last one on top. Contexts are numbers.
std::vector<CudaContext>& Current() {
  static thread_local std::vector<CudaContext> current;
  return current;
}

int& CaptureMode() {
  static thread_local int mode = kCaptureModeGlobal;
  return mode;
}

CudaContext ContextOf(int gpu, bool primary) {
  return reinterpret_cast<CudaContext>(  // NOLINT(performance-no-int-to-ptr): a name
      uintptr_t{0x1000} + static_cast<uintptr_t>(gpu) * 2 + (primary ? 1 : 0));
}

size_t WholePages(size_t bytes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

// A test cannot go on without memory.
std::byte* Mapped(void* mapping) {
  if (mapping == MAP_FAILED) std::abort();
  return static_cast<std::byte*>(mapping);
}

uint64_t Number(const void* address) { return reinterpret_cast<uintptr_t>(address); }
void* Pointer(uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): the driver's shape
}

}  // namespace

FakePages::FakePages(size_t bytes)
    : fd_(::memfd_create("gpu", MFD_CLOEXEC)), size_(WholePages(std::max<size_t>(bytes, 1))) {
  if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) std::abort();
  data_ = Mapped(::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0));
}

FakePages::~FakePages() { ::munmap(data_, size_); }

FakeCuda::~FakeCuda() {
  while (!allocations_.empty()) {
    Free(static_cast<std::byte*>(Pointer(allocations_.begin()->first)));
  }
}

std::byte* FakeCuda::Allocate(size_t bytes, int gpu, bool own_context) {
  Allocation made;
  made.pages = std::make_shared<FakePages>(bytes);
  made.gpu = gpu;
  if (own_context) made.context = ContextOf(gpu, false);
  std::byte* const address = Mapped(
      ::mmap(nullptr, made.pages->bytes().size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const std::lock_guard<std::mutex> lock(mutex_);
  made.id = NextId();
  allocations_[Number(address)] = std::move(made);
  return address;
}

std::byte* FakeCuda::AllocateManaged(size_t bytes) {
  Allocation made;
  made.pages = std::make_shared<FakePages>(bytes);
  made.managed = true;
  std::byte* const address =
      Mapped(::mmap(nullptr, made.pages->bytes().size(), PROT_READ | PROT_WRITE, MAP_SHARED,
                    made.pages->fd(), 0));
  const std::lock_guard<std::mutex> lock(mutex_);
  made.id = NextId();
  allocations_[Number(address)] = std::move(made);
  return address;
}

void FakeCuda::WithoutIds() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ids_ = false;
}

void FakeCuda::Free(std::byte* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = allocations_.find(Number(memory));
  if (found == allocations_.end()) std::abort();
  ::munmap(memory, found->second.pages->bytes().size());
  allocations_.erase(found);
}

void FakeCuda::Reallocate(std::byte* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = allocations_.find(Number(memory));
  if (found == allocations_.end()) std::abort();
  found->second.pages = std::make_shared<FakePages>(found->second.pages->bytes().size());
  found->second.id = NextId();
}

std::byte* FakeCuda::Bytes(const std::byte* memory) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  uint64_t offset = 0;
  const Allocation* const found = Holding(Number(memory), 0, &offset);
  return found != nullptr ? found->pages->bytes().data() + offset : nullptr;
}

void FakeCuda::SetLoaded(bool loaded) {
  const std::lock_guard<std::mutex> lock(mutex_);
  loaded_ = loaded;
}
void FakeCuda::SetInitialized(bool initialized) {
  const std::lock_guard<std::mutex> lock(mutex_);
  initialized_ = initialized;
}
void FakeCuda::SetDmaBuf(bool supported) {
  const std::lock_guard<std::mutex> lock(mutex_);
  dma_buf_ = supported;
}
void FakeCuda::SetPeermem(bool loaded) {
  const std::lock_guard<std::mutex> lock(mutex_);
  peermem_ = loaded;
}
void FakeCuda::FailExports(int result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  export_result_ = result;
}
void FakeCuda::FailCopies(int result, int after) {
  const std::lock_guard<std::mutex> lock(mutex_);
  copy_result_ = result;
  copies_until_failure_ = after;
}
void FakeCuda::FailPinning(int result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  pin_result_ = result;
}
void FakeCuda::Capture(bool captures) {
  const std::lock_guard<std::mutex> lock(mutex_);
  captures_ = captures;
}
void FakeCuda::FailQuestions(int result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  question_result_ = result;
}
void FakeCuda::FailSynchronizing(int result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  synchronize_result_ = result;
}

int FakeCuda::copies() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return copies_;
}
size_t FakeCuda::pinned() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return pinned_.size();
}
size_t FakeCuda::retained() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t retained = 0;
  for (const auto& [device, count] : retained_) retained += count;
  return retained;
}
bool FakeCuda::synchronized(const std::byte* memory) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  uint64_t offset = 0;
  const Allocation* const found = Holding(Number(memory), 0, &offset);
  return found != nullptr && found->synchronized;
}

bool FakeCuda::Owns(const void* address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  uint64_t offset = 0;
  const Allocation* const found = Holding(Number(address), 0, &offset);
  return found != nullptr && !found->managed;
}

std::shared_ptr<const FakePages> FakeCuda::Pin(const void* address, size_t bytes) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  uint64_t offset = 0;
  const Allocation* const found = Holding(Number(address), bytes, &offset);
  if (!peermem_ || found == nullptr) return nullptr;
  return found->pages;
}

uint64_t FakeCuda::OffsetOf(const void* address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  uint64_t offset = 0;
  Holding(Number(address), 0, &offset);
  return offset;
}

FakeCuda::Allocation* FakeCuda::Holding(uint64_t address, size_t bytes, uint64_t* offset) const {
  auto next = allocations_.upper_bound(address);
  if (next == allocations_.begin()) return nullptr;
  --next;
  *offset = address - next->first;
  const size_t size = next->second.pages->bytes().size();
  return *offset < size && bytes <= size - *offset ? &next->second : nullptr;
}

const CudaApi* FakeCuda::Loaded() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return loaded_ ? this : nullptr;
}

const char* FakeCuda::ErrorText(int result) const {
  switch (result) {
    case kCudaInvalidValue:
      return "invalid argument";
    case kCudaOutOfMemory:
      return "out of memory";
    case kCudaInvalidContext:
      return "invalid device context";
    case kCudaNotSupported:
      return "operation not supported";
    default:
      return "made up for the test";
  }
}

int FakeCuda::PointerGetAttributes(absl::Span<int> attributes, absl::Span<void*> values,
                                   uint64_t address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!initialized_) return kCudaNotInitialized;
  if (question_result_ != kCudaSuccess) return question_result_;
  uint64_t offset = 0;
  const Allocation* const found = Holding(address, 0, &offset);
  const Allocation nothing;
  const Allocation& of = found != nullptr ? *found : nothing;
  for (size_t i = 0; i < attributes.size(); ++i) {
    switch (attributes[i]) {
      case kPointerContext:
        *static_cast<CudaContext*>(values[i]) = of.context;
        break;
      case kPointerMemoryType:
        *static_cast<unsigned*>(values[i]) = found != nullptr ? kMemoryOfDevice : 0;
        break;
      case kPointerBufferId:
        *static_cast<uint64_t*>(values[i]) = of.id;
        break;
      case kPointerIsManaged:
        *static_cast<unsigned*>(values[i]) = of.managed ? 1 : 0;
        break;
      case kPointerDeviceOrdinal:
        *static_cast<int*>(values[i]) = of.gpu;
        break;
      default:
        return kCudaInvalidValue;
    }
  }
  return kCudaSuccess;
}

int FakeCuda::PointerSetAttribute(const void* value, int attribute, uint64_t address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  uint64_t offset = 0;
  Allocation* const found = Holding(address, 0, &offset);
  if (found == nullptr || attribute != kPointerSyncMemops || Current().empty()) {
    return kCudaInvalidValue;
  }
  if (synchronize_result_ != kCudaSuccess) return synchronize_result_;
  found->synchronized = *static_cast<const unsigned*>(value) != 0;
  return kCudaSuccess;
}

int FakeCuda::DeviceGet(int* device, int ordinal) const {
  if (ordinal < 0 || ordinal >= kGpus) return kCudaInvalidValue;
  *device = ordinal;
  return kCudaSuccess;
}

int FakeCuda::DeviceGetAttribute(int* value, int attribute, int /*device*/) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (attribute != kDeviceDmaBufSupported) return kCudaInvalidValue;
  *value = dma_buf_ ? 1 : 0;
  return kCudaSuccess;
}

int FakeCuda::DevicePrimaryCtxRetain(CudaContext* context, int device) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++retained_[device];
  *context = ContextOf(device, true);
  return kCudaSuccess;
}

int FakeCuda::DevicePrimaryCtxRelease(int device) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (retained_[device] == 0) return kCudaInvalidContext;
  if (--retained_[device] == 0) {
    std::erase_if(pinned_, [device](const auto& pinned) {
      return pinned.second.context == ContextOf(device, true);
    });
  }
  return kCudaSuccess;
}

int FakeCuda::CtxPushCurrent(CudaContext context) const {
  Current().push_back(context);
  return kCudaSuccess;
}

int FakeCuda::CtxPopCurrent(CudaContext* context) const {
  if (Current().empty()) return kCudaInvalidContext;
  *context = Current().back();
  Current().pop_back();
  return kCudaSuccess;
}

int FakeCuda::MayCall() const {
  if (captures_ && CaptureMode() != kCaptureModeRelaxed) return kCudaStreamCaptureUnsupported;
  return Current().empty() ? kCudaInvalidContext : kCudaSuccess;
}

int FakeCuda::MayCopy() const {
  if (const int may = MayCall(); may != kCudaSuccess) return may;
  if (copy_result_ != kCudaSuccess && copies_until_failure_-- <= 0) return copy_result_;
  ++copies_;
  return kCudaSuccess;
}

int FakeCuda::MemcpyDtoH(void* to, uint64_t from, size_t bytes) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const int may = MayCopy(); may != kCudaSuccess) return may;
  uint64_t offset = 0;
  const Allocation* const found = Holding(from, bytes, &offset);
  if (found == nullptr) return kCudaInvalidValue;
  std::memcpy(to, found->pages->bytes().data() + offset, bytes);
  return kCudaSuccess;
}

int FakeCuda::MemcpyHtoD(uint64_t to, const void* from, size_t bytes) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const int may = MayCopy(); may != kCudaSuccess) return may;
  uint64_t offset = 0;
  const Allocation* const found = Holding(to, bytes, &offset);
  if (found == nullptr) return kCudaInvalidValue;
  std::memcpy(found->pages->bytes().data() + offset, from, bytes);
  return kCudaSuccess;
}

int FakeCuda::MemcpyDtoD(uint64_t to, uint64_t from, size_t bytes) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const int may = MayCopy(); may != kCudaSuccess) return may;
  uint64_t there = 0;
  uint64_t here = 0;
  const Allocation* const target = Holding(to, bytes, &there);
  const Allocation* const source = Holding(from, bytes, &here);
  if (target == nullptr || source == nullptr) return kCudaInvalidValue;
  std::memmove(target->pages->bytes().data() + there, source->pages->bytes().data() + here, bytes);
  return kCudaSuccess;
}

int FakeCuda::StreamSynchronize() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return MayCall();
}

int FakeCuda::ThreadExchangeStreamCaptureMode(int* mode) const {
  std::swap(*mode, CaptureMode());
  return kCudaSuccess;
}

int FakeCuda::MemHostAlloc(void** memory, size_t bytes, unsigned flags) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const int may = MayCall(); may != kCudaSuccess) return may;
  if (pin_result_ != kCudaSuccess) return pin_result_;
  if (Current().empty() || flags != kHostPortable || bytes == 0) return kCudaInvalidValue;
  auto made = std::make_unique_for_overwrite<std::byte[]>(bytes + kLine);
  void* start = made.get();
  size_t room = bytes + kLine;
  *memory = std::align(kLine, bytes, start, room);
  pinned_[*memory] = {std::move(made), Current().back()};
  return kCudaSuccess;
}

int FakeCuda::MemFreeHost(void* memory) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const int may = MayCall(); may != kCudaSuccess) return may;
  return pinned_.erase(memory) == 1 ? kCudaSuccess : kCudaInvalidValue;
}

int FakeCuda::MemGetHandleForAddressRange(void* handle, uint64_t address, size_t bytes, int type,
                                          uint64_t flags) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (export_result_ != kCudaSuccess) return export_result_;
  const size_t page = WholePages(1);
  uint64_t offset = 0;
  const Allocation* const found = Holding(address, bytes, &offset);
  if (found == nullptr || found->managed || address % page != 0 || bytes % page != 0 ||
      type != kRangeHandleDmaBuf || flags != 0 || Current().empty()) {
    return kCudaInvalidValue;
  }
  // A description of its own, whose position is where the exported range begins.
  const std::string path = absl::StrCat("/proc/self/fd/", found->pages->fd());
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0 || ::lseek(fd, static_cast<off_t>(offset), SEEK_SET) < 0) return kCudaInvalidValue;
  *static_cast<int*>(handle) = fd;
  return kCudaSuccess;
}

}  // namespace railhead::device
