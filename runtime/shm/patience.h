// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_SHM_PATIENCE_H_
#define RAILHEAD_RUNTIME_SHM_PATIENCE_H_

#include <atomic>

#include "absl/time/time.h"

namespace railhead::shm {

// How to wait.
struct Patience {
  // How long to look before sleeping. Nothing where ranks outnumber cores: what is waited for needs
  // the core.
  absl::Duration look;
  absl::Duration limit;                          // then DeadlineExceeded
  const std::atomic<bool>* cancelled = nullptr;  // when it becomes true: Cancelled
};

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_PATIENCE_H_
