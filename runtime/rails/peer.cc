// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/peer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/rails/chunk.h"

namespace railhead::rails {
namespace {

// Maximum delay of the peer's loss reports: ignored for rails that returned within this time.
constexpr absl::Duration kOldNews = absl::Seconds(1);
// A rail that is not connected this long after another one was, or after its first attempt failed,
// is lost. Longer than all ranks of a job need to connect at the same time.
constexpr absl::Duration kLateRail = absl::Seconds(10);
// Between the loss of a rail that was hardly back and its next connection.
constexpr absl::Duration kShortestPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Minutes(1);
// A loss after this time in service resets the pause before the next connection.
constexpr absl::Duration kSteady = absl::Minutes(1);
// Between notes about the address of the same rail.
constexpr absl::Duration kBetweenNotes = absl::Seconds(1);
// Larger than any packet.
constexpr size_t kProbeBytes = size_t{64} << 10;

}  // namespace

std::string ToString(const RailName& name) {
  return absl::StrCat("rail ", name.rail, " (", name.device,
                      name.port > 0 ? absl::StrCat(" port ", name.port) : "", ", ", name.transport,
                      ")");
}

Peer::Peer(Name name, std::vector<Rail> rails, Logger log)
    : name_(std::move(name)),
      log_(std::move(log)),
      rails_(std::move(rails)),
      states_(rails_.size()),
      scheduler_(rails_.size()),
      sends_(rails_.size()),
      receives_(name_) {
  const bool started = std::any_of(rails_.begin(), rails_.end(),
                                   [](const Rail& rail) { return rail.link->connected(); });
  for (size_t i = 0; i < rails_.size(); ++i) {
    max_payload_ = std::min(max_payload_, rails_[i].link->max_payload());
    RailState& state = states_[i];
    state.was_up = rails_[i].link->connected();
    if (state.was_up) continue;
    state.health.up.store(false, std::memory_order_relaxed);
    scheduler_.SetUp(i, false);
    if (!started) continue;
    // The start has waited for it.
    state.health.lost.store(true, std::memory_order_relaxed);
    state.lost = "not connected since the start";
    any_lost_ = true;
  }
}

uint64_t Peer::PostSend(absl::Span<const std::byte> data, bool more) {
  const bool alone = std::exchange(follows_, false) || sends_.waiting() == 0;
  const uint64_t number =
      sends_.Post(data, call_, ChunkSize(data.size(), rails_.size(), max_payload_), copies_small_);
  // Send small messages at once, without polling all rails first: the receiver may wait for them.
  if (!alone || !copies_small_ || data.size() > kCopied) return number;
  if (more) {
    follows_ = true;
  } else {
    send_error_.Update(Pull());
  }
  return number;
}

uint64_t Peer::PostDirect(absl::Span<const std::byte> data, const collectives::RemoteMemory& to) {
  follows_ = false;
  return sends_.PostDirect(data, call_, ChunkSize(data.size(), rails_.size(), max_payload_), to);
}

bool Peer::KeepUnacknowledged() {
  // A backlog would count as slowness of its rail in the next transfers, so all data must have
  // reached the peer's machine.
  return Flushed() &&
         std::all_of(rails_.begin(), rails_.end(),
                     [](const Rail& rail) { return rail.link->load().backlog == 0; }) &&
         sends_.CopyTail();
}

bool Peer::Flushed() const {
  return sends_.waiting() == 0 && std::all_of(rails_.begin(), rails_.end(), [](const Rail& rail) {
           return rail.link->Flushed();
         });
}

bool Peer::Quiet() const {
  if (!Idle()) return false;
  for (size_t i = 0; i < rails_.size(); ++i) {
    const bool connecting = !Up(i) && !states_[i].health.lost.load(std::memory_order_relaxed);
    if (connecting || scheduler_.Owes(i)) return false;
  }
  return true;
}

bool Peer::AllUp() const {
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (!Up(i)) return false;
  }
  return true;
}

bool Peer::CannotConnect() const {
  return std::any_of(states_.begin(), states_.end(), [](const RailState& state) {
    return !state.was_up && state.failing != absl::InfiniteFuture();
  });
}

bool Peer::AnyUp() const {
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (Up(i)) return true;
  }
  return false;
}

bool Peer::Restless() const {
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (!Up(i) || sends_.UnderWay(i)) return true;
  }
  return false;
}

