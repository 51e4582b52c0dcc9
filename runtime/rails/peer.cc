// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/peer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/rails/chunk.h"
#include "runtime/reduce/reduce.h"

namespace railhead::rails {
namespace {

// The other rank may be this many transfers ahead before it must be talking nonsense.
constexpr uint64_t kFurthestAhead = uint64_t{1} << 24;

// What the peer says of a rail may be this old: it does not count for one that has returned since.
constexpr absl::Duration kOldNews = absl::Seconds(1);
// How many frames may be taken before the peer is told of an older one by a message of its own. It
// goes no further past one that it does not know to be taken than it can be put aside.
constexpr uint64_t kLongestDebt = Stash::kFrames / 4;

// Rails that have no bit are not told of.
uint16_t BitOf(size_t rail) { return static_cast<uint16_t>(rail < 16 ? 1U << rail : 0); }

}  // namespace

std::string ToString(const RailName& name) {
  return absl::StrCat("rail ", name.rail, " (", name.device,
                      name.port > 0 ? absl::StrCat(" port ", name.port) : "", ", ", name.transport,
                      ")");
}

Peer::Peer(std::string name, std::vector<Rail> rails, Logger log)
    : name_(std::move(name)),
      log_(std::move(log)),
      rails_(std::move(rails)),
      states_(rails_.size()),
      shares_(rails_.size()),
      max_payload_(SIZE_MAX) {
  for (const Rail& rail : rails_) {
    max_payload_ = std::min(max_payload_, rail.link->max_payload());
    recovers_ = recovers_ && rail.link->recovers();
  }
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (rails_[i].link->connected()) continue;
    states_[i].health.up.store(false, std::memory_order_relaxed);
    shares_.SetUp(i, false);
  }
}

uint64_t Peer::PostSend(absl::Span<const std::byte> data) {
  const uint64_t number = sends_.Push();
  Send& send = sends_[number];
  send.may_be_copied = recovers_ && copies_small_;
  send.copied = send.may_be_copied && data.size() <= kCopied;
  if (send.copied) {
    send.copy.assign(data.begin(), data.end());
    data = send.copy;
  }
  send.data = data;
  send.begin = 0;
  send.size = data.size();
  send.call = call_;
  send.chunk = ChunkSize(data.size(), rails_.size(), max_payload_);
  send.taken = send.acknowledged = 0;
  waiting_ += data.size();
  // Who waits for a small message should not wait until this side has looked at all its rails.
  if (send.copied && waiting_ == data.size()) send_error_.Update(Pull());
  return number;
}

uint64_t Peer::PostReceive(const collectives::ReceiveBuffer& buffer) {
  const uint64_t number = receives_.Push();
  Receive& receive = receives_[number];
  receive.buffer = buffer;
  receive.call = call_;
  receive.arrived.Clear();
  receive.done = buffer.size == 0;
  stash_.Take(number,
              [&](const transport::FrameHeader& header, absl::Span<const std::byte> payload) {
                receive_error_.Update(Place(header, payload));
              });
  while (!receives_.empty() && receives_[receives_.begin()].done) receives_.Pop();
  return number;
}

bool Peer::SendDone(uint64_t ticket) const {
  if (ticket < sends_.begin()) return true;
  const Send& send = sends_[ticket];
  return send.copied ? send.taken == send.size : send.complete();
}

