// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/redial.h"

#include <poll.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/random.h"
#include "runtime/base/wire.h"
#include "runtime/bootstrap/hello.h"

namespace railhead::bootstrap {
namespace {

// A handshake's frames fit into the empty buffer of a socket.
absl::Status SendNow(const net::Fd& fd, absl::string_view bytes) {
  return net::SendAll(fd.get(), bytes, absl::InfinitePast());
}

// Reads what has come, and passes it on frame by frame until `receive` has enough (true).
absl::Status ReadFrames(const net::Fd& fd, FrameReader& reader,
                        absl::FunctionRef<absl::StatusOr<bool>(const Frame&)> receive) {
  const absl::StatusOr<bool> open = net::ReceiveSome(fd.get(), kHelloLimit, reader.buffer());
  while (true) {
    const absl::StatusOr<std::optional<Frame>> frame = reader.Next();
    if (!frame.ok()) return frame.status();
    if (!frame->has_value()) break;
    const absl::StatusOr<bool> enough = receive(**frame);
    if (!enough.ok()) return enough.status();
    if (*enough) return absl::OkStatus();
  }
  if (!open.ok()) return open.status();
  return *open ? absl::OkStatus() : absl::UnavailableError("the connection was closed");
}

}  // namespace

std::string EncodeResume(const Resume& resume) {
  WireWriter writer;
  writer.U64(resume.attempt);
  writer.U64(resume.received);
  return writer.Take();
}

absl::StatusOr<Resume> ParseResume(absl::string_view payload) {
  WireReader reader(payload);
  Resume resume;
  resume.attempt = reader.U64();
  resume.received = reader.U64();
  if (!reader.Complete()) return absl::InternalError("a malformed kResume");
  return resume;
}

// ---- The process that dials ----

Redial::Redial(net::Fd fd, const net::SocketAddress& place, GuestHandshake handshake,
               const Resume& mine, absl::Time deadline)
    : fd_(std::move(fd)),
      place_(place),
      reader_(kHelloLimit),
      handshake_(std::move(handshake)),
      mine_(mine),
      deadline_(deadline) {}

absl::StatusOr<Redial> Redial::Start(const net::SocketAddress& place,
                                     const LostConnection& connection, const Resume& mine,
                                     absl::Time deadline) {
  absl::StatusOr<std::string> nonce = RandomBytes(kNonceSize);
  if (!nonce.ok()) return nonce.status();
  Hello hello;
  hello.job = connection.name;
  hello.nonce = *std::move(nonce);
  int error = 0;
  absl::StatusOr<net::Fd> fd = net::StartDial(place.address, place.port, std::nullopt, "", &error);
  if (error == ECONNREFUSED) return absl::NotFoundError(fd.status().message());
  if (!fd.ok()) return fd.status();
  return Redial(*std::move(fd), place, GuestHandshake(std::move(hello), connection.secret), mine,
                deadline);
}

absl::StatusOr<std::optional<Resume>> Redial::Advance(absl::Time now) {
  if (!connected_) {
    pollfd entry{fd_.get(), POLLOUT, 0};
    if (::poll(&entry, 1, 0) > 0) {
      const int error = net::TakeError(fd_.get());
      if (error == ECONNREFUSED) return absl::NotFoundError("the connection was refused");
      if (error != 0) {
        return net::ErrnoError(
            absl::StrCat("connect to ", net::HostPort(place_.address, place_.port)), error);
      }
      connected_ = true;
      if (absl::Status sent = SendNow(fd_, handshake_.Begin()); !sent.ok()) return sent;
    }
  }
  if (connected_) {
    absl::Status read =
        ReadFrames(fd_, reader_, [this](const Frame& frame) -> absl::StatusOr<bool> {
          if (absl::Status received = Receive(frame); !received.ok()) return received;
          return theirs_.has_value();
        });
    if (!read.ok()) return read;
  }
  if (!theirs_.has_value() && now >= deadline_) {
    return absl::DeadlineExceededError("no answer in time");
  }
  return theirs_;
}

absl::Status Redial::Receive(const Frame& frame) {
  if (handshake_.proven()) {
    if (frame.kind != FrameKind::kResume) return absl::InternalError("an unexpected frame");
    const absl::StatusOr<Resume> theirs = ParseResume(frame.payload);
    if (!theirs.ok()) return theirs.status();
    if (theirs->attempt != mine_.attempt) return absl::InternalError("another attempt's answer");
    theirs_ = *theirs;
    return absl::OkStatus();
  }
  GuestHandshake::Step step = handshake_.Receive(frame);
  if (step.not_open) return absl::NotFoundError(step.error.message());
  if (!step.error.ok()) return step.error;
  if (handshake_.proven()) {
    step.reply += EncodeFrame(FrameKind::kResume, EncodeResume(mine_));
  }
  return SendNow(fd_, step.reply);
}

// ---- The process that listens ----

ReturnVisitor::ReturnVisitor(net::Fd fd, absl::Time deadline)
    : fd_(std::move(fd)), reader_(kHelloLimit), deadline_(deadline) {}

absl::StatusOr<std::optional<ReturnVisitor::Claim>> ReturnVisitor::Advance(absl::Time now,
                                                                           SecretOf secret_of) {
  absl::Status read =
      ReadFrames(fd_, reader_, [this, secret_of](const Frame& frame) -> absl::StatusOr<bool> {
        if (absl::Status received = Receive(frame, secret_of); !received.ok()) return received;
        return claim_.has_value();
      });
  if (!read.ok()) return read;
  if (!claim_.has_value() && now >= deadline_) {
    return absl::DeadlineExceededError("handshake timed out");
  }
  return claim_;
}

absl::Status ReturnVisitor::Receive(const Frame& frame, SecretOf secret_of) {
  if (handshake_.has_value() && handshake_->proven()) {
    if (frame.kind != FrameKind::kResume) return absl::InternalError("an unexpected frame");
    const absl::StatusOr<Resume> theirs = ParseResume(frame.payload);
    if (!theirs.ok()) return theirs.status();
    claim_ = Claim{handshake_->hello().job, *theirs};
    return absl::OkStatus();
  }
  if (!handshake_.has_value()) {
    // The Hello identifies the connection.
    if (frame.kind != FrameKind::kHello) return absl::InternalError("an unexpected frame");
    const absl::StatusOr<Hello> hello = ParseHello(frame.payload);
    if (!hello.ok()) return hello.status();
    std::optional<Secret> secret = secret_of(hello->job);
    if (!secret.has_value()) {
      Refusal refusal;
      refusal.text = "its process no longer has this connection";
      refusal.not_open = true;
      SendNow(fd_, EncodeFrame(FrameKind::kRefuse, EncodeRefusal(refusal))).IgnoreError();
      return absl::NotFoundError(refusal.text);
    }
    absl::StatusOr<std::string> nonce = RandomBytes(kNonceSize);
    if (!nonce.ok()) return nonce.status();
    handshake_.emplace(HostHandshake::Identity{0, hello->job, ""}, *std::move(secret),
                       *std::move(nonce));
  }
  const HostHandshake::Step step = handshake_->Receive(frame);
  if (absl::Status sent = SendNow(fd_, step.reply); !sent.ok()) return sent;
  return step.refusal.empty() ? absl::OkStatus() : absl::PermissionDeniedError(step.refusal);
}

}  // namespace railhead::bootstrap
