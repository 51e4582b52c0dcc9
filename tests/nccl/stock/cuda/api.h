// SPDX-License-Identifier: Apache-2.0
//
// CUDA on the CPU: what the files of this folder share. They define the functions of CUDA's runtime
// and driver and of NVML that NCCL calls, under their own names, from NVIDIA's public
// documentation. "Device" memory is memory of the host, a stream is a thread with a queue, an event
// is a flag.
#ifndef RAILHEAD_TESTS_NCCL_STOCK_CUDA_API_H_
#define RAILHEAD_TESTS_NCCL_STOCK_CUDA_API_H_

// A function that NCCL finds by its name.
#define CUDA_API extern "C" __attribute__((visibility("default")))

namespace railhead::stock {

// cudaError_t and CUresult, which have the same numbers here.
enum Error : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidDevice = 101,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kNotSupported = 801,
};

// Writes a line to stderr.
void Log(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Reports what the emulation lacks, and ends the process.
[[noreturn]] void GiveUp(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_CUDA_API_H_
