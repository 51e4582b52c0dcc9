// SPDX-License-Identifier: Apache-2.0
//
// Allocations, and which addresses belong to them. Thread-safe.
#ifndef RAILHEAD_TESTS_NCCL_STOCK_CUDA_MEMORY_H_
#define RAILHEAD_TESTS_NCCL_STOCK_CUDA_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>

namespace railhead::stock {

enum class Place { kHost, kDevice };

struct Allocation {
  uintptr_t address;
  size_t bytes;
  int device;
  Place place;
  int file;     // a memfd with the contents, so that other processes can map them; -1: none
  bool mapped;  // freed with it; else the memory is the caller's
};

// Allocates whole pages, on the calling thread's device.
int Allocate(void** pointer, size_t bytes, Place place);
// Adds an allocation that was made elsewhere.
void Add(const Allocation& allocation);
int Free(void* pointer);
// Returns the allocation that contains the address.
std::optional<Allocation> AllocationOf(const void* pointer);

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_CUDA_MEMORY_H_
