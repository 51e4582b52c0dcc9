// SPDX-License-Identifier: Apache-2.0
//
// Where ranks that share memory say what they call. Messages and lanes tell ranks that contradict
// each other so only if these wait for each other; where one call waits in memory and another for a
// message, they may not. So every rank posts its calls here, and looks at what the others posted.
#ifndef RAILHEAD_RUNTIME_SHM_BOARD_H_
#define RAILHEAD_RUNTIME_SHM_BOARD_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/collectives/call.h"

namespace railhead::shm {

// One rank's view of it. Used by one thread at a time.
class Board {
 public:
  // How much memory it needs. It is zero before the first rank's Board begins.
  static size_t Bytes(int ranks) { return static_cast<size_t>(ranks) * sizeof(Row); }

  // `memory` is the same memory for all ranks (at whatever address), aligned to a page, and
  // outlives this. `names`: what others call these ranks, of which this is number `rank`.
  Board(std::byte* memory, int rank, std::vector<int> names);

  // Says what this rank calls next. Internal when another rank's call of the same number is known
  // to be something else: of two, the one that comes later learns it.
  absl::Status Post(collectives::Call call);

 private:
  // In shared memory; all zero at first.
  struct Entry {
    std::atomic<uint64_t> number{0};  // of the call, from 1; 0 while `word` is written
    std::atomic<uint64_t> word{0};
  };
  // A rank's last calls.
  struct alignas(128) Row {
    std::array<Entry, 8> entries;
    Entry& Of(uint64_t number) { return entries[number % entries.size()]; }
  };
  static_assert(sizeof(Row) == 128);

  const absl::Span<Row> rows_;
  const size_t rank_;
  const std::vector<int> names_;
  uint64_t calls_ = 0;
};

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_BOARD_H_