bool Peer::KeepUnacknowledged() {
  if (!Flushed()) return false;
  // What has not reached the peer's machine would be taken for slowness of its rail by what is
  // posted next.
  if (std::any_of(rails_.begin(), rails_.end(),
                  [](const Rail& rail) { return rail.link->load().backlog > 0; })) {
    return false;
  }
  // All are handed out whole, so what is under way is all that is not acknowledged.
  std::map<uint64_t, size_t> begins;  // of transfers that are not copied
  for (const RailState& state : states_) {
    for (uint64_t i = state.underway.begin(); i < state.underway.end(); ++i) {
      const Chunk& chunk = state.underway[i];
      if (sends_[chunk.transfer].copied) continue;
      if (!sends_[chunk.transfer].may_be_copied) return false;
      size_t& begin = begins.try_emplace(chunk.transfer, chunk.offset).first->second;
      begin = std::min(begin, chunk.offset);
    }
  }
  size_t bytes = 0;
  for (const auto& [number, begin] : begins) bytes += sends_[number].size - begin;
  if (bytes == 0 || bytes > kKept) return false;
  for (const auto& [number, begin] : begins) {
    Send& send = sends_[number];
    const absl::Span<const std::byte> rest = send.data.subspan(begin - send.begin);
    send.copy.assign(rest.begin(), rest.end());
    send.data = send.copy;
    send.begin = begin;
    send.copied = true;
    // What is posted by now the receiver asks for without it; what comes after may be put aside.
    send.ahead_of_it = handed_;
  }
  oldest_copy_ = std::min(oldest_copy_, begins.begin()->first);
  Progress();
  return true;
}

bool Peer::ReceiveDone(uint64_t ticket) const {
  return ticket < receives_.begin() || (ticket < receives_.end() && receives_[ticket].done);
}

bool Peer::Flushed() const {
  return waiting_ == 0 && std::all_of(rails_.begin(), rails_.end(),
                                      [](const Rail& rail) { return rail.link->Flushed(); });
}

bool Peer::Restless() const {
  return std::any_of(states_.begin(), states_.end(), [](const RailState& state) {
    return !state.underway.empty() || !state.health.up.load(std::memory_order_relaxed);
  });
}

absl::Status Peer::LinkError(size_t index, const absl::Status& status) const {
  return absl::Status(status.code(), absl::StrCat(ToString(rails_[index].name), " to ", name_, ": ",
                                                  status.message()));
}

absl::StatusOr<bool> Peer::Poll(absl::Time now) {
  if (!send_error_.ok()) return send_error_;
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (!states_[i].health.up.load(std::memory_order_relaxed)) TryToReturn(i, now);
    if (!states_[i].health.up.load(std::memory_order_relaxed)) continue;
    if (absl::Status polled = PollRail(i, now); !polled.ok()) return polled;
  }
  if (peers_lost_ != 0) {
    if (absl::Status lost = LoseWithPeer(now); !lost.ok()) return lost;
  }
  if (absl::Status pulled = Pull(); !pulled.ok()) return pulled;
  Retire();
  return std::exchange(moved_, false);
}

uint16_t Peer::LostRails() const {
  uint16_t lost = 0;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].health.lost.load(std::memory_order_relaxed)) lost |= BitOf(i);
  }
  return lost;
}

absl::Status Peer::LoseWithPeer(absl::Time now) {
  const uint16_t theirs = std::exchange(peers_lost_, 0);
  for (size_t i = 0; i < rails_.size(); ++i) {
    RailState& state = states_[i];
    const bool up = state.health.up.load(std::memory_order_relaxed);
    if ((theirs & BitOf(i)) == 0 || !up || now - state.back < kOldNews) continue;
    constexpr absl::string_view kWhy = "the peer has lost it";
    rails_[i].link->Drop(kWhy);
    if (absl::Status fatal = Lose(i, absl::UnavailableError(kWhy)); !fatal.ok()) return fatal;
  }
  return absl::OkStatus();
}

void Peer::Progress() {
  moved_ = true;
  ++progress_;
}

