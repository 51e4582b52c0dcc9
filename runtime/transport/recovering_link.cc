// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/recovering_link.h"

#include <sys/epoll.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace railhead::transport {
namespace {

// Interval of checks for new connections of the peer.
constexpr absl::Duration kDoorPause = absl::Milliseconds(10);
// A withdrawn reconnect request may remain queued for this time.
constexpr absl::Duration kKnocksFade = absl::Milliseconds(200);

}  // namespace

absl::StatusOr<std::unique_ptr<Link>> RecoveringLink::Create(
    std::unique_ptr<Reconnector> reconnector, std::unique_ptr<WireMaker> maker) {
  if (maker->event_fd() >= 0) {
    absl::Status watched = reconnector->waits().Watch(maker->event_fd(), EPOLLIN);
    if (!watched.ok()) return watched;
  }
  return std::unique_ptr<Link>(new RecoveringLink(std::move(reconnector), std::move(maker)));
}

RecoveringLink::RecoveringLink(std::unique_ptr<Reconnector> reconnector,
                               std::unique_ptr<WireMaker> maker)
    : reconnector_(std::move(reconnector)),
      maker_(std::move(maker)),
      error_(maker_->At(absl::UnavailableError("not connected yet"))) {}

RecoveringLink::~RecoveringLink() {
  // Descriptors that are not the only ones of their files stay in an epoll when they are closed.
  reconnector_->waits().MoveTo(-1, nullptr).IgnoreError();
}

absl::StatusOr<bool> RecoveringLink::TrySend(const FrameHeader& header,
                                             absl::Span<const std::byte> payload) {
  if (wire_ == nullptr) return error_;
  if (payload.size() > max_payload()) {
    return maker_->At(absl::InvalidArgumentError(
        absl::StrCat("a frame of ", payload.size(), " bytes is larger than max_payload()")));
  }
  absl::StatusOr<bool> sent = wire_->TrySend(header, payload);
  if (!sent.ok()) return Lose(sent.status());
  return sent;
}

absl::Status RecoveringLink::Push() {
  if (wire_ == nullptr) return absl::OkStatus();
  absl::Status pushed = wire_->Push();
  return pushed.ok() ? pushed : Lose(pushed);
}

Link::Report RecoveringLink::Poll(FrameSink sink) {
  if (wire_ == nullptr) return {error_};
  Report report = wire_->Poll(sink);
  if (!report.moved.ok()) {
    report.moved = Lose(report.moved.status());
    return report;
  }
  // The caller polls again until nothing moves.
  if (*report.moved) return report;
  if (const absl::Time now = maker_->Now(); now >= next_look_ || reconnector_->called()) {
    next_look_ = now + kDoorPause;
    CountStrangers();
    if (reconnector_->PeerLeft(now)) {
      report.moved =
          Lose(maker_->At(absl::UnavailableError("the peer lost the connection and reconnects")));
    }
  }
  return report;
}

// Counts rejected connections of the reconnector; wires count their own.
void RecoveringLink::CountStrangers() {
  const uint64_t all = reconnector_->strangers();
  stats_.strangers.fetch_add(all - std::exchange(reconnector_strangers_, all),
                             std::memory_order_relaxed);
}

absl::Status RecoveringLink::Lose(const absl::Status& status) {
  if (wire_ != nullptr) {
    wire_->Abort();
    wire_.reset();
  }
  maker_->GiveUp();
  return error_ = status;
}

void RecoveringLink::Drop(absl::string_view why) {
  Lose(maker_->At(absl::UnavailableError(why))).IgnoreError();
}

absl::StatusOr<bool> RecoveringLink::Reconnect(absl::Time now) {
  if (wire_ != nullptr) return true;
  if (absl::Status failure = Work(now); !failure.ok()) {
    maker_->GiveUp();
    return maker_->At(failure);
  }
  if (wire_ == nullptr) return false;
  error_ = absl::OkStatus();
  next_look_ = maker_->Now() + kKnocksFade;
  return true;
}

absl::Status RecoveringLink::Work(absl::Time now) {
  if (maker_->HasNews()) reconnector_->Hurry(now);
  const bool idle = !maker_->begun();
  // The dialing side has started the newest connection itself.
  absl::StatusOr<Line> line = Line();
  if (idle || !reconnector_->dials()) line = reconnector_->Advance(now);
  CountStrangers();
  if (!line.ok()) return line.status();
  if (!idle && reconnector_->dials() && reconnector_->PeerLeft(now)) {
    return absl::UnavailableError("the peer gave up");
  }
  if (line->valid()) {
    const absl::Status begun =
        maker_->Begin(*std::move(line), {&reconnector_->waits(), &stats_}, now);
    if (!begun.ok()) return begun;
  }
  if (!maker_->begun()) {
    return reconnector_->dials() ? absl::OkStatus() : reconnector_->Knock(now);
  }
  absl::StatusOr<std::unique_ptr<Wire>> wire = maker_->Advance(now);
  if (!wire.ok()) return wire.status();
  wire_ = *std::move(wire);
  return absl::OkStatus();
}

absl::StatusOr<bool> RecoveringLink::WakeBy(int epoll, void* tag) {
  if (absl::Status moved = reconnector_->waits().MoveTo(epoll, tag); !moved.ok()) return moved;
  return true;
}

void RecoveringLink::Answer(absl::Time /*now*/) {
  maker_->Answer();
  if (wire_ != nullptr) wire_->Answer();
}

absl::Status RecoveringLink::Acknowledge() {
  if (wire_ == nullptr) return absl::OkStatus();
  absl::Status told = wire_->Acknowledge();
  return told.ok() ? told : Lose(told);
}

absl::Status RecoveringLink::Arm(Wake wake) {
  if (wire_ == nullptr) return maker_->Arm(wake);  // the reconnector is watched anyway
  absl::Status armed = wire_->Arm(wake);
  return armed.ok() ? armed : Lose(armed);
}

}  // namespace railhead::transport
