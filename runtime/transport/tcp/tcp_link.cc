// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/net/socket.h"

namespace railhead::transport {
namespace {

constexpr uint32_t kMagic = 0x46484c52;  // "RLHF"

// What precedes each payload on the wire, in little-endian order.
struct WireHeader {
  uint32_t magic;
  uint32_t size;
  uint64_t transfer;
  uint64_t offset;
};
constexpr size_t kHeaderSize = sizeof(WireHeader);
static_assert(kHeaderSize == 24 && std::endian::native == std::endian::little);

constexpr size_t kMaxPayload = size_t{256} << 10;
// Two whole frames, so that the kernel's buffer is emptied while the rails are busy with one.
constexpr size_t kInputSize = 2 * (kMaxPayload + kHeaderSize);
// One Poll takes at most this much, so that one rail cannot keep the others waiting.
constexpr size_t kMostPerPoll = size_t{1} << 20;
// What the kernel may hold unsent. More would only hide from the rails how fast the wire is.
constexpr int kUnsentLimit = 256 << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<Link>> TcpLink::Create(net::Fd socket, std::string name) {
  net::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return net::ErrnoError("epoll_create1", errno);
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentLimit, sizeof kUnsentLimit);
  return std::unique_ptr<Link>(new TcpLink(std::move(socket), std::move(epoll), std::move(name)));
}

TcpLink::TcpLink(net::Fd socket, net::Fd epoll, std::string name)
    : socket_(std::move(socket)),
      epoll_(std::move(epoll)),
      name_(std::move(name)),
      in_(kInputSize) {
  out_.reserve(kMaxPayload + kHeaderSize);
}

size_t TcpLink::max_payload() const { return kMaxPayload; }

absl::Status TcpLink::Error(absl::string_view what) const {
  return absl::UnavailableError(absl::StrCat("TCP ", name_, ": ", what));
}

absl::StatusOr<bool> TcpLink::TrySend(const FrameHeader& header,
                                      absl::Span<const std::byte> payload) {
  if (payload.size() > kMaxPayload) {
    return absl::InternalError(absl::StrCat("a frame of ", payload.size(), " bytes is too long"));
  }
  if (absl::Status flushed = Flush(); !flushed.ok()) return flushed;
  if (!Flushed()) {
    refused_ = true;
    return false;
  }
  WireHeader wire{kMagic, static_cast<uint32_t>(payload.size()), header.transfer, header.offset};
  // sendmsg does not write through the pointers; its interface only cannot say so.
  std::array<iovec, 2> parts = {
      {{&wire, sizeof wire}, {const_cast<std::byte*>(payload.data()), payload.size()}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  if (sent < 0) {
    if (errno != EAGAIN && errno != EINTR) return Error(net::ErrnoError("send", errno).message());
    refused_ = true;
    return false;
  }
  // What the kernel did not take of this frame waits here; the frame counts as sent.
  const auto taken = static_cast<size_t>(sent);
  out_.clear();
  out_begin_ = 0;
  if (taken < kHeaderSize) {
    const auto* rest = reinterpret_cast<const std::byte*>(&wire);
    out_.insert(out_.end(), rest + taken, rest + kHeaderSize);
  }
  const size_t payload_taken = taken > kHeaderSize ? taken - kHeaderSize : 0;
  out_.insert(out_.end(), payload.begin() + static_cast<ptrdiff_t>(payload_taken), payload.end());
  stats_.transmit_bytes.fetch_add(payload.size(), std::memory_order_relaxed);
  return true;
}

absl::Status TcpLink::Flush() {
  while (!Flushed()) {
    const ssize_t sent =
        ::send(socket_.get(), out_.data() + out_begin_, out_.size() - out_begin_, MSG_NOSIGNAL);
    if (sent >= 0) {
      out_begin_ += static_cast<size_t>(sent);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      return Error(net::ErrnoError("send", errno).message());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TcpLink::Poll(FrameSink sink) {
  refused_ = false;
  const size_t waiting = out_.size() - out_begin_;
  if (absl::Status flushed = Flush(); !flushed.ok()) return flushed;
  bool moved = waiting != out_.size() - out_begin_;
  size_t taken = 0;
  while (taken < kMostPerPoll) {
    const size_t before = in_end_ - in_begin_;
    const absl::StatusOr<bool> received = Receive();
    if (!received.ok()) return received.status();
    taken += (in_end_ - in_begin_) - before;
    const absl::StatusOr<bool> offered = Offer(sink);
    if (!offered.ok()) return offered.status();
    if (!*received && !*offered) break;
    moved = true;
  }
  // Whole frames that came before the end have been offered; what is refused now may still be
  // wanted, so the end is an error only once nothing is left.
  if (end_of_stream_ && in_begin_ == in_end_) return Error("the peer closed the connection");
  return moved;
}

absl::StatusOr<bool> TcpLink::Receive() {
  MakeRoom();
  if (end_of_stream_ || in_end_ == in_.size()) return false;
  while (true) {
    const ssize_t got = ::recv(socket_.get(), in_.data() + in_end_, in_.size() - in_end_, 0);
    if (got > 0) {
      in_end_ += static_cast<size_t>(got);
      return true;
    }
    if (got == 0) {
      end_of_stream_ = true;
      return false;
    }
    if (errno == EAGAIN) return false;
    if (errno != EINTR) return Error(net::ErrnoError("receive", errno).message());
  }
}

void TcpLink::MakeRoom() {
  if (in_begin_ == in_end_) {
    in_begin_ = in_end_ = 0;
    return;
  }
  // Moving bytes costs, so it waits until a frame that starts here could not be completed in place.
  if (in_.size() - in_begin_ >= kMaxPayload + kHeaderSize) return;
  std::memmove(in_.data(), in_.data() + in_begin_, in_end_ - in_begin_);
  in_end_ -= in_begin_;
  in_begin_ = 0;
}

absl::StatusOr<bool> TcpLink::Offer(FrameSink sink) {
  bool moved = false;
  while (in_end_ - in_begin_ >= kHeaderSize) {
    WireHeader wire;
    std::memcpy(&wire, in_.data() + in_begin_, sizeof wire);
    if (wire.magic != kMagic || wire.size > kMaxPayload) {
      return Error("the stream holds something that is not a frame");
    }
    const size_t size = wire.size;
    if (in_end_ - in_begin_ < kHeaderSize + size) {
      if (end_of_stream_) return Error("the peer closed the connection within a frame");
      break;
    }
    if (!sink({wire.transfer, wire.offset},
              absl::MakeConstSpan(in_.data() + in_begin_ + kHeaderSize, size))) {
      break;
    }
    in_begin_ += kHeaderSize + size;
    stats_.receive_bytes.fetch_add(size, std::memory_order_relaxed);
    moved = true;
  }
  if (end_of_stream_ && in_end_ > in_begin_ && in_end_ - in_begin_ < kHeaderSize) {
    return Error("the peer closed the connection within a frame");
  }
  return moved;
}

absl::Status TcpLink::Arm() {
  uint32_t wanted = 0;
  if (!end_of_stream_ && in_end_ < in_.size()) wanted |= EPOLLIN;
  if (refused_ || !Flushed()) wanted |= EPOLLOUT;
  if (wanted != watched_) {
    epoll_event event{};
    event.events = wanted;
    // Without any wish the socket leaves the set: its hang-up would be reported all the same, and
    // turn the wait into a busy loop.
    const int operation = wanted == 0     ? EPOLL_CTL_DEL
                          : watched_ == 0 ? EPOLL_CTL_ADD
                                          : EPOLL_CTL_MOD;
    if (::epoll_ctl(epoll_.get(), operation, socket_.get(), &event) != 0) {
      return Error(net::ErrnoError("epoll_ctl", errno).message());
    }
    watched_ = wanted;
  }
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &length) == 0) {
    stats_.retransmits.store(info.tcpi_total_retrans, std::memory_order_relaxed);
  }
  return absl::OkStatus();
}

}  // namespace railhead::transport
