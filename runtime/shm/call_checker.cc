// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/call_checker.h"

#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

namespace railhead::shm {

CallChecker::CallChecker(std::byte* memory, int rank, std::vector<int> names)
    // A row of zeros is a row at its beginning.
    : rows_(std::launder(reinterpret_cast<Row*>(memory)), names.size()),
      rank_(static_cast<size_t>(rank)),
      names_(std::move(names)) {}

absl::Status CallChecker::Post(collectives::Call call) {
  const uint64_t number = ++calls_;
  Entry& mine = rows_[rank_].Of(number);
  mine.number.store(0, std::memory_order_relaxed);
  // A rank that sees this word also sees that the number has changed.
  mine.word.store(call.word(), std::memory_order_release);
  // In one order with the looks below: of two ranks, one sees the other's.
  mine.number.store(number, std::memory_order_seq_cst);
  for (size_t rank = 0; rank < rows_.size(); ++rank) {
    if (rank == rank_) continue;
    const Entry& theirs = rows_[rank].Of(number);
    if (theirs.number.load(std::memory_order_seq_cst) != number) continue;
    const collectives::Call word(theirs.word.load(std::memory_order_acquire));
    if (word == call || theirs.number.load(std::memory_order_relaxed) != number) continue;
    return absl::InternalError(
        collectives::Contradiction(absl::StrCat("rank ", names_[rank]), word, call));
  }
  return absl::OkStatus();
}

}  // namespace railhead::shm