absl::Status Peer::LinkError(size_t index, const absl::Status& status) const {
  return absl::Status(status.code(), absl::StrCat(ToString(rails_[index].name), " to ", name_(),
                                                  ": ", status.message()));
}

absl::StatusOr<bool> Peer::PollStirred(absl::Time now) {
  return PollRails(now, [this](size_t index) {
    return std::exchange(states_[index].stirred, false) || rails_[index].link->polls_in_memory();
  });
}

absl::StatusOr<bool> Peer::PollRails(absl::Time now, absl::FunctionRef<bool(size_t index)> which) {
  now_ = now;
  if (!send_error_.ok()) return send_error_;
  if (!receives_.status().ok()) return receives_.status();
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (!Connected(i)) TryToReturn(i, now);
    if (Up(i)) first_up_ = std::min(first_up_, now);
    if (!Connected(i) || !which(i)) continue;
    absl::Status polled = PollRail(i, now);
    if (polled.ok() && states_[i].probation) polled = Prove(i, now);
    if (!polled.ok()) return polled;
  }
  if (!to_fence_.empty()) {
    if (absl::Status fenced = Fence(); !fenced.ok()) return fenced;
  }
  if (!lost_by_peer_.empty()) {
    if (absl::Status lost = LoseWithPeer(now); !lost.ok()) return lost;
  }
  if (absl::Status pulled = Pull(); !pulled.ok()) return pulled;
  if (sign_asked()) {
    if (absl::Status sought = SeekSign(); !sought.ok()) return sought;
  }
  settled_ = AllUp();
  return std::exchange(moved_, false);
}

absl::Time Peer::last_sign() const {
  const int64_t last = last_sign_.load(std::memory_order_relaxed);
  return last == kNoSign ? absl::InfinitePast() : absl::FromUnixNanos(last);
}

absl::Status Peer::SeekSign() {
  sign_asked_.store(false, std::memory_order_relaxed);
  // Frames in flight will be acknowledged, or their rail is lost.
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (Up(i) && sends_.UnderWay(i)) return absl::OkStatus();
  }
  return SendNote(transport::FrameKind::kPosted, 0, true).status();
}

absl::Status Peer::GiveUp(size_t index, absl::string_view why) {
  rails_[index].link->Drop(why);
  absl::Status fatal = Lose(index, absl::UnavailableError(why));
  states_[index].tell_lost = false;
  return fatal;
}

absl::Status Peer::LoseWithPeer(absl::Time now) {
  for (const size_t i : std::exchange(lost_by_peer_, {})) {
    if (!Up(i) || now - states_[i].back < kOldNews) continue;
    if (absl::Status fatal = GiveUp(i, "the peer lost it"); !fatal.ok()) return fatal;
  }
  return absl::OkStatus();
}

absl::Status Peer::Fence() {
  for (const size_t i : std::exchange(to_fence_, {})) {
    if (!Connected(i)) continue;
    absl::Status fatal = GiveUp(i, "the peer has lost it, and repeats what it had");
    if (!fatal.ok()) return fatal;
  }
  return absl::OkStatus();
}

absl::Status Peer::PollRail(size_t index, absl::Time now) {
  transport::Link& link = *rails_[index].link;
  const uint64_t progress = sends_.progress();
  const auto take = [this, index](const transport::FrameHeader& header,
                                  absl::Span<const std::byte> payload) {
    return Take(index, header, payload);
  };
  const auto place = [this, index](const transport::FrameHeader& header, size_t size) {
    return PlaceFor(index, header, size);
  };
  const transport::Link::Report report = link.Poll(transport::FrameSink(take, place));
  if (!receive_error_.ok()) return LinkError(index, receive_error_);
  if (sends_.Consumed(index, report.unacknowledged)) NoteSign();
  moved_ = moved_ || sends_.progress() != progress;
  if (!report.moved.ok()) return Lose(index, report.moved.status());
  RailState& state = states_[index];
  if (*report.moved) {
    moved_ = true;
    // A part of a frame counts, too, but not where it may be the same part again and again, or news
    // of a rail that comes and goes.
    if (!any_lost_) ++progress_;
  }
  if (state.probe_came && !state.probe_sent) {
    if (absl::Status sent = SendProbe(index); !sent.ok()) return sent;
  }
  if (!Up(index)) return absl::OkStatus();
  scheduler_.SetFull(index, false);
  scheduler_.SetOwing(index, report.owes);
  if (rails_.size() > 1) {
    const transport::Link::Load load = link.load();
    scheduler_.SetRoundTrip(index, load.round_trip);
    scheduler_.Observe(index, now, load.backlog, load.delivered);
    link.SetHold(scheduler_.Hold(index));
    state.health.rate.store(scheduler_.Rate(index), std::memory_order_relaxed);
  }
  return absl::OkStatus();
}

