// SPDX-License-Identifier: Apache-2.0
#include "tests/nccl/stock/cuda/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "tests/nccl/stock/cuda/api.h"
#include "tests/nccl/stock/cuda/device.h"

namespace railhead::stock {
namespace {

constexpr size_t kPage = 4096;

struct Table {
  std::mutex mutex;
  std::map<uintptr_t, Allocation> allocations;
};

// Kept until the process ends: destructors of libraries free memory, too.
Table& TheTable() {
  static auto* const table = new Table;
  return *table;
}

}  // namespace

void Add(const Allocation& allocation) {
  Table& table = TheTable();
  const std::lock_guard<std::mutex> lock(table.mutex);
  table.allocations[allocation.address] = allocation;
}

int Allocate(void** pointer, size_t bytes, Place place) {
  *pointer = nullptr;
  if (bytes == 0) return kSuccess;
  const size_t pages = (bytes + kPage - 1) / kPage * kPage;
  int file = -1;
  if (place == Place::kDevice) {
    file = memfd_create("emulated-gpu", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(pages)) != 0) return kOutOfMemory;
  }
  void* const memory = mmap(nullptr, pages, PROT_READ | PROT_WRITE,
                            file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return kOutOfMemory;
  Add({reinterpret_cast<uintptr_t>(memory), pages, CurrentDevice(), place, file, true});
  *pointer = memory;
  return kSuccess;
}

int Free(void* pointer) {
  if (pointer == nullptr) return kSuccess;
  Table& table = TheTable();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const auto found = table.allocations.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == table.allocations.end()) return kInvalidValue;
  if (found->second.mapped) munmap(pointer, found->second.bytes);
  if (found->second.file >= 0) close(found->second.file);
  table.allocations.erase(found);
  return kSuccess;
}

std::optional<Allocation> AllocationOf(const void* pointer) {
  Table& table = TheTable();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  auto after = table.allocations.upper_bound(address);
  if (after == table.allocations.begin()) return std::nullopt;
  const Allocation& found = (--after)->second;
  if (address >= found.address + found.bytes) return std::nullopt;
  return found;
}

}  // namespace railhead::stock

using namespace railhead::stock;  // NOLINT: the functions below have CUDA's names

CUDA_API int cudaMalloc(void** pointer, size_t bytes) {
  return Allocate(pointer, bytes, Place::kDevice);
}
CUDA_API int cudaFree(void* pointer) { return Free(pointer); }
CUDA_API int cudaHostAlloc(void** pointer, size_t bytes, unsigned /*flags*/) {
  return Allocate(pointer, bytes, Place::kHost);
}
CUDA_API int cudaMallocHost(void** pointer, size_t bytes) {
  return Allocate(pointer, bytes, Place::kHost);
}
CUDA_API int cudaFreeHost(void* pointer) { return Free(pointer); }
CUDA_API int cudaHostRegister(void* pointer, size_t bytes, unsigned /*flags*/) {
  Add({reinterpret_cast<uintptr_t>(pointer), bytes, CurrentDevice(), Place::kHost, -1, false});
  return kSuccess;
}
CUDA_API int cudaHostUnregister(void* pointer) { return Free(pointer); }
CUDA_API int cudaHostGetDevicePointer(void** device, void* host, unsigned /*flags*/) {
  *device = host;
  return kSuccess;
}

// A pool has no state of its own.
CUDA_API int cudaMemPoolCreate(void** pool, const void* /*properties*/) {
  *pool = std::malloc(1);
  return kSuccess;
}
CUDA_API int cudaMemPoolDestroy(void* pool) {
  std::free(pool);
  return kSuccess;
}
CUDA_API int cudaMemPoolSetAttribute(void* /*pool*/, int /*attribute*/, void* /*value*/) {
  return kSuccess;
}
CUDA_API int cudaMallocAsync(void** pointer, size_t bytes, void* /*stream*/) {
  return Allocate(pointer, bytes, Place::kDevice);
}
CUDA_API int cudaMallocFromPoolAsync(void** pointer, size_t bytes, void* /*pool*/,
                                     void* /*stream*/) {
  return Allocate(pointer, bytes, Place::kDevice);
}

// cudaPointerAttributes.
struct PointerAttributes {
  int type;  // 0 unknown to CUDA, 1 host, 2 device
  int device;
  void *device_pointer, *host_pointer;
};
CUDA_API int cudaPointerGetAttributes(PointerAttributes* attributes, const void* pointer) {
  const std::optional<Allocation> found = AllocationOf(pointer);
  auto* const here = const_cast<void*>(pointer);
  if (!found) {
    *attributes = {0, -2, nullptr, here};
  } else if (found->place == Place::kHost) {
    *attributes = {1, found->device, here, here};
  } else {
    *attributes = {2, found->device, here, nullptr};
  }
  return kSuccess;
}
CUDA_API int cuPointerGetAttribute(void* value, int attribute, uintptr_t pointer) {
  const std::optional<Allocation> found = AllocationOf(reinterpret_cast<void*>(pointer));
  if (!found) return kInvalidValue;
  int result = 0;
  if (attribute == 2) result = found->place == Place::kHost ? 1 : 2;  // type of memory
  if (attribute == 9) result = found->device;
  if (attribute == 10) result = found->file >= 0 ? 1 : 0;  // other processes can map it
  std::memcpy(value, &result, sizeof result);
  return kSuccess;
}
CUDA_API int cuMemGetAddressRange(uintptr_t* address, size_t* bytes, uintptr_t pointer) {
  const std::optional<Allocation> found = AllocationOf(reinterpret_cast<void*>(pointer));
  if (!found) return kInvalidValue;
  if (address != nullptr) *address = found->address;
  if (bytes != nullptr) *bytes = found->bytes;
  return kSuccess;
}
