// SPDX-License-Identifier: Apache-2.0
//
// Collectives on memory that all ranks can reach (window.h): no cells, no copies. Ranks meet, after
// which all inputs are there and their places known; then each does its part, from all inputs to
// all outputs in one pass; and each leaves only after all have done theirs.
//
// A rank that stands still in its part, or has not noticed yet that the call has failed, continues
// to write when others have gone on without it. So a rank whose call fails puts new pages under its
// output (Withdraw). Ranks therefore write only to whole pages of others' outputs: what shares a
// page with other data is written by its owner alone. And a rank whose call succeeds makes sure
// that no other has failed in it, and changed its input since.
//
// Meeting takes one chunk's number. The notice of a rank has the places of its buffers.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "runtime/base/round_up.h"
#include "runtime/shm/group.h"
#include "runtime/shm/limits.h"

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
    const Window& window = windows[i];
    const absl::Span<const std::byte> own = window.memory[rank];
    if (!window.segments.empty() && !window.segments[rank]->IsShared(buffer)) continue;
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
  if (mine.receive.kind == Place::kInWindow && !windows_[mine.receive.window].segments.empty()) {
    exposed_ = receive;
    exposed_segment_ = windows_[mine.receive.window].segments[rank_];
  }
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
    exposed_ = {};
  }
  return all;
}

absl::Status Group::Depart(const Patience& patience) {
  const int64_t number = Number(0);
  lanes_.Advance(Progress::kReduced, number);
  done_ = number;
  absl::Status all = lanes_.AwaitAll(Progress::kReduced, number, patience);
  if (all.ok()) all = lanes_.NoneWithdrew(number);
  if (all.ok()) exposed_ = {};
  return all;
}

absl::Status Group::Withdraw() {
  lanes_.Withdraw();
  if (exposed_.empty()) return absl::OkStatus();
  return exposed_segment_->Withdraw(std::exchange(exposed_, {}));
}

Group::Part Group::Inside(size_t bytes, size_t element) const {
  Part inside = {0, bytes};
  for (const std::byte* output : outputs_) {
    if (output == nullptr) continue;
    const auto address = reinterpret_cast<uintptr_t>(output);
    const uintptr_t end = (address + bytes) / kPage * kPage;
    inside.begin = std::max(inside.begin, RoundUp(address, kPage) - address);
    inside.end = std::min(inside.end, std::max(end, address) - address);
  }
  inside.begin = RoundUp(inside.begin, element);
  inside.end = inside.end / element * element;
  return inside.begin < inside.end ? inside : Part{};
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
  const Part inside = Inside(work.bytes, work.element);
  const Part part = Mine(inside.size());
  const size_t begin = inside.begin + part.begin;
  Directly(work.reduction, inputs_, begin, begin, part.size() / work.element, work.stores);
  const std::array<Part, 2> ends = {{{0, inside.begin}, {inside.end, work.bytes}}};
  const size_t size = work.receive != nullptr ? work.bytes - inside.size() : 0;
  ends_.resize(size);
  std::byte* result = ends_.data();
  for (const Part& end : ends) {
    if (size == 0 || end.size() == 0) continue;
    addresses_.clear();
    for (const std::byte* input : inputs_) addresses_.push_back(input + end.begin);
    reduce::Reduce(work.reduction, addresses_, result, end.size() / work.element,
                   reduce::Stores::kNormal);
    result += end.size();
  }
  const size_t taken = work.receive != nullptr ? inside.size() - part.size() : 0;
  const size_t outside = work.bytes - inside.size();
  Count(inside.size() - part.size() + OtherReaders(work) * (part.size() + outside),
        (ranks_ - 1) * (part.size() + size) + taken);
  if (absl::Status departed = Depart(work.patience); !departed.ok()) return departed;
  // In place these are inputs, too, until all have departed.
  if (size > 0) {
    std::memcpy(work.receive, ends_.data(), ends[0].size());
    std::memcpy(work.receive + ends[1].begin, ends_.data() + ends[0].size(), ends[1].size());
  }
  return absl::OkStatus();
}

void Group::GatherDirectly(const Parts& parts, std::byte* receive, reduce::Stores stores) {
  const size_t bytes = parts.end();
  const Part inside = Inside(bytes, 1);
  const auto common = [](const Range& part, const Part& with) {
    const size_t begin = std::max(part.begin, with.begin);
    const size_t end = std::min(part.begin + part.size, with.end);
    return Part{begin, std::max(begin, end)};
  };
  const Range mine = parts[rank_];
  const Part given = common(mine, inside);
  if (given.size() > 0) {
    Directly(kBytes, {&inputs_[rank_], 1}, given.begin - mine.begin, given.begin, given.size(),
             stores);
  }
  if (outputs_[rank_] == nullptr) return;
  for (const Part& end : {Part{0, inside.begin}, Part{inside.end, bytes}}) {
    for (size_t rank = 0; rank < ranks_; ++rank) {
      const Range part = parts[rank];
      const Part own = common(part, end);
      if (own.size() == 0) continue;
      reduce::Copy(inputs_[rank] + (own.begin - part.begin), receive + own.begin, own.size(),
                   reduce::Stores::kNormal);
    }
  }
}

}  // namespace railhead::shm
