// SPDX-License-Identifier: Apache-2.0
//
// Keeps ranks that share memory on different cores. The kernel may put two on one core, where each
// runs only while the other does not, and leave them there: both are always runnable, and a rank
// that yields or sleeps is not moved. So a waiting rank publishes its core, and one that finds
// another on its core moves to a free core.
#ifndef RAILHEAD_RUNTIME_SHM_SPREAD_H_
#define RAILHEAD_RUNTIME_SHM_SPREAD_H_

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/clock.h"

namespace railhead::shm {

// One rank's part. Use from one thread at a time.
class Spread {
 public:
  // In shared memory; 0 before the rank has set it.
  using Core = std::atomic<uint32_t>;

  // By rank; must outlive this.
  Spread(std::vector<Core*> cores, size_t rank) : cores_(std::move(cores)), rank_(rank) {}

  // Call after waiting briefly. Returns true if every other rank was last seen on another core. The
  // thread's affinity is unchanged afterwards: a rank bound to one core stays there.
  bool Part();

 private:
  const std::vector<Core*> cores_;
  const size_t rank_;
  Clock clock_;
  int64_t next_move_ = 0;
};

// Returns the allowed cores without any rank, to move to if another rank is on this one's core;
// nullopt to stay. Cores are numbers.
std::optional<cpu_set_t> WhereTo(const cpu_set_t& allowed, size_t own,
                                 const std::vector<size_t>& others);

// Counts the cores in a kernel list ("0-3,8"); 0 for other text.
size_t CountCores(absl::string_view list);

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_SPREAD_H_
