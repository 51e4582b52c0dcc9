// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/send_ledger.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "runtime/transport/link.h"

namespace railhead::rails {
namespace {

// A peer that has posted this many receives more than there are sends is not believed.
constexpr uint64_t kMaxPostedAhead = uint64_t{1} << 24;
// Maximum chunk of a transfer that the peer has not posted, if its room does not take it whole.
constexpr size_t kMaxEarlyChunk = size_t{256} << 10;

}  // namespace

uint64_t SendLedger::Post(absl::Span<const std::byte> data, collectives::Call call, size_t chunk,
                          bool may_copy) {
  const uint64_t number = sends_.Push();
  Send& send = sends_[number];
  send.may_copy = may_copy;
  send.copied = send.may_copy && data.size() <= kCopied;
  if (send.copied) {
    send.copy.assign(data.begin(), data.end());
    data = send.copy;
  }
  send.data = data;
  send.begin = 0;
  send.size = data.size();
  send.call = call;
  send.chunk = chunk;
  send.direct = false;
  send.handed = send.consumed = 0;
  waiting_ += data.size();
  early_[early_.Push()] = 0;
  while (early_.begin() < std::min(peer_posted_, early_.end())) early_.Pop();
  return number;
}

uint64_t SendLedger::PostDirect(absl::Span<const std::byte> data, collectives::Call call,
                                size_t chunk, const collectives::RemoteMemory& to) {
  const uint64_t number = Post(data, call, chunk, /*may_copy=*/false);
  sends_[number].direct = true;
  sends_[number].to = to;
  return number;
}

bool SendLedger::Done(uint64_t number) const {
  if (number < sends_.begin()) return true;
  const Send& send = sends_[number];
  return send.copied ? send.handed == send.size : send.complete();
}

std::optional<Chunk> SendLedger::Next() {
  if (!repeats_.empty()) return repeats_.front();
  while (next_ < sends_.end() && sends_[next_].handed == sends_[next_].size) ++next_;
  Retire();
  if (next_ == sends_.end()) return std::nullopt;
  const Send& send = sends_[next_];
  Chunk chunk = {next_, send.handed, std::min(send.chunk, send.size - send.handed)};
  if (!MayHand(chunk)) chunk.size = std::min(chunk.size, kMaxEarlyChunk);
  return MayHand(chunk) ? std::optional(chunk) : std::nullopt;
}

bool SendLedger::MayHand(const Chunk& chunk) const {
  return chunk.transfer < peer_posted_ || (chunk.transfer - peer_posted_ < kMaxTransfersAhead &&
                                           early_cost_ + FrameCost(chunk.size) <= kRoom);
}

SendLedger::Content SendLedger::ContentOf(const Chunk& chunk) const {
  const Send& send = sends_[chunk.transfer];
  return {send.data.subspan(chunk.offset - send.begin, chunk.size), send.call, send.size,
          send.copied, send.direct ? &send.to : nullptr};
}

void SendLedger::Handed(size_t rail, const Chunk& chunk) {
  Send& send = sends_[chunk.transfer];
  if (!repeats_.empty()) {
    repeats_.pop_front();
  } else {
    if (!any_lost_) ++progress_;
    send.handed += chunk.size;
    if (chunk.transfer >= peer_posted_) {
      early_[chunk.transfer] += FrameCost(chunk.size);
      early_cost_ += FrameCost(chunk.size);
    }
  }
  waiting_ -= chunk.size;
  SlotQueue<Chunk>& under_way = under_way_[rail];
  const uint64_t place = under_way.Push();
  under_way[place] = chunk;
}

void SendLedger::HandedNote(size_t rail) {
  SlotQueue<Chunk>& under_way = under_way_[rail];
  const uint64_t place = under_way.Push();
  under_way[place] = {kNote, 0, 0};
}

bool SendLedger::Consumed(size_t rail, uint64_t left) {
  SlotQueue<Chunk>& under_way = under_way_[rail];
  const uint64_t before = under_way.begin();
  for (; under_way.end() - under_way.begin() > left; under_way.Pop()) {
    const Chunk& chunk = under_way[under_way.begin()];
    if (chunk.transfer == kNote) continue;
    sends_[chunk.transfer].consumed += chunk.size;
    ++progress_;
  }
  Retire();
  return under_way.begin() != before;
}

void SendLedger::Retire() {
  while (sends_.begin() < next_ && sends_[sends_.begin()].complete()) sends_.Pop();
}

uint64_t SendLedger::RailLost(size_t rail) {
  any_lost_ = true;
  SlotQueue<Chunk>& under_way = under_way_[rail];
  uint64_t bytes = 0;
  for (; !under_way.empty(); under_way.Pop()) {
    Chunk& chunk = under_way[under_way.begin()];
    if (chunk.transfer == kNote) continue;
    chunk.lost_rails |= transport::LostRailBit(rail);
    repeats_.push_back(chunk);
    bytes += chunk.size;
  }
  waiting_ += bytes;
  std::sort(repeats_.begin(), repeats_.end(), [](const Chunk& a, const Chunk& b) {
    return std::tie(a.transfer, a.offset) < std::tie(b.transfer, b.offset);
  });
  return bytes;
}

absl::Status SendLedger::PeerPosted(uint32_t count) {
  // Frames of different rails overtake each other, so what comes may be older than what is known.
  const auto news = static_cast<int32_t>(count - static_cast<uint32_t>(peer_posted_));
  if (news <= 0) return absl::OkStatus();
  const uint64_t posted = peer_posted_ + static_cast<uint64_t>(news);
  if (posted > sends_.end() + kMaxPostedAhead) {
    return absl::InternalError(absl::StrCat("the peer claims to have posted ", posted,
                                            " receives, and this rank has posted ", sends_.end(),
                                            " sends"));
  }
  peer_posted_ = posted;
  for (; early_.begin() < std::min(peer_posted_, early_.end()); early_.Pop()) {
    early_cost_ -= early_[early_.begin()];
  }
  ++progress_;
  return absl::OkStatus();
}

bool SendLedger::CopyTail() {
  // All is handed out whole, so what is under way is all that is not consumed.
  if (waiting_ > 0) return false;
  std::map<uint64_t, size_t> begins;  // of transfers that are not copied
  for (const SlotQueue<Chunk>& under_way : under_way_) {
    for (uint64_t i = under_way.begin(); i < under_way.end(); ++i) {
      const Chunk& chunk = under_way[i];
      if (chunk.transfer == kNote || sends_[chunk.transfer].copied) continue;
      if (!sends_[chunk.transfer].may_copy) return false;
      size_t& begin = begins.try_emplace(chunk.transfer, chunk.offset).first->second;
      begin = std::min(begin, chunk.offset);
    }
  }
  size_t bytes = 0;
  for (const auto& [number, begin] : begins) bytes += sends_[number].size - begin;
  if (bytes == 0 || bytes > kMaxTail) return false;
  for (const auto& [number, begin] : begins) {
    Send& send = sends_[number];
    const absl::Span<const std::byte> rest = send.data.subspan(begin - send.begin);
    send.copy.assign(rest.begin(), rest.end());
    send.data = send.copy;
    send.begin = begin;
    send.copied = true;
  }
  ++progress_;
  return true;
}

SendLedger::Oldest SendLedger::oldest() const {
  const Send& send = sends_[sends_.begin()];
  return {sends_.begin(), send.handed, send.consumed, send.size, sends_.begin() < peer_posted_};
}

}  // namespace railhead::rails