absl::Status Peer::OnAll(absl::FunctionRef<absl::Status(transport::Link& link)> does) {
  for (size_t i = 0; i < rails_.size(); ++i) {
    const absl::Status done = does(*rails_[i].link);
    if (done.ok() || !Connected(i)) continue;
    if (absl::Status fatal = Lose(i, done); !fatal.ok()) return fatal;
  }
  return absl::OkStatus();
}

absl::Status Peer::Pull() {
  held_back_ = false;
  while (const std::optional<Chunk> next = sends_.Next()) {
    Chunk chunk = *next;
    const bool repeat = sends_.next_is_repeat();
    // A chunk keeps its size for life, so only a new one is cut to fit the rail.
    const std::optional<size_t> rail = scheduler_.Pick(chunk.size, !repeat, sends_.waiting());
    if (!rail.has_value()) {
      held_back_ = scheduler_.HoldsBack();
      break;
    }
    if (!repeat && rails_.size() > 1) chunk.size = std::min(chunk.size, scheduler_.Piece(*rail));
    const SendLedger::Content content = sends_.ContentOf(chunk);
    const transport::FrameHeader header = HeaderOf(chunk, content, *rail, repeat);
    const absl::StatusOr<bool> accepted = rails_[*rail].link->TrySend(header, content.bytes);
    if (!accepted.ok()) {
      if (absl::Status fatal = Lose(*rail, accepted.status()); !fatal.ok()) return fatal;
      continue;
    }
    if (!*accepted) {
      scheduler_.SetFull(*rail, true);
      continue;
    }
    to_push_ = true;
    sends_.Handed(*rail, chunk);
    receives_.Told();
    scheduler_.Give(*rail, chunk.size);
    moved_ = true;
  }
  if (absl::Status noted = SendNotes(); !noted.ok()) return noted;
  if (!std::exchange(to_push_, false)) return absl::OkStatus();
  return OnAll([](transport::Link& link) { return link.Push(); });
}

transport::FrameHeader Peer::HeaderOf(const Chunk& chunk, const SendLedger::Content& content,
                                      size_t rail, bool repeat) const {
  transport::FrameHeader header;
  header.transfer = chunk.transfer;
  header.offset = chunk.offset;
  header.awaited = !content.copied;
  header.call = content.call.word();
  header.size = content.transfer_size;
  header.posted = static_cast<uint32_t>(receives_.posted());
  header.repeated = repeat;
  if (content.to == nullptr || content.to->keys.empty()) return header;
  if (repeat) {
    header.lost_rails = chunk.lost_rails;
  } else if (rail < content.to->keys.size()) {
    header.place = {content.to->address + chunk.offset, content.to->keys[rail]};
  }
  return header;
}

absl::Status Peer::SendNotes() {
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (!states_[i].tell_lost) continue;
    const absl::StatusOr<bool> sent = SendNote(transport::FrameKind::kRailLost, i);
    if (!sent.ok()) return sent.status();
    states_[i].tell_lost = !*sent;
  }
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (Connected(i) || now_ < states_[i].tell_moved) continue;
    const std::string address = rails_[i].link->MovedTo();
    if (address.empty()) continue;
    const absl::StatusOr<bool> sent = SendNote(transport::FrameKind::kMoved, i, false, address);
    if (!sent.ok()) return sent.status();
    // Until the rail is connected: the note may be lost with its rail.
    if (*sent) states_[i].tell_moved = now_ + kBetweenNotes;
  }
  if (!receives_.MustTell()) return absl::OkStatus();
  return SendNote(transport::FrameKind::kPosted, 0).status();
}

absl::StatusOr<bool> Peer::SendNote(transport::FrameKind kind, uint64_t about, bool awaited,
                                    absl::string_view payload) {
  transport::FrameHeader header;
  header.awaited = awaited;
  header.kind = kind;
  header.offset = about;
  header.posted = static_cast<uint32_t>(receives_.posted());
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (!Up(i)) continue;
    const absl::StatusOr<bool> accepted = rails_[i].link->TrySend(
        header, {reinterpret_cast<const std::byte*>(payload.data()), payload.size()});
    if (!accepted.ok()) {
      if (absl::Status fatal = Lose(i, accepted.status()); !fatal.ok()) return fatal;
      continue;
    }
    if (!*accepted) continue;
    to_push_ = true;
    sends_.HandedNote(i);
    scheduler_.SetOwing(i, false);
    receives_.Told();
    return true;
  }
  return false;
}

