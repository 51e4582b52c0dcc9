// SPDX-License-Identifier: Apache-2.0
//
// Device memory of one process in another one: the memfd of the allocation, opened by way of /proc.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tests/nccl/stock/cuda/api.h"
#include "tests/nccl/stock/cuda/device.h"
#include "tests/nccl/stock/cuda/memory.h"

using namespace railhead::stock;  // NOLINT: the functions below have CUDA's names

// cudaIpcMemHandle_t: 64 bytes.
struct IpcHandle {
  int process, file;
  size_t bytes;
  char reserved[48];
};
static_assert(sizeof(IpcHandle) == 64);

CUDA_API int cudaIpcGetMemHandle(IpcHandle* handle, void* pointer) {
  const std::optional<Allocation> found = AllocationOf(pointer);
  if (!found || found->file < 0) return kInvalidValue;
  *handle = {getpid(), found->file, found->bytes, {}};
  return kSuccess;
}
CUDA_API int cudaIpcOpenMemHandle(void** pointer, IpcHandle handle, unsigned /*flags*/) {
  const std::string path =
      "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return kInvalidValue;
  *pointer = mmap(nullptr, handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (*pointer == MAP_FAILED) return kOutOfMemory;
  Add({reinterpret_cast<uintptr_t>(*pointer), handle.bytes, CurrentDevice(), Place::kDevice, -1,
       true});
  return kSuccess;
}
CUDA_API int cudaIpcCloseMemHandle(void* pointer) { return Free(pointer); }
