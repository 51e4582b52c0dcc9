// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/connect/reconnector.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/random.h"
#include "runtime/net/socket.h"

namespace railhead::transport {
namespace {

// A network that comes back lets the next attempt through at once, but an attempt made before only
// with its kernel's first repeat, after a second: short attempts find it sooner.
constexpr absl::Duration kBetweenAttempts = absl::Milliseconds(100);  // on average
constexpr absl::Duration kConnectPatience = absl::Milliseconds(500);
// The peer may be slow to answer, since it answers when it polls.
constexpr absl::Duration kAnswerPatience = absl::Seconds(1);
constexpr uint64_t kMostPatient = 4;
// A caller that is not scheduled for some time reads the answer late. It then counts itself as
// connected, and does not call again, so the answering side must still be there: an answer is good
// for longer than a caller waits for it, and its confirmation is awaited for still longer.
constexpr absl::Duration kAnswerGood = absl::Seconds(5);
constexpr absl::Duration kConfirmationPatience = absl::Seconds(10);

// The message fits into the empty buffer of a new connection.
absl::Status Say(int fd, absl::string_view words) {
  return net::SendAll(fd, words, absl::InfinitePast());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Reconnector>> Reconnector::Open(std::shared_ptr<Acceptor> acceptor,
                                                               Locator peer_acceptor,
                                                               absl::string_view peer) {
  std::unique_ptr<Reconnector> reconnector(
      new Reconnector(std::move(acceptor), std::move(peer_acceptor), std::string(peer)));
  if (absl::Status located = reconnector->Locate(); !located.ok()) return located;
  return reconnector;
}

Reconnector::Reconnector(std::shared_ptr<Acceptor> acceptor, Locator locate, std::string peer)
    : acceptor_(std::move(acceptor)), locate_(std::move(locate)), peer_(std::move(peer)) {}

absl::Status Reconnector::Locate() {
  if (remote_.has_value()) return absl::OkStatus();
  const std::optional<std::string> address = locate_();
  if (!address.has_value()) return absl::OkStatus();
  absl::StatusOr<Acceptor::Place> place = Acceptor::ParsePlace(*address);
  if (!place.ok()) return place.status();
  if (place->token == acceptor_->own().token) {
    return absl::InvalidArgumentError("the peer's TCP address is this rank's own");
  }
  remote_ = *std::move(place);
  return absl::OkStatus();
}

absl::StatusOr<Line> Reconnector::Advance(absl::Time now) {
  if (absl::Status open = acceptor_->Renew(now); !open.ok()) return GiveUp(open);
  if (absl::Status located = Locate(); !located.ok()) return located;
  if (!remote_.has_value()) return Line();
  return dials() ? Dial(now) : Await(now);
}

std::string Reconnector::Name() const {
  return absl::StrCat(
      acceptor_->own().port != 0 ? net::HostPort(acceptor_->own().ip, acceptor_->own().port)
                                 : "no address yet",
      " - ",
      remote_.has_value() && remote_->port != 0 ? net::HostPort(remote_->ip, remote_->port)
                                                : "not known yet");
}

absl::Status Reconnector::Use(net::Fd line, uint32_t events, absl::Time give_up) {
  Close();
  line_ = std::move(line);
  handshake_.reset();
  answered_ = false;
  heard_.clear();
  give_up_ = give_up;
  return waits_.Watch(line_.get(), events);
}

void Reconnector::Close() {
  if (line_.valid()) waits_.Watch(line_.get(), 0).IgnoreError();
  line_.Reset();
  permit_.reset();
}

absl::Status Reconnector::GiveUp(const absl::Status& why) {
  Close();
  answered_ = false;
  return absl::Status(why.code(), absl::StrCat(peer_, ": ", why.message()));
}

void Reconnector::PeerMovedTo(absl::string_view address) {
  absl::StatusOr<Acceptor::Place> place = Acceptor::ParsePlace(address);
  if (!remote_.has_value() || !place.ok() || place->token != remote_->token || place->port == 0 ||
      (place->port == remote_->port && place->ip == remote_->ip)) {
    return;
  }
  remote_ = *std::move(place);
  // An attempt at the old address; the accepting side's may be the peer's own.
  if (dials()) Close();
  next_attempt_ = absl::InfinitePast();
}

absl::Status Reconnector::Call(absl::Time now) {
  if (!line_.valid()) {
    next_attempt_ = now + PauseBeforeAttempt(acceptor_->own().token, ++attempts_);
    const std::shared_ptr<RailInterface> interface = acceptor_->interface();
    absl::StatusOr<net::Fd> dialed =
        net::StartDial(remote_->ip, remote_->port, acceptor_->own().ip,
                       interface != nullptr ? interface->ForDial(remote_->ip, now) : "");
    if (!dialed.ok()) return dialed.status();
    const absl::Status used = Use(*std::move(dialed), EPOLLOUT, now + kConnectPatience);
    if (!used.ok()) return used;
    permit_.emplace(acceptor_);
  }
  pollfd entry{line_.get(), POLLOUT, 0};
  if (handshake_.has_value() || ::poll(&entry, 1, 0) <= 0) return absl::OkStatus();
  absl::StatusOr<std::string> hello = acceptor_->NewHello(remote_->token);
  if (!hello.ok()) return hello.status();
  handshake_ = RailHandshake::OfDialer(acceptor_->key(), *std::move(hello));
  // The more patient the longer it takes: a peer that shares its core with many answers late, and
  // who then comes anew has to be answered again.
  give_up_ = now + kAnswerPatience * std::min<uint64_t>(attempts_, kMostPatient);
  answer_good_ = now + kAnswerGood;
  if (absl::Status watched = waits_.Watch(line_.get(), EPOLLIN); !watched.ok()) return watched;
  const absl::Status called = net::FinishDial(line_.get(), remote_->ip, remote_->port);
  return called.ok() ? Say(line_.get(), handshake_->Begin()) : called;
}

absl::StatusOr<Line> Reconnector::Dial(absl::Time now) {
  if (remote_->port == 0) return GiveUp(NoAddress());
  if (!line_.valid() && (now < next_attempt_ || !acceptor_->MayDial())) return Line();
  if (absl::Status called = Call(now); !called.ok()) return GiveUp(called);
  if (handshake_.has_value() && now < answer_good_) {
    absl::StatusOr<Line> line = Hear();
    if (!line.ok()) return GiveUp(line.status());
    if (line->valid()) return line;
  }
  if (now < give_up_) return Line();
  return GiveUp(NoAnswer());
}

absl::Status Reconnector::NoAddress() {
  return absl::UnavailableError("its rail has no address yet");
}

absl::Status Reconnector::NoAnswer() const {
  const std::string where = net::HostPort(remote_->ip, remote_->port);
  if (!handshake_.has_value()) return absl::UnavailableError(where + " does not answer");
  // Its process is there, and elsewhere.
  return absl::DeadlineExceededError(where + " accepted the connection but does not answer");
}

absl::StatusOr<Line> Reconnector::Await(absl::Time now) {
  const absl::Status admitted = acceptor_->Admit(now);
  if (RailListener::Caller caller = acceptor_->Take(remote_->token); caller.fd.valid()) {
    next_attempt_ = absl::InfinitePast();
    // Replaces a reconnect request, which has succeeded, or an earlier call of the peer.
    const absl::Status answered = AnswerTo(std::move(caller), now);
    if (!answered.ok()) return GiveUp(answered);
    answered_ = true;
  }
  if (!answered_) return admitted.ok() ? absl::StatusOr<Line>(Line()) : admitted;
  absl::StatusOr<Line> line = Hear();
  if (!line.ok()) return GiveUp(line.status());
  if (line->valid() || now < give_up_) return line;
  return GiveUp(absl::DeadlineExceededError("handshake timed out after the peer's answer"));
}

absl::Status Reconnector::AnswerTo(RailListener::Caller caller, absl::Time now) {
  absl::StatusOr<std::string> nonce = RandomBytes(kRailNonceSize);
  if (!nonce.ok()) return nonce.status();
  absl::Status used = Use(std::move(caller.fd), EPOLLIN, now + kConfirmationPatience);
  if (!used.ok()) return used;
  handshake_ =
      RailHandshake::OfListener(acceptor_->key(), std::move(caller.hello), *std::move(nonce));
  return Say(line_.get(), handshake_->Begin());
}

absl::StatusOr<Line> Reconnector::Hear() {
  const size_t expected = handshake_->expected();
  const absl::StatusOr<bool> open =
      net::ReceiveSome(line_.get(), expected - heard_.size(), &heard_);
  if (!open.ok()) return open.status();
  const std::string where = net::HostPort(remote_->ip, remote_->port);
  if (heard_.size() < expected) {
    if (!*open) return absl::UnavailableError(absl::StrCat(where, " closed the connection"));
    return Line();
  }
  const std::optional<std::string> reply = handshake_->Receive(heard_);
  if (!reply.has_value()) {
    return absl::UnavailableError(absl::StrCat(
        "another process listens at ", where, ": it does not prove that it is a rank of this job"));
  }
  if (!reply->empty()) {
    if (absl::Status said = Say(line_.get(), *reply); !said.ok()) return said;
  }
  if (const std::shared_ptr<RailInterface> interface = acceptor_->interface();
      interface != nullptr) {
    interface->Connected(line_.get(), remote_->ip);
  }
  // It belongs to the link now, and so do its events.
  waits_.Watch(line_.get(), 0).IgnoreError();
  answered_ = false;
  permit_.reset();
  attempts_ = 0;
  return Line{std::exchange(line_, net::Fd()), handshake_->keys()};
}

absl::Status Reconnector::Knock(absl::Time now) {
  if (!remote_.has_value()) return absl::OkStatus();
  // A peer that cannot be called may have called.
  if (remote_->port == 0) return answered_ ? absl::OkStatus() : GiveUp(NoAddress());
  // Mostly the peer comes by itself.
  if (next_attempt_ == absl::InfinitePast()) {
    next_attempt_ = now + PauseBeforeAttempt(acceptor_->own().token, ++attempts_);
  }
  if (answered_ || (!line_.valid() && (now < next_attempt_ || !acceptor_->MayDial()))) {
    return absl::OkStatus();
  }
  // A request stays in the peer's acceptor until it is seen, or too old.
  const absl::Status called = Call(now);
  if (called.ok() && now < give_up_) return absl::OkStatus();
  return GiveUp(called.ok() ? NoAnswer() : called);
}

bool Reconnector::PeerLeft(absl::Time now) {
  if (dials()) {
    acceptor_->LookRound(now);
    return acceptor_->Has(remote_->token) && acceptor_->Take(remote_->token).fd.valid();
  }
  // The acceptor may fail without harm to the connection that there is.
  acceptor_->Admit(now).IgnoreError();
  return called();
}

absl::Duration PauseBeforeAttempt(absl::string_view who, uint64_t attempt) {
  // FNV-1a, and the end of SplitMix64, so that each bit of both counts.
  uint64_t mixed = 0xcbf29ce484222325;
  for (const char c : who) mixed = (mixed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  mixed += attempt * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return kBetweenAttempts / 2 + kBetweenAttempts * (static_cast<double>(mixed >> 32) / 0x1p32);
}

}  // namespace railhead::transport
