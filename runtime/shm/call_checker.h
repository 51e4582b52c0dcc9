// SPDX-License-Identifier: Apache-2.0
//
// Call checker of ranks that share memory. Messages and lanes detect contradicting calls only
// between ranks that wait for each other; if one waits in memory and another for a message, they do
// not. So every rank posts its calls here and compares them with the others'.
#ifndef RAILHEAD_RUNTIME_SHM_CALL_CHECKER_H_
#define RAILHEAD_RUNTIME_SHM_CALL_CHECKER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/collectives/call.h"

namespace railhead::shm {

// One rank's view. Use from one thread at a time.
class CallChecker {
 public:
  // Returns the bytes of memory needed, zero before the first rank's CallChecker is created.
  static size_t Bytes(int ranks) { return static_cast<size_t>(ranks) * sizeof(Row); }

  // `memory` is the same memory for all ranks (at any address), page aligned, and must outlive
  // this. `names`: numbers of these ranks in messages; this is index `rank`.
  CallChecker(std::byte* memory, int rank, std::vector<int> names);

  // Posts this rank's next call. Internal if another rank's call of the same number is known to
  // differ: the later of two detects it.
  absl::Status Post(collectives::Call call);

 private:
  // In shared memory; initially zero.
  struct Entry {
    std::atomic<uint64_t> number{0};  // of the call, from 1; 0 while `word` is written
    std::atomic<uint64_t> word{0};
  };
  // Last calls of a rank: as many as it can be ahead of another (lanes.h), and one.
  struct alignas(128) Row {
    std::array<Entry, 64> entries;
    Entry& Of(uint64_t number) { return entries[number % entries.size()]; }
  };
  static_assert(sizeof(Row) == 1024);

  const absl::Span<Row> rows_;
  const size_t rank_;
  const std::vector<int> names_;
  uint64_t calls_ = 0;
};

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_CALL_CHECKER_H_