absl::Status Peer::Lose(size_t index, const absl::Status& status) {
  RailState& state = states_[index];
  const bool was_up = state.health.up.exchange(false, std::memory_order_relaxed);
  const bool first = !state.health.lost.exchange(true, std::memory_order_relaxed);
  // Only network errors are recoverable; a protocol error of the peer would recur.
  if (!absl::IsUnavailable(status)) return LinkError(index, status);
  const bool steady = was_up && now_ - state.back >= kSteady;
  state.pause =
      steady ? absl::ZeroDuration() : std::clamp(2 * state.pause, kShortestPause, kLongestPause);
  state.retry = now_ + state.pause;
  state.probation = false;
  state.placing.reset();
  any_lost_ = true;
  state.lost = std::string(status.message());
  moved_ = true;
  receives_.ExpectRepeats();
  const uint64_t bytes = sends_.RailLost(index);
  // It had not returned: only probes are lost.
  if (!was_up && !first) return absl::OkStatus();
  if (!may_close_) state.health.failovers.fetch_add(1, std::memory_order_relaxed);
  scheduler_.SetUp(index, false);
  receives_.TellAgain();
  // News that it carried may be lost with it.
  for (RailState& other : states_) {
    other.tell_lost = other.health.lost.load(std::memory_order_relaxed) && !other.probation;
  }
  log_.Write(may_close_ ? LogLevel::kInfo : LogLevel::kWarn,
             absl::StrCat(ToString(rails_[index].name), " to ", name_(), ": lost (", state.lost,
                          "); its ", bytes, " bytes ",
                          AnyUp() ? "continue on the other rails" : "wait: no rail is left"));
  return absl::OkStatus();
}

void Peer::TryToReturn(size_t index, absl::Time now) {
  RailState& state = states_[index];
  if (now < state.retry && AnyUp()) return;
  const absl::StatusOr<bool> back = rails_[index].link->Reconnect(now);
  const bool lost = state.health.lost.load(std::memory_order_relaxed);
  if (!back.ok() || !*back) {
    // A rail that was up keeps the cause of its loss.
    if (!back.ok() && !state.was_up) {
      state.lost = absl::StrCat("not connected: ", back.status().message());
      // A peer that accepts the connection and does not answer may not have called yet.
      const bool fails = !absl::IsDeadlineExceeded(back.status());
      state.failing = fails ? std::min(state.failing, now) : absl::InfiniteFuture();
    }
    if (lost || now < std::min(first_up_, state.failing) + kLateRail) return;
    Lose(index,
         absl::UnavailableError(state.lost.empty() ? "not connected: the peer does not answer there"
                                                   : state.lost))
        .IgnoreError();
    return;
  }
  state.probe_sent = state.probe_came = false;
  state.tell_lost = false;
  moved_ = true;
  // The first connection does not count as a return.
  if (lost) {
    state.probation = true;
  } else {
    Return(index, now);
    NoteSign();  // the peer's process has answered
  }
}

absl::Status Peer::Prove(size_t index, absl::Time now) {
  RailState& state = states_[index];
  if (!state.probe_sent) return SendProbe(index);
  if (!state.probe_came || sends_.UnderWay(index)) return absl::OkStatus();
  state.probation = false;
  state.health.lost.store(false, std::memory_order_relaxed);
  Return(index, now);
  state.health.returns.fetch_add(1, std::memory_order_relaxed);
  log_.Warn(absl::StrCat(ToString(rails_[index].name), " to ", name_(), ": is back"));
  return absl::OkStatus();
}

absl::Status Peer::SendProbe(size_t index) {
  static constexpr std::array<std::byte, kProbeBytes> kNothing{};
  transport::Link& link = *rails_[index].link;
  transport::FrameHeader header;
  header.kind = transport::FrameKind::kProbe;
  header.awaited = true;
  header.posted = static_cast<uint32_t>(receives_.posted());
  const absl::StatusOr<bool> sent = link.TrySend(
      header, absl::MakeConstSpan(kNothing).first(std::min(kProbeBytes, link.max_payload())));
  if (!sent.ok()) return Lose(index, sent.status());
  states_[index].probe_sent = *sent;
  if (*sent) sends_.HandedNote(index);
  return absl::OkStatus();
}

