// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/handshake_server.h"

#include <algorithm>
#include <iterator>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/halt.h"
#include "runtime/base/now.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {
namespace {

// Maximum time of a connection without a whole handshake. A rank sends its part as soon as it is
// connected.
constexpr absl::Duration kPatience = absl::Seconds(10);
// Maximum pending connections besides the ranks; above it the oldest is closed.
constexpr size_t kMostStrangers = 64;
// Connections accepted before those that are known have their turn.
constexpr size_t kMostAtOnce = 64;
// Maximum rejections with a log line each.
constexpr uint64_t kMostLines = 8;
// Ranks whose reasons are kept in addition to those expected: any client may claim any rank.
constexpr size_t kMoreReasons = 16;
// Pause after the system could not accept a connection.
constexpr absl::Duration kBreath = absl::Milliseconds(200);

}  // namespace

HandshakeServer::HandshakeServer(ListeningSocket listener, HostHandshake::Identity self,
                                 Secret secret, size_t expected, Objection objection, Logger log)
    : listener_(std::move(listener)),
      self_(std::move(self)),
      secret_(std::move(secret)),
      expected_(expected),
      objection_(std::move(objection)),
      log_(std::move(log)) {
  if (listener_.shared != nullptr) shared_.emplace(listener_.shared, self_.job, Most());
}

size_t HandshakeServer::Most() const { return kMostStrangers + expected_; }

void HandshakeServer::Prepare(std::vector<pollfd>& entries, absl::Time& deadline) const {
  entries.push_back({listener_.fd(), POLLIN, 0});
  if (shared_.has_value()) {
    entries.push_back({shared_->wake(), POLLIN, 0});
    // Nothing reports a connection that is handed over then.
    if (shared_->wake() < 0) deadline = std::min(deadline, MonotonicNow() + kHaltPace);
  }
  for (const Visitor& visitor : visitors_) {
    entries.push_back({visitor.fd.get(), POLLIN, 0});
    deadline = std::min(deadline, visitor.patience);
  }
}

std::vector<HandshakeServer::Guest> HandshakeServer::Serve(const pollfd* entries) {
  std::vector<Guest> guests;
  const absl::Time now = MonotonicNow();
  size_t index = shared_.has_value() ? 2 : 1;
  for (auto visitor = visitors_.begin(); visitor != visitors_.end(); ++index) {
    bool gone = entries[index].revents != 0 && ServeOne(*visitor, guests);
    if (!gone && now >= visitor->patience) {
      Reject(*visitor, "handshake timed out");
      gone = true;
    }
    visitor = gone ? visitors_.erase(visitor) : std::next(visitor);
  }
  if (shared_.has_value()) {
    for (SharedListener::Connection& connection : shared_->Take()) {
      Admit(std::move(connection), guests);
    }
  }
  if (entries[0].revents != 0) TakeVisitors(guests);
  return guests;
}

void HandshakeServer::TakeVisitors(std::vector<Guest>& guests) {
  for (size_t i = 0; i < kMostAtOnce; ++i) {
    absl::StatusOr<net::Fd> fd = net::Accept(listener_.fd());
    if (!fd.ok()) {
      // Out of descriptors or memory, perhaps not for long.
      trouble_ = fd.status();
      log_.Warn(absl::StrCat("the rendezvous cannot take a connection: ", fd.status().message()));
      absl::SleepFor(kBreath);
      return;
    }
    if (!fd->valid()) return;
    std::string from = net::RemoteText(fd->get());
    Admit({*std::move(fd), std::move(from), "", MonotonicNow() + kPatience}, guests);
  }
}

void HandshakeServer::Admit(SharedListener::Connection connection, std::vector<Guest>& guests) {
  absl::StatusOr<std::string> nonce = RandomBytes(kNonceSize);
  if (!nonce.ok()) {
    log_.Warn(absl::StrCat("the rendezvous cannot draw a nonce: ", nonce.status().message()));
    return;
  }
  Visitor visitor{std::move(connection.fd), FrameReader(kHelloLimit),
                  HostHandshake(self_, secret_, *std::move(nonce)), connection.patience,
                  std::move(connection.from)};
  *visitor.reader.buffer() = std::move(connection.sent);
  // Clients of other jobs take no place here if their Hello has arrived with them.
  if (ServeOne(visitor, guests)) return;
  if (visitors_.size() >= Most()) {
    Reject(visitors_.front(), "too many pending connections");
    visitors_.pop_front();
  }
  visitors_.push_back(std::move(visitor));
}

void HandshakeServer::PassOn(Visitor& visitor, const Frame& hello) {
  SharedListener::Connection connection{
      std::move(visitor.fd), std::move(visitor.from),
      absl::StrCat(EncodeFrame(hello.kind, hello.payload), *visitor.reader.buffer()),
      visitor.patience};
  if (shared_->HandOver(visitor.handshake.hello().job, connection)) return;
  Refusal refusal;
  refusal.text =
      "its process has not opened this rendezvous yet, only others (of other ranks, or for other "
      "communicators)";
  refusal.not_open = true;
  net::SendAll(connection.fd.get(), EncodeFrame(FrameKind::kRefuse, EncodeRefusal(refusal)),
               MonotonicNow())
      .IgnoreError();
}

bool HandshakeServer::ServeOne(Visitor& visitor, std::vector<Guest>& guests) {
  const absl::StatusOr<bool> open =
      net::ReceiveSome(visitor.fd.get(), kHelloLimit, visitor.reader.buffer());
  while (true) {
    const absl::StatusOr<std::optional<Frame>> frame = visitor.reader.Next();
    if (!frame.ok()) {
      Reject(visitor, frame.status().message());
      return true;
    }
    if (!frame->has_value()) {
      if (open.ok() && *open) return false;
      Reject(visitor, "closed before the handshake was complete");
      return true;
    }
    HostHandshake::Step step = visitor.handshake.Receive(**frame);
    if (step.other_job && shared_.has_value()) {
      PassOn(visitor, **frame);
      return true;
    }
    const Hello& hello = visitor.handshake.hello();
    if (visitor.handshake.proven()) {
      if (const std::optional<Refusal> refusal = objection_(hello); refusal.has_value()) {
        step.refusal = refusal->text;
        step.reply += EncodeFrame(FrameKind::kRefuse, EncodeRefusal(*refusal));
      }
    }
    // The answer fits into an empty socket buffer; who does not read it learns nothing.
    net::SendAll(visitor.fd.get(), step.reply, MonotonicNow()).IgnoreError();
    if (!step.refusal.empty()) {
      const bool has_reason = !step.reply.empty();
      if (has_reason && turned_away_.size() < expected_ + kMoreReasons) {
        turned_away_[hello.rank] = {DescribeRank(static_cast<int>(hello.rank), hello.name),
                                    step.refusal};
        if (step.cannot_prove) cannot_prove_.insert(hello.rank);
      }
      Reject(visitor, step.refusal);
      return true;
    }
    if (visitor.handshake.proven()) {
      guests.push_back(
          {hello, std::move(visitor.fd), std::move(visitor.reader), std::move(visitor.from)});
      return true;
    }
  }
}

void HandshakeServer::Reject(const Visitor& visitor, absl::string_view why) {
  ++rejected_;
  last_rejection_ = absl::StrCat("from ", visitor.from, ": ", why);
  if (rejected_ <= kMostLines) {
    log_.Warn(absl::StrCat("the rendezvous rejected a connection ", last_rejection_));
  }
}

}  // namespace railhead::bootstrap