absl::Status Peer::PollRail(size_t index, absl::Time now) {
  transport::Link& link = *rails_[index].link;
  const absl::StatusOr<bool> polled =
      link.Poll([this](const transport::FrameHeader& header, absl::Span<const std::byte> payload) {
        return Take(header, payload);
      });
  if (!receive_error_.ok()) return LinkError(index, receive_error_);
  TakeAcknowledgements(index);
  if (!polled.ok()) return Lose(index, polled.status());
  RailState& state = states_[index];
  if (*polled) {
    moved_ = true;
    // A part of a frame counts, too, but not where it may be the same part again and again.
    if (state.health.failovers.load(std::memory_order_relaxed) == 0) ++progress_;
  }
  shares_.SetFull(index, false);
  if (rails_.size() > 1) {
    if (absl::Status told = TellInTime(index); !told.ok()) return Lose(index, told);
    const transport::Link::Load load = link.load();
    shares_.SetOwing(index, state.owes);
    shares_.SetRoundTrip(index, link.round_trip());
    shares_.Observe(index, now, load.backlog, load.delivered);
    link.SetHold(shares_.Hold(index));
    state.health.rate.store(shares_.Rate(index), std::memory_order_relaxed);
  }
  return absl::OkStatus();
}

absl::Status Peer::TellInTime(size_t index) {
  RailState& state = states_[index];
  transport::Link& link = *rails_[index].link;
  if (!std::exchange(state.owes, link.owes())) state.owes_since = taken_;
  if (!state.owes || taken_ - state.owes_since < kLongestDebt) return absl::OkStatus();
  if (absl::Status told = link.Acknowledge(); !told.ok()) return told;
  state.owes = link.owes();
  return absl::OkStatus();
}

absl::Status Peer::OnAll(absl::FunctionRef<absl::Status(transport::Link& link)> does) {
  for (size_t i = 0; i < rails_.size(); ++i) {
    const absl::Status done = does(*rails_[i].link);
    if (done.ok() || !states_[i].health.up.load(std::memory_order_relaxed)) continue;
    if (absl::Status fatal = Lose(i, done); !fatal.ok()) return fatal;
  }
  return absl::OkStatus();
}

absl::Status Peer::Pull() {
  Chunk chunk;
  held_back_ = false;
  while (NextChunk(&chunk)) {
    const bool repeat = !repeats_.empty();
    // A chunk keeps its size for life, so only a new one is cut to fit the rail.
    const std::optional<size_t> rail = shares_.Pick(chunk.size, !repeat, waiting_);
    if (!rail.has_value()) {
      held_back_ = shares_.HoldsBack();
      break;
    }
    if (!repeat && rails_.size() > 1) chunk.size = std::min(chunk.size, shares_.Piece(*rail));
    const Send& send = sends_[chunk.transfer];
    const absl::StatusOr<bool> accepted =
        rails_[*rail].link->TrySend({chunk.transfer, chunk.offset, repeat,
                                     recovers_ && !send.copied, send.call.word(), LostRails()},
                                    send.BytesOf(chunk));
    if (!accepted.ok()) {
      if (absl::Status fatal = Lose(*rail, accepted.status()); !fatal.ok()) return fatal;
      continue;
    }
    if (!*accepted) {
      shares_.SetFull(*rail, true);
      continue;
    }
    Hand(*rail, chunk);
  }
  return absl::OkStatus();
}

bool Peer::NextChunk(Chunk* chunk) {
  if (!repeats_.empty()) {
    *chunk = repeats_.front();
    return true;
  }
  while (next_ < sends_.end() && sends_[next_].taken == sends_[next_].size) ++next_;
  if (next_ == sends_.end()) return false;
  const Send& send = sends_[next_];
  *chunk = {next_, send.taken, std::min(send.chunk, send.size - send.taken)};
  return MayRunAhead(chunk->size);
}

bool Peer::MayRunAhead(size_t bytes) {
  oldest_copy_ = std::max(oldest_copy_, sends_.begin());
  while (oldest_copy_ < next_ &&
         (!sends_[oldest_copy_].copied || sends_[oldest_copy_].complete())) {
    ++oldest_copy_;
  }
  if (oldest_copy_ == next_) return true;
  const Count& then = sends_[oldest_copy_].ahead_of_it;
  return handed_.bytes - then.bytes + bytes <= Stash::kBytes &&
         handed_.frames - then.frames < Stash::kFrames;
}

