// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_TESTS_NCCL_RCCL_KERNEL_H_
#define RAILHEAD_TESTS_NCCL_RCCL_KERNEL_H_

#include <cstdint>

namespace railhead::stock {

struct KernelArguments {
  const char* communicator;
  uint64_t channels;  // bits
  const char* works;  // the first of each channel, and others at offsets from here
};

// Does the work of a kernel of RCCL 5.4, until its end. Ends the process if it has work that is not
// emulated.
void RunRcclKernel(const KernelArguments& arguments);

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_RCCL_KERNEL_H_
