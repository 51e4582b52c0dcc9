// SPDX-License-Identifier: Apache-2.0
//
// The emulated GPUs: eight of compute capability 9.0, at PCI buses 10 to 17, without virtual memory
// management and multicast. With EMULATED_GPUDIRECT=1, NICs can reach their memory.
#ifndef RAILHEAD_TESTS_NCCL_STOCK_CUDA_DEVICE_H_
#define RAILHEAD_TESTS_NCCL_STOCK_CUDA_DEVICE_H_

namespace railhead::stock {

inline constexpr int kDevices = 8;
inline constexpr int kCapabilityMajor = 9;
inline constexpr int kCapabilityMinor = 0;
inline constexpr unsigned kFirstPciBus = 0x10;
inline constexpr int kDriverVersion = 12010;

// The calling thread's device.
int CurrentDevice();
void SetCurrentDevice(int device);

// Returns the value of an attribute; runtime and driver use the same numbers.
int DeviceAttribute(int attribute);

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_CUDA_DEVICE_H_