void Peer::Return(size_t index, absl::Time now) {
  RailState& state = states_[index];
  state.health.up.store(true, std::memory_order_relaxed);
  state.back = now;
  state.was_up = true;
  scheduler_.SetUp(index, true);
  moved_ = true;
}

bool Peer::IsPlacing(size_t index, const transport::FrameHeader& header, size_t size) const {
  const std::optional<Chunk>& placing = states_[index].placing;
  return placing.has_value() && placing->transfer == header.transfer &&
         placing->offset < header.offset + size && header.offset < placing->offset + placing->size;
}

std::byte* Peer::PlaceFor(size_t index, const transport::FrameHeader& header, size_t size) {
  if (header.kind != transport::FrameKind::kData) return nullptr;
  std::byte* const place = receives_.PlaceFor(header, size);
  if (place == nullptr) return nullptr;
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (IsPlacing(i, header, size)) return nullptr;
  }
  states_[index].placing = {header.transfer, header.offset, size};
  return place;
}

void Peer::StopPlacing(const transport::FrameHeader& header, size_t size) {
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (!IsPlacing(i, header, size)) continue;
    states_[i].placing.reset();
    rails_[i].link->StopPlacing();
  }
}

bool Peer::Take(size_t index, const transport::FrameHeader& header,
                absl::Span<const std::byte> payload) {
  NoteSign();
  receive_error_.Update(sends_.PeerPosted(header.posted));
  switch (header.kind) {
    case transport::FrameKind::kData:
      // A link writes no more when the bytes are there: the transfer may be done, and the memory
      // freed.
      states_[index].placing.reset();
      StopPlacing(header, payload.size());
      for (size_t i = 0; i < rails_.size() && header.lost_rails != 0; ++i) {
        const bool lost = (header.lost_rails & transport::LostRailBit(i)) != 0;
        if (lost && i != index) to_fence_.push_back(i);
      }
      if (absl::Status taken = receives_.Take(header, payload); !taken.ok()) {
        if (absl::IsUnavailable(taken)) return false;
        receive_error_.Update(taken);
      }
      break;
    case transport::FrameKind::kPosted:
      break;
    case transport::FrameKind::kProbe:
      states_[index].probe_came = true;
      break;
    case transport::FrameKind::kRailLost:
      if (header.offset < rails_.size()) lost_by_peer_.push_back(header.offset);
      break;
    case transport::FrameKind::kMoved:
      if (header.offset < rails_.size()) {
        rails_[header.offset].link->PeerMovedTo(
            {reinterpret_cast<const char*>(payload.data()), payload.size()});
      }
      break;
  }
  return true;
}

std::string Peer::DescribeProgress() const {
  std::string text = absl::StrCat("with ", name_(), ": ");
  if (sends_.empty()) {
    absl::StrAppend(&text, "nothing left to send");
  } else {
    const SendLedger::Oldest oldest = sends_.oldest();
    absl::StrAppend(&text, "sent ", oldest.handed, " of ", oldest.size, " bytes of transfer ",
                    oldest.number);
    absl::StrAppend(&text, ", of which ", oldest.consumed, " have arrived");
    if (!oldest.posted) absl::StrAppend(&text, " (not known to be posted there)");
  }
  if (receives_.empty()) {
    absl::StrAppend(&text, ", waiting for nothing");
  } else {
    const ReceiveLedger::Oldest oldest = receives_.oldest();
    absl::StrAppend(&text, ", received ", oldest.arrived, " of ", oldest.size,
                    " bytes of transfer ", oldest.number);
  }
  for (size_t i = 0; i < rails_.size(); ++i) {
    const transport::LinkStats& stats = rails_[i].link->stats();
    absl::StrAppend(&text, "; ", ToString(rails_[i].name), " in all sent ",
                    stats.transmit_bytes.load(std::memory_order_relaxed), ", received ",
                    stats.receive_bytes.load(std::memory_order_relaxed), " bytes");
    if (!Up(i)) {
      absl::StrAppend(&text, states_[i].probation ? " and is connected again, but not proven"
                             : states_[i].health.lost.load(std::memory_order_relaxed)
                                 ? absl::StrCat(" and is lost (", states_[i].lost, ")")
                             : states_[i].lost.empty() ? " and is not connected yet"
                                                       : absl::StrCat(" and is ", states_[i].lost));
    }
  }
  return text;
}

}  // namespace railhead::rails
