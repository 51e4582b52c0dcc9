// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda_api.h"

#include <dlfcn.h>
#include <link.h>

#include <type_traits>

#include "runtime/base/clock.h"

namespace railhead::device {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

// Returns the number of libraries that this process has ever loaded. Opening one by name takes 1000
// times longer, since it searches the file system.
uint64_t LibrariesLoaded() {
  uint64_t loaded = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t /*size*/, void* result) {
        *static_cast<uint64_t*>(result) = info->dlpi_adds;
        return 1;  // all entries have the same value
      },
      &loaded);
  return loaded;
}

class LibraryCudaApi final : public CudaApi {
 public:
  // Null if it lacks one that every driver of the last ten years has.
  static std::unique_ptr<const CudaApi> Resolve(void* library) {
    auto api = std::make_unique<LibraryCudaApi>();
    const auto find = [library](const char* name, auto& function) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    const bool complete = find("cuGetErrorString", api->get_error_string_) &&
                          find("cuPointerGetAttributes", api->pointer_get_attributes_) &&
                          find("cuPointerSetAttribute", api->pointer_set_attribute_) &&
                          find("cuDeviceGet", api->device_get_) &&
                          find("cuDeviceGetAttribute", api->device_get_attribute_) &&
                          find("cuDevicePrimaryCtxRetain", api->primary_retain_) &&
                          find("cuDevicePrimaryCtxRelease_v2", api->primary_release_) &&
                          find("cuCtxPushCurrent_v2", api->push_current_) &&
                          find("cuCtxPopCurrent_v2", api->pop_current_) &&
                          find("cuMemcpyDtoH_v2", api->memcpy_to_host_) &&
                          find("cuMemcpyHtoD_v2", api->memcpy_to_device_) &&
                          find("cuMemcpyDtoD_v2", api->memcpy_on_device_) &&
                          find("cuStreamSynchronize", api->stream_synchronize_) &&
                          find("cuMemHostAlloc", api->host_alloc_) &&
                          find("cuMemFreeHost", api->free_host_);
    find("cuMemGetHandleForAddressRange", api->get_handle_);
    find("cuThreadExchangeStreamCaptureMode", api->exchange_capture_mode_);
    if (!complete) return nullptr;
    return api;
  }

  const char* ErrorText(int result) const override {
    const char* text = nullptr;
    return get_error_string_(result, &text) == kCudaSuccess && text != nullptr ? text
                                                                               : "unknown error";
  }
  int PointerGetAttributes(absl::Span<int> attributes, absl::Span<void*> values,
                           uint64_t address) const override {
    return pointer_get_attributes_(static_cast<unsigned>(attributes.size()), attributes.data(),
                                   values.data(), address);
  }
  int PointerSetAttribute(const void* value, int attribute, uint64_t address) const override {
    return pointer_set_attribute_(value, attribute, address);
  }
  int DeviceGet(int* device, int ordinal) const override { return device_get_(device, ordinal); }
  int DeviceGetAttribute(int* value, int attribute, int device) const override {
    return device_get_attribute_(value, attribute, device);
  }
  int DevicePrimaryCtxRetain(CudaContext* context, int device) const override {
    return primary_retain_(context, device);
  }
  int DevicePrimaryCtxRelease(int device) const override { return primary_release_(device); }
  int CtxPushCurrent(CudaContext context) const override { return push_current_(context); }
  int CtxPopCurrent(CudaContext* context) const override { return pop_current_(context); }
  int MemcpyDtoH(void* to, uint64_t from, size_t bytes) const override {
    return memcpy_to_host_(to, from, bytes);
  }
  int MemcpyHtoD(uint64_t to, const void* from, size_t bytes) const override {
    return memcpy_to_device_(to, from, bytes);
  }
  int MemcpyDtoD(uint64_t to, uint64_t from, size_t bytes) const override {
    return memcpy_on_device_(to, from, bytes);
  }
  int StreamSynchronize() const override { return stream_synchronize_(nullptr); }
  int ThreadExchangeStreamCaptureMode(int* mode) const override {
    return exchange_capture_mode_ == nullptr ? kCudaNotSupported : exchange_capture_mode_(mode);
  }
  int MemHostAlloc(void** memory, size_t bytes, unsigned flags) const override {
    return host_alloc_(memory, bytes, flags);
  }
  int MemFreeHost(void* memory) const override { return free_host_(memory); }
  int MemGetHandleForAddressRange(void* handle, uint64_t address, size_t bytes, int type,
                                  uint64_t flags) const override {
    return get_handle_ == nullptr ? kCudaNotSupported
                                  : get_handle_(handle, address, bytes, type, flags);
  }

 private:
  int (*get_error_string_)(int, const char**) = nullptr;
  int (*pointer_get_attributes_)(unsigned, int*, void**, uint64_t) = nullptr;
  int (*pointer_set_attribute_)(const void*, int, uint64_t) = nullptr;
  int (*device_get_)(int*, int) = nullptr;
  int (*device_get_attribute_)(int*, int, int) = nullptr;
  int (*primary_retain_)(CudaContext*, int) = nullptr;
  int (*primary_release_)(int) = nullptr;
  int (*push_current_)(CudaContext) = nullptr;
  int (*pop_current_)(CudaContext*) = nullptr;
  int (*memcpy_to_host_)(void*, uint64_t, size_t) = nullptr;
  int (*memcpy_to_device_)(uint64_t, const void*, size_t) = nullptr;
  int (*memcpy_on_device_)(uint64_t, uint64_t, size_t) = nullptr;
  int (*stream_synchronize_)(void*) = nullptr;
  int (*host_alloc_)(void**, size_t, unsigned) = nullptr;
  int (*free_host_)(void*) = nullptr;
  int (*get_handle_)(void*, uint64_t, size_t, int, uint64_t) = nullptr;
  int (*exchange_capture_mode_)(int*) = nullptr;
};

}  // namespace

LoadedCuda::LoadedCuda(uint64_t trusted_ticks)
    : trusted_ticks_(SystemTime::HasTicks() ? trusted_ticks : 0) {}
LoadedCuda::~LoadedCuda() = default;

const CudaApi* LoadedCuda::Look() {
  if (trusted_ticks_ > 0) {
    const uint64_t ticks = SystemTime::Ticks();
    if (ticks - searched_.load(std::memory_order_relaxed) < trusted_ticks_) return nullptr;
    searched_.store(ticks, std::memory_order_relaxed);
  }
  const uint64_t loaded = LibrariesLoaded();
  if (looked_at_.load(std::memory_order_acquire) == loaded) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (owned_ != nullptr) return owned_.get();
  // It stays: the table points into it.
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  if (library != nullptr) owned_ = LibraryCudaApi::Resolve(library);
  looked_at_.store(loaded, std::memory_order_release);
  api_.store(owned_.get(), std::memory_order_release);
  return owned_.get();
}

}  // namespace railhead::device