void Peer::Hand(size_t index, const Chunk& chunk) {
  Send& send = sends_[chunk.transfer];
  if (!repeats_.empty()) {
    repeats_.pop_front();
    moved_ = true;
  } else {
    Progress();
    if (send.taken == 0) send.ahead_of_it = handed_;
    send.taken += chunk.size;
    handed_.bytes += chunk.size;
    ++handed_.frames;
  }
  waiting_ -= chunk.size;
  states_[index].owes = false;  // it tells of them in passing
  shares_.Give(index, chunk.size);
  if (recovers_) {
    SlotQueue<Chunk>& underway = states_[index].underway;
    const uint64_t place = underway.Push();
    underway[place] = chunk;
  } else {
    send.acknowledged += chunk.size;
  }
}

void Peer::TakeAcknowledgements(size_t index) {
  SlotQueue<Chunk>& underway = states_[index].underway;
  const uint64_t left = rails_[index].link->unacknowledged();
  while (underway.end() - underway.begin() > left) {
    const Chunk& chunk = underway[underway.begin()];
    sends_[chunk.transfer].acknowledged += chunk.size;
    underway.Pop();
    Progress();
  }
}

void Peer::Retire() {
  while (sends_.begin() < next_ && sends_[sends_.begin()].complete()) sends_.Pop();
}

absl::Status Peer::Lose(size_t index, const absl::Status& status) {
  RailState& state = states_[index];
  state.health.up.store(false, std::memory_order_relaxed);
  state.health.lost.store(true, std::memory_order_relaxed);
  // Only what the network does to us passes; nonsense from the peer would come again.
  if (!recovers_ || !absl::IsUnavailable(status)) return LinkError(index, status);
  state.health.failovers.fetch_add(1, std::memory_order_relaxed);
  state.lost = std::string(status.message());
  moved_ = true;
  shares_.SetUp(index, false);
  may_repeat_ = true;
  uint64_t bytes = 0;
  for (; !state.underway.empty(); state.underway.Pop()) {
    repeats_.push_back(state.underway[state.underway.begin()]);
    bytes += repeats_.back().size;
  }
  waiting_ += bytes;
  std::sort(repeats_.begin(), repeats_.end(), [](const Chunk& a, const Chunk& b) {
    return std::tie(a.transfer, a.offset) < std::tie(b.transfer, b.offset);
  });
  const bool others = std::any_of(states_.begin(), states_.end(), [](const RailState& other) {
    return other.health.up.load(std::memory_order_relaxed);
  });
  log_.Warn(absl::StrCat(ToString(rails_[index].name), " to ", name_, ": lost (", state.lost,
                         "); its ", bytes, " bytes ",
                         others ? "go over the other rails" : "wait, for no rail is left"));
  return absl::OkStatus();
}

void Peer::TryToReturn(size_t index, absl::Time now) {
  const absl::StatusOr<bool> back = rails_[index].link->Reconnect(now);
  // Why it does not work now is no news: that it does not work was said when it was lost.
  if (!back.ok() || !*back) return;
  RailState& state = states_[index];
  state.health.up.store(true, std::memory_order_relaxed);
  state.back = now;
  shares_.SetUp(index, true);
  moved_ = true;
  // The first connection is no return.
  if (!state.health.lost.exchange(false, std::memory_order_relaxed)) return;
  state.health.returns.fetch_add(1, std::memory_order_relaxed);
  log_.Warn(absl::StrCat(ToString(rails_[index].name), " to ", name_, ": is back"));
}

bool Peer::Take(const transport::FrameHeader& header, absl::Span<const std::byte> payload) {
  may_repeat_ = may_repeat_ || header.repeated;
  peers_lost_ |= header.lost_rails;
  ++taken_;
  if (header.transfer >= receives_.end() && header.transfer - receives_.end() < kFurthestAhead) {
    // Nobody has asked for it yet. Without repeats it may stay with its link, since no frame of an
    // earlier transfer can be behind it: every rail gets the transfers in their order.
    return recovers_ && stash_.Put(header, payload);
  }
  receive_error_.Update(Place(header, payload));
  return true;
}

