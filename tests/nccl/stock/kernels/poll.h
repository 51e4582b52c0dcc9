// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_TESTS_NCCL_STOCK_KERNELS_POLL_H_
#define RAILHEAD_TESTS_NCCL_STOCK_KERNELS_POLL_H_

#include <sched.h>
#include <time.h>

#include <cstdint>

namespace railhead::stock {

// Waits until ready() is true. Returns false if the communicator is aborted first. Leaves the CPU
// to others soon: there are more kernels than cores.
template <class Ready>
bool Poll(const volatile uint32_t* abort, Ready ready) {
  constexpr int kSpins = 64, kYields = 512;
  for (int tries = 0; !ready(); ++tries) {
    if (tries < kSpins) continue;
    if (abort != nullptr && *abort != 0) return false;
    if (tries < kYields) {
      sched_yield();
    } else {
      const timespec pause = {0, 20'000};
      nanosleep(&pause, nullptr);
    }
  }
  return true;
}

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_KERNELS_POLL_H_
