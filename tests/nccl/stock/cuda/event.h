// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_TESTS_NCCL_STOCK_CUDA_EVENT_H_
#define RAILHEAD_TESTS_NCCL_STOCK_CUDA_EVENT_H_

namespace railhead::stock {

// Records the event as reached, whatever its stream does.
void MarkReached(void* event);

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_CUDA_EVENT_H_
