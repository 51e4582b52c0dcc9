// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_TESTS_NCCL_STOCK_KERNELS_RUN_H_
#define RAILHEAD_TESTS_NCCL_STOCK_KERNELS_RUN_H_

#include <string>

namespace railhead::stock {

// Does what NCCL's kernel of this name does with its arguments, and returns when it would end.
// A thread stands for each block, that is, for each channel.
void RunKernel(const std::string& name, const char* arguments);

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_KERNELS_RUN_H_
