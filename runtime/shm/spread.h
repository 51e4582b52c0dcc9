// SPDX-License-Identifier: Apache-2.0
//
// Keeps ranks that share memory on different cores. The kernel may put two on one, where each runs
// only while the other does not, and leave them there: both are always about to run, and a rank
// that yields or sleeps is not moved. So a rank that waits says where it runs, and one that finds
// another on its core goes to a core where none of them is.
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

// One rank's part. Used by one thread at a time.
class Spread {
 public:
  // In shared memory; 0 before the rank has said it.
  using Core = std::atomic<uint32_t>;

  // By rank; they outlive this.
  Spread(std::vector<Core*> cores, size_t rank) : cores_(std::move(cores)), rank_(rank) {}

  // For a rank that has waited for a moment. Returns whether every other rank was last seen on
  // another core than this one. What this thread may run on is afterwards what it was before: who
  // is bound to one core stays there.
  bool Part();

 private:
  const std::vector<Core*> cores_;
  const size_t rank_;
  Clock clock_;
  int64_t next_move_ = 0;
};

// Where a rank goes of the cores that it may use, if another one is on its own: to those where none
// is. Nothing where it stays. Cores are numbers.
std::optional<cpu_set_t> WhereTo(const cpu_set_t& allowed, size_t own,
                                 const std::vector<size_t>& others);

// How many there are in a list of the kernel's ("0-3,8"); 0 for anything else.
size_t CountCores(absl::string_view list);

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_SPREAD_H_
