// SPDX-License-Identifier: Apache-2.0
//
// Collectives on memory that all ranks can reach (window.h): no cells, no copies. Ranks meet, after
// which all inputs are there and their places known; then each does its part, from all inputs to
// all outputs in one pass; and each leaves only after all have done theirs.
//
// Meeting takes one chunk's number. The notice of a rank has the places of its buffers.
#include <algorithm>
#include <cstring>

#include "runtime/shm/group.h"
#include "runtime/shm/stores.h"

namespace railhead::shm {
namespace {

// Below it, copying takes less time than to meet and to depart.
constexpr size_t kWorthMeeting = size_t{4} << 10U;

// Place of a buffer in the windows.
struct Place {
  enum Kind : uint32_t { kUnused, kNowhere, kInWindow };
  Kind kind = kUnused;
  uint32_t window = 0;
  uint64_t offset = 0;
};

struct Buffers {
  Place send;
  Place receive;
};
static_assert(sizeof(Buffers) <= Lanes::kInlined);

Place Find(const std::vector<Window>& windows, size_t rank, absl::Span<const std::byte> buffer) {
  if (buffer.empty()) return {};
  for (size_t i = 0; i < windows.size(); ++i) {
    if (windows[i].memory.empty()) continue;
    const absl::Span<const std::byte> own = windows[i].memory[rank];
    if (buffer.data() >= own.data() && buffer.data() + buffer.size() <= own.data() + own.size()) {
      return {Place::kInWindow, static_cast<uint32_t>(i),
              static_cast<uint64_t>(buffer.data() - own.data())};
    }
  }
  return {Place::kNowhere};
}

}  // namespace

size_t Group::Open(Window window) {
  const auto closed = std::find_if(windows_.begin(), windows_.end(),
                                   [](const Window& old) { return old.memory.empty(); });
  const auto place = static_cast<size_t>(closed - windows_.begin());
  if (closed == windows_.end()) windows_.emplace_back();
  windows_[place] = std::move(window);
  return place;
}

void Group::Close(size_t window) {
  windows_[window] = {};
  while (!windows_.empty() && windows_.back().memory.empty()) windows_.pop_back();
}

absl::StatusOr<bool> Group::Meet(absl::Span<const std::byte> send, absl::Span<std::byte> receive,
                                 size_t largest, const Patience& patience) {
  if (windows_.empty() || largest <= kWorthMeeting) return false;
  const int64_t number = Number(0);
  if (absl::Status free = AwaitPlace(number, true, patience); !free.ok()) return free;
  const Buffers mine = {Find(windows_, rank_, send), Find(windows_, rank_, receive)};
  std::memcpy(lanes_.Inlined(rank_, number), &mine, sizeof(mine));
  lanes_.Advance(Progress::kFilled, number);
  if (absl::Status filled = lanes_.AwaitAll(Progress::kFilled, number, patience); !filled.ok()) {
    return filled;
  }
  bool all = true;
  for (size_t rank = 0; rank < ranks_; ++rank) {
    Buffers theirs;
    std::memcpy(&theirs, lanes_.Inlined(rank, number), sizeof(theirs));
    const auto reach = [&](const Place& place) -> std::byte* {
      all = all && place.kind != Place::kNowhere;
      if (place.kind != Place::kInWindow) return nullptr;
      return windows_[place.window].memory[rank].data() + place.offset;
    };
    inputs_[rank] = reach(theirs.send);
    outputs_[rank] = reach(theirs.receive);
  }
  if (!all) {
    // Something else follows at once.
    lanes_.ReducedLater(number);
    done_ = number;
  }
  return all;
}

absl::Status Group::Depart(const Patience& patience) {
  const int64_t number = Number(0);
  lanes_.Advance(Progress::kReduced, number);
  done_ = number;
  return lanes_.AwaitAll(Progress::kReduced, number, patience);
}

void Group::Directly(const reduce::Reduction& reduction, absl::Span<const std::byte* const> from,
                     size_t from_offset, size_t to_offset, size_t count, reduce::Stores stores) {
  addresses_.clear();
  for (const std::byte* input : from) addresses_.push_back(input + from_offset);
  // Its own first, or whichever there is.
  copies_.clear();
  for (size_t step = 0; step < ranks_; ++step) {
    std::byte* const output = outputs_[(rank_ + step) % ranks_];
    if (output == nullptr) continue;
    std::byte* const to = output + to_offset;
    // A single input in place is where it belongs.
    if (addresses_.size() > 1 || to != addresses_.front()) copies_.push_back(to);
  }
  if (count == 0 || copies_.empty()) return;
  reduce::Reduce(reduction, addresses_, copies_.front(), count, stores,
                 {absl::MakeConstSpan(copies_).subspan(1), stores});
}

absl::Status Group::ReduceDirectly(const Work& work) {
  const Part mine = Mine(work.bytes);
  const size_t size = mine.end - mine.begin;
  Directly(work.reduction, inputs_, mine.begin, mine.begin, size / work.element, work.stores);
  Count(work.bytes - size + OtherReaders(work) * size,
        (ranks_ - 1) * size + (work.receive != nullptr ? work.bytes - size : 0));
  return Depart(work.patience);
}

}  // namespace railhead::shm
