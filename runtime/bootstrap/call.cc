// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/call.h"

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {

absl::StatusOr<Frame> ReadFrame(Call& call, absl::Time deadline, Waiter wait) {
  while (true) {
    absl::StatusOr<std::optional<Frame>> frame = call.reader.Next();
    if (!frame.ok()) return frame.status();
    if (frame->has_value()) return **std::move(frame);
    if (absl::Status ready = wait(call.fd.get(), deadline); !ready.ok()) return ready;
    const absl::StatusOr<bool> open =
        net::ReceiveSome(call.fd.get(), kHelloLimit, call.reader.buffer());
    if (open.ok() && *open) continue;
    // The end of the stream, or a reset; a whole frame may have come before it.
    frame = call.reader.Next();
    if (!frame.ok()) return frame.status();
    if (frame->has_value()) return **std::move(frame);
    if (!open.ok()) return open.status();
    return absl::UnavailableError("the connection was closed");
  }
}

Call ShakeHands(net::Fd fd, Hello hello, const Secret& secret, absl::Time deadline, Waiter wait) {
  Call call;
  call.fd = std::move(fd);
  absl::StatusOr<std::string> nonce = RandomBytes(kNonceSize);
  if (!nonce.ok()) {
    call.status = nonce.status();
    call.final = true;
    return call;
  }
  hello.nonce = *std::move(nonce);
  GuestHandshake handshake(std::move(hello), secret);
  std::string reply = handshake.Begin();
  while (!handshake.proven()) {
    call.status = net::SendAll(call.fd.get(), reply, deadline);
    if (!call.status.ok()) return call;
    const absl::StatusOr<Frame> frame = ReadFrame(call, deadline, wait);
    if (!frame.ok()) {
      call.status = frame.status();
      return call;
    }
    GuestHandshake::Step step = handshake.Receive(*frame);
    if (!step.error.ok()) {
      call.status = std::move(step.error);
      call.final = step.final;
      call.not_open = step.not_open;
      return call;
    }
    reply = std::move(step.reply);
  }
  call.host_name = handshake.host_name();
  return call;
}

}  // namespace railhead::bootstrap