absl::Status Peer::Place(const transport::FrameHeader& header,
                         absl::Span<const std::byte> payload) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InternalError(absl::StrCat("a frame for bytes ", header.offset, " to ",
                                            header.offset + payload.size(), " of transfer ",
                                            header.transfer, " was refused: ", why));
  };
  if (header.transfer >= receives_.end()) return refuse("that transfer is far in the future");
  if (header.transfer < receives_.begin() || receives_[header.transfer].done) {
    if (may_repeat_) return absl::OkStatus();
    return refuse("that transfer is complete");
  }
  Receive& receive = receives_[header.transfer];
  if (const collectives::Call theirs(header.call); theirs != receive.call) {
    return absl::InternalError(collectives::Contradiction(name_, theirs, receive.call));
  }
  const size_t size = receive.buffer.size;
  if (header.offset > size || payload.size() > size - header.offset) {
    return refuse(
        absl::StrCat("the transfer has ", size, " bytes here; do all ranks pass the same count?"));
  }
  if (payload.empty()) return refuse("it is empty");
  const reduce::Reduction* reduction = receive.buffer.reduction;
  const size_t element = reduction == nullptr ? 1 : reduce::SizeOf(reduction->type);
  if (header.offset % element != 0 || payload.size() % element != 0) {
    return refuse("it cuts through a value");
  }
  if (may_repeat_ && receive.arrived.Contains(header.offset, header.offset + payload.size())) {
    return absl::OkStatus();
  }
  if (!receive.arrived.Add(header.offset, header.offset + payload.size())) {
    return refuse("some of them are here already");
  }
  std::byte* const to = receive.buffer.data + header.offset;
  if (reduction != nullptr) {
    reduce::Reduce(*reduction, {receive.buffer.operand + header.offset, payload.data()}, to,
                   payload.size() / element, reduce::Stores::kNormal);
  } else {
    std::memcpy(to, payload.data(), payload.size());
  }
  Progress();
  receive.done = receive.arrived.total() == size;
  while (!receives_.empty() && receives_[receives_.begin()].done) receives_.Pop();
  return absl::OkStatus();
}

std::string Peer::DescribeProgress() const {
  std::string text = absl::StrCat("with ", name_, ": ");
  if (sends_.empty()) {
    absl::StrAppend(&text, "nothing left to send");
  } else {
    const Send& send = sends_[sends_.begin()];
    absl::StrAppend(&text, "sent ", send.taken, " of ", send.size, " bytes of transfer ",
                    sends_.begin());
    if (recovers_) absl::StrAppend(&text, ", of which ", send.acknowledged, " have arrived");
  }
  if (receives_.empty()) {
    absl::StrAppend(&text, ", waiting for nothing");
  } else {
    const Receive& receive = receives_[receives_.begin()];
    absl::StrAppend(&text, ", received ", receive.arrived.total(), " of ", receive.buffer.size,
                    " bytes of transfer ", receives_.begin());
  }
  for (size_t i = 0; i < rails_.size(); ++i) {
    const transport::LinkStats& stats = rails_[i].link->stats();
    absl::StrAppend(&text, "; ", ToString(rails_[i].name), " in all sent ",
                    stats.transmit_bytes.load(std::memory_order_relaxed), ", received ",
                    stats.receive_bytes.load(std::memory_order_relaxed), " bytes");
    if (!states_[i].health.up.load(std::memory_order_relaxed)) {
      absl::StrAppend(&text, !states_[i].health.lost.load(std::memory_order_relaxed)
                                 ? " and is not connected yet"
                                 : absl::StrCat(" and is lost (", states_[i].lost, ")"));
    }
  }
  return text;
}

}  // namespace railhead::rails
