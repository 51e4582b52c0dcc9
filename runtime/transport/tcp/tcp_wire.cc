// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_wire.h"

#include <linux/sockios.h>
#include <linux/tcp.h>  // knows more of tcp_info than the C library
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/line_copy.h"
#include "runtime/base/now.h"
#include "runtime/net/socket.h"

namespace railhead::transport {
namespace {

constexpr uint32_t kMagic = 0x35484c52;  // "RLH5"

// Header before each payload on the wire, little-endian. FrameHeader documents the fields of the
// same names.
struct WireHeader {
  uint32_t magic = kMagic;
  uint32_t payload = 0;  // bytes that follow
  uint64_t transfer = 0;
  uint64_t offset = 0;
  uint64_t call = 0;
  uint64_t size = 0;
  uint32_t posted = 0;
  uint32_t taken = 0;  // how many frames of this connection the sender has taken, modulo 2^32
  uint32_t flags = 0;
  uint32_t reserved = 0;
};
static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kNoFrame = kTransportsFlag;  // only an acknowledgement

constexpr absl::string_view kNotAFrame = "the stream contains data that is not a frame";

constexpr size_t kMaxPayload = TcpWire::kMaxPayload;
constexpr size_t kLongestHead = sizeof(WireHeader) + 2 * kSealSize;
// Two whole frames, so that the kernel's buffer is emptied while the rails are busy with one.
constexpr size_t kInputSize = 2 * (kMaxPayload + kLongestHead);
// Maximum read of frames without a place, which keeps the part of in_ that is used small.
constexpr size_t kMostGathered = size_t{512} << 10;
// Minimum payload of a frame, arrived in part, whose rest is read directly to its place. Also the
// maximum read where a frame may begin, so that long frames do not pass through in_.
constexpr size_t kLeastPlaced = size_t{8} << 10;
// From this size of payload on, a frame behind a short one waits for its place until the next Poll.
constexpr size_t kLeastAwaited = size_t{32} << 10;
// One Poll takes at most this much, so that one rail cannot keep the others waiting.
constexpr size_t kMostPerPoll = size_t{1} << 20;
// Initial limit of unsent bytes in the kernel. A higher one would only hide the speed of the wire
// from the rails.
constexpr int kFirstHold = 1024 << 10;

// Consumed data after which an unrequested acknowledgement is sent: it costs as much as a frame.
constexpr size_t kMostBytesNotTold = size_t{64} << 10;
constexpr uint64_t kMostFramesNotTold = 16;

// A backlog of at most this size counts as none: a rail that carries only acknowledgements is idle,
// not slow. More than all of them in flight, less than data that matters to the rail scheduler.
constexpr uint64_t kLittle = 4096;

// Interval of reading the connection's TCP_INFO.
constexpr absl::Duration kLookPause = absl::Milliseconds(10);

void SetOption(int socket, int level, int option, int value) {
  // Errors are ignored: these options improve a connection, which also works without them.
  ::setsockopt(socket, level, option, &value, sizeof value);
}

}  // namespace

struct TcpWire::Head {
  WireHeader header;
  Seal payload;
  Seal head;  // of what is before it
};

TcpWire::TcpWire(net::Fd socket, std::string name, const WireOwner& owner,
                 std::optional<FrameSeals> seals)
    : socket_(std::move(socket)),
      name_(std::move(name)),
      owner_(owner),
      hold_(kFirstHold),
      seals_(seals),
      head_size_(seals_.has_value() ? sizeof(Head) : kHeaderSize),
      // Memory that a wire does not use costs nothing: there may be hundreds.
      in_(std::make_unique_for_overwrite<std::byte[]>(kInputSize)) {
  static_assert(kHeaderSize == sizeof(WireHeader) && kLongestHead == sizeof(Head));
  out_.reserve(kMostWaitingInAll + kMostWaiting + 3 * kLongestHead);
  SetOption(socket_.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, hold_);
  // Keepalive detects the failure of an idle connection.
  SetOption(socket_.get(), IPPROTO_TCP, TCP_KEEPIDLE, 1);
  SetOption(socket_.get(), IPPROTO_TCP, TCP_KEEPINTVL, 1);
  SetOption(socket_.get(), IPPROTO_TCP, TCP_KEEPCNT, 3);
}

// A forked child may hold the socket, too: then closing it here does not take it out of an epoll.
TcpWire::~TcpWire() {
  if (watched_ != 0) owner_.waits->Watch(socket_.get(), 0).IgnoreError();
}

Link::Load TcpWire::load() const {
  // SIOCOUTQ costs a system call; the data that the peer has consumed is known without it.
  if (put_ - taken_end_ <= kLittle) {
    delivered_ = std::max(delivered_, taken_end_);
    return {0, delivered_, round_trip_};
  }
  int unacknowledged = 0;
  ::ioctl(socket_.get(), SIOCOUTQ, &unacknowledged);
  const uint64_t bytes = static_cast<uint64_t>(unacknowledged) + Unsent();
  delivered_ = std::max(delivered_, put_ - bytes);
  return {bytes <= kLittle ? 0 : bytes, delivered_, round_trip_};
}

void TcpWire::SetHold(size_t bytes) {
  // Measurements tremble; a system call for each tremor would cost more than it brings.
  const int wanted = static_cast<int>(bytes);
  if (std::abs(wanted - hold_) * 4 < hold_) return;
  hold_ = wanted;
  SetOption(socket_.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, wanted);
}

void TcpWire::Abort() {
  // Nor does closing it end the connection, if a forked child holds it.
  ::shutdown(socket_.get(), SHUT_RDWR);
  // A reset, if it gets through, notifies the peer at once; and sending the kernel's remaining data
  // would only waste the network's time.
  const linger now = {1, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

absl::Status TcpWire::Error(absl::string_view why, absl::StatusCode code) const {
  return absl::Status(code, absl::StrCat("TCP ", name_, ": ", why));
}

absl::Status TcpWire::ErrorOf(absl::string_view what, int error_number) const {
  // Errors of this process would recur on any other rail, unlike those of the network.
  return Error(net::ErrnoError(what, error_number).message(), net::IsNetworkError(error_number)
                                                                  ? absl::StatusCode::kUnavailable
                                                                  : absl::StatusCode::kInternal);
}

absl::Status TcpWire::LookRound(absl::Time now) {
  next_look_ = now + kLookPause;
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &length) == 0) {
    const uint32_t counted = std::exchange(retransmits_, info.tcpi_total_retrans);
    owner_.stats->retransmits.fetch_add(retransmits_ - counted, std::memory_order_relaxed);
    round_trip_ = absl::Microseconds(info.tcpi_min_rtt);
    const absl::Duration silence = absl::Milliseconds(info.tcpi_last_ack_recv);
    // Without a route, data does not even become in flight; an open window distinguishes that from
    // a peer that does not read.
    const bool stuck = info.tcpi_notsent_bytes > 0 && info.tcpi_snd_wnd > 2 * info.tcpi_snd_mss;
    if (ack_timeout_.Stopped({info.tcpi_unacked > 0 || stuck, info.tcpi_retransmits, silence,
                              absl::Microseconds(info.tcpi_rtt)},
                             now)) {
      return Error(
          absl::StrCat("sent data has not been acknowledged for ", absl::FormatDuration(silence)));
    }
  }
  return absl::OkStatus();
}

bool TcpWire::Writable() const {
  // True earlier than POLLOUT, which requires much more room: waiting for that would leave the wire
  // idle while the next frame is signed.
  int unsent = 0;
  return ::ioctl(socket_.get(), SIOCOUTQNSD, &unsent) != 0 || unsent < hold_;
}

absl::Span<const std::byte> TcpWire::Protect(Head& head, absl::Span<const std::byte> payload,
                                             bool repeated) {
  if (!seals_.has_value()) return payload;
  const FrameSealer& sealer = seals_->sent;
  if (sealer.encrypts()) {
    protected_.resize(payload.size());
    head.payload = sealer.Encrypt(payload, protected_.data());
    payload = protected_;
  } else {
    if (repeated) {
      protected_.assign(payload.begin(), payload.end());
      payload = protected_;
    }
    head.payload = sealer.OfPayload(payload);
  }
  head.head = sealer.OfHead(
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&head), offsetof(Head, head)));
  return payload;
}

bool TcpWire::IsSigned(const std::byte* head) const {
  if (!seals_.has_value()) return true;
  return SameSeal(seals_->received.OfHead(absl::MakeConstSpan(head, offsetof(Head, head))),
                  head + offsetof(Head, head));
}

bool TcpWire::IsPayloadSigned(absl::Span<std::byte> payload, const Seal& seal) {
  // One that is offered again is the same.
  if (!seals_.has_value() || payload_checked_) return true;
  payload_checked_ = seals_->received.Open(payload, seal);
  return payload_checked_;
}

void TcpWire::NextFrame() {
  payload_checked_ = false;
  if (seals_.has_value()) seals_->received.Next();
}

absl::Status TcpWire::WronglySigned() const {
  return Error("a frame was changed in transit or is not from the peer: its signature is wrong");
}

absl::StatusOr<bool> TcpWire::TrySend(const FrameHeader& header,
                                      absl::Span<const std::byte> payload) {
  if (!waits_) {
    if (absl::Status flushed = Flush(); !flushed.ok()) return flushed;
    // Signing costs more than checking for room first.
    if (!Drained() || (seals_.has_value() && !Writable())) {
      refused_ = true;
      return false;
    }
    out_.clear();
    out_begin_ = 0;
  }
  Head head{};
  WireHeader& wire = head.header;
  wire.payload = static_cast<uint32_t>(payload.size());
  wire.transfer = header.transfer;
  wire.offset = header.offset;
  wire.taken = static_cast<uint32_t>(taken_);
  wire.call = header.call;
  wire.size = header.size;
  wire.posted = header.posted;
  wire.flags = FlagsOf(header);
  payload = Protect(head, payload, header.repeated);
  const auto* const head_bytes = reinterpret_cast<const std::byte*>(&head);
  if (payload.size() <= kMostWaiting && out_.size() < kMostWaitingInAll) {
    out_.insert(out_.end(), head_bytes, head_bytes + head_size_);
    out_.insert(out_.end(), payload.begin(), payload.end());
    waits_ = true;
  } else {
    waits_ = false;
    // sendmsg does not write through the pointers, although its interface is not const.
    std::array<iovec, 3> parts = {{{out_.data(), out_.size()},
                                   {&head, head_size_},
                                   {const_cast<std::byte*>(payload.data()), payload.size()}}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) return ErrorOf("send", errno);
      refused_ = true;
      return false;
    }
    // The rest of the frame that the kernel did not accept waits here; the frame counts as sent.
    auto taken = static_cast<size_t>(sent);
    out_begin_ = std::min(taken, out_.size());
    taken -= out_begin_;
    if (Drained()) {
      out_.clear();
      out_begin_ = 0;
    }
    const size_t head_taken = std::min(taken, head_size_);
    out_.insert(out_.end(), head_bytes + head_taken, head_bytes + head_size_);
    const absl::Span<const std::byte> rest = payload.subspan(taken - head_taken);
    if (header.awaited || payload.data() == protected_.data()) {
      rest_ = rest;
    } else {
      out_.insert(out_.end(), rest.begin(), rest.end());
    }
  }
  if (seals_.has_value()) seals_->sent.Next();
  ++sent_;
  put_ += head_size_ + payload.size();
  ends_[ends_.Push()] = put_;
  told_ = taken_;
  bytes_not_told_ = 0;
  awaited_ = false;
  owner_.stats->transmit_bytes.fetch_add(payload.size(), std::memory_order_relaxed);
  return true;
}

// Sends the number of consumed frames in a header without a frame.
absl::Status TcpWire::SendAcknowledgement() {
  if (Drained()) {
    out_.clear();
    out_begin_ = 0;
  } else if (!rest_.empty() || out_.capacity() - out_.size() < head_size_) {
    return absl::OkStatus();  // no room behind what waits; there will be another look
  }
  Head head{};
  head.header.taken = static_cast<uint32_t>(taken_);
  head.header.flags = kNoFrame;
  Protect(head, {}, false);
  if (seals_.has_value()) seals_->sent.Next();
  const auto* bytes = reinterpret_cast<const std::byte*>(&head);
  out_.insert(out_.end(), bytes, bytes + head_size_);
  put_ += head_size_;
  told_ = taken_;
  bytes_not_told_ = 0;
  awaited_ = false;
  return Flush();
}

absl::Status TcpWire::Flush() {
  waits_ = false;
  while (!Drained()) {
    const size_t copied = out_.size() - out_begin_;
    std::array<iovec, 2> parts = {
        {{out_.data() + out_begin_, copied}, {const_cast<std::byte*>(rest_.data()), rest_.size()}}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (sent >= 0) {
      const size_t of_copied = std::min(static_cast<size_t>(sent), copied);
      out_begin_ += of_copied;
      rest_.remove_prefix(static_cast<size_t>(sent) - of_copied);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      return ErrorOf("send", errno);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TcpWire::Work(FrameSink sink) {
  refused_ = false;
  const uint64_t acknowledged = acknowledged_;
  const uint64_t told = told_;
  const size_t waiting = Unsent();
  if (absl::Status flushed = Flush(); !flushed.ok()) return flushed;
  const bool flushed = waiting != Unsent();
  const absl::StatusOr<bool> advanced = Advance(sink);
  if (!advanced.ok()) return advanced.status();
  // While frames come in, one acknowledgement for many; when no more come, at once.
  if (bytes_not_told_ >= kMostBytesNotTold || taken_ - told_ >= kMostFramesNotTold ||
      (awaited_ && (!*advanced || drained_))) {
    if (absl::Status sent = SendAcknowledgement(); !sent.ok()) return sent;
  }
  if (const absl::Time now = MonotonicNow(); now >= next_look_) {
    if (absl::Status alive = LookRound(now); !alive.ok()) return alive;
  }
  return flushed || *advanced || acknowledged != acknowledged_ || told != told_;
}

// Takes what has arrived. Returns whether a frame, or a part of one, was among it.
absl::StatusOr<bool> TcpWire::Advance(FrameSink sink) {
  bool moved = false;
  if (std::exchange(awaits_place_, false)) {
    const absl::StatusOr<bool> offered = Offer(sink);
    if (!offered.ok()) return offered.status();
    moved = *offered;
  }
  for (size_t taken = 0; taken < kMostPerPoll && !awaits_place_;) {
    const absl::StatusOr<size_t> received = Receive();
    if (!received.ok()) return received.status();
    taken += *received;
    const absl::StatusOr<bool> offered = Offer(sink);
    if (!offered.ok()) return offered.status();
    if (*received == 0 && !*offered) break;
    moved = true;
    // Another read would only return EAGAIN.
    if (drained_) break;
  }
  // Whole frames that came before the end have been offered; what is refused now may still be
  // wanted, so the end is an error only once nothing is left.
  if (end_of_stream_ && placed_.size > 0) {
    return Error("the peer closed the connection within a frame");
  }
  if (end_of_stream_ && in_begin_ == in_end_) return Error("the peer closed the connection");
  return moved;
}

// Reads the rest of a frame to its place, and what comes behind it, or else, to in_. Returns how
// many bytes came.
absl::StatusOr<size_t> TcpWire::Receive() {
  MakeRoom();
  drained_ = false;
  if (end_of_stream_ || in_end_ == kInputSize) return 0;
  const size_t rest = placed_.size - placed_.arrived;
  // The rest of a dropped frame passes through in_, which is empty then, and is not kept there. If
  // it has arrived, in_ holds later bytes, as always.
  const bool drops = placed_.dropped && rest > 0;
  std::byte* const place = drops ? in_.get() : placed_.place + placed_.arrived;
  const size_t asked = std::min(gathers_ ? kMostGathered : kLeastPlaced, kInputSize - in_end_);
  std::array<iovec, 2> parts = {{{place, drops ? std::min(rest, kInputSize) : rest},
                                 {in_.get() + in_end_, drops ? 0 : asked}}};
  msghdr message{};
  message.msg_iov = rest > 0 ? parts.data() : parts.data() + 1;
  message.msg_iovlen = rest > 0 ? 2 : 1;
  while (true) {
    const ssize_t result = ::recvmsg(socket_.get(), &message, 0);
    if (result > 0) {
      const auto got = static_cast<size_t>(result);
      const size_t placed = std::min(got, rest);
      placed_.arrived += placed;
      in_end_ += got - placed;
      drained_ = got < parts[0].iov_len + parts[1].iov_len;
      return got;
    }
    if (result == 0) {
      end_of_stream_ = true;
      return 0;
    }
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return ErrorOf("receive", errno);
  }
}

void TcpWire::MakeRoom() {
  if (in_begin_ == in_end_) {
    in_begin_ = in_end_ = 0;
    return;
  }
  // Moving bytes costs, so it waits until a frame that starts here could not be completed in place.
  if (kInputSize - in_begin_ >= kMaxPayload + kLongestHead) return;
  std::memmove(in_.get(), in_.get() + in_begin_, in_end_ - in_begin_);
  in_end_ -= in_begin_;
  in_begin_ = 0;
}

absl::StatusOr<bool> TcpWire::Offer(FrameSink sink) {
  bool moved = false;
  if (placed_.size > 0) {
    if (placed_.arrived < placed_.size) return false;
    // A dropped payload is not verified, because it is not used.
    if (!placed_.dropped &&
        !IsPayloadSigned(absl::MakeSpan(placed_.place, placed_.size), placed_.seal)) {
      return WronglySigned();
    }
    if (!placed_.dropped &&
        !sink(placed_.header, absl::MakeConstSpan(placed_.place, placed_.size))) {
      return false;
    }
    OnTaken(placed_.header, placed_.size);
    NextFrame();
    placed_ = Placed();
    moved = true;
  }
  // A client of another protocol may send less than a header, and then wait for an answer.
  if (in_end_ - in_begin_ >= sizeof(kMagic) &&
      std::memcmp(in_.get() + in_begin_, &kMagic, sizeof(kMagic)) != 0) {
    return Error(kNotAFrame, absl::StatusCode::kInternal);
  }
  // A short frame may make the receiver post the place of the next one, as the note of a transfer
  // does for its bytes.
  bool after_short = false;
  while (in_end_ - in_begin_ >= head_size_) {
    WireHeader wire;
    std::memcpy(&wire, in_.get() + in_begin_, sizeof wire);
    if (wire.magic != kMagic || wire.payload > kMaxPayload || wire.reserved != 0 ||
        !AreFlags(wire.flags, kNoFrame) || ((wire.flags & kNoFrame) != 0 && wire.payload != 0)) {
      return Error(kNotAFrame, absl::StatusCode::kInternal);
    }
    if (!IsSigned(in_.get() + in_begin_)) return WronglySigned();
    Seal seal{};
    if (seals_.has_value()) {
      std::memcpy(&seal, in_.get() + in_begin_ + offsetof(Head, payload), sizeof seal);
    }
    const FrameHeader header = HeaderFrom(wire);
    const size_t size = wire.payload;
    std::byte* const payload = in_.get() + in_begin_ + head_size_;
    const size_t here = in_end_ - in_begin_ - head_size_;
    if (here < size) {
      if (end_of_stream_) return Error("the peer closed the connection within a frame");
      std::byte* const place = size >= kLeastPlaced ? sink.PlaceFor(header, size) : nullptr;
      awaits_place_ = place == nullptr && after_short && size >= kLeastAwaited;
      if (awaits_place_) break;
      gathers_ = place == nullptr;
      if (gathers_) break;
      if (absl::Status counted = TakeCount(wire.taken); !counted.ok()) return counted;
      LineCopy(place, payload, here);
      placed_ = {header, place, size, here, false, seal};
      in_begin_ = in_end_ = 0;
      return true;
    }
    if (!IsPayloadSigned(absl::MakeSpan(payload, size), seal)) return WronglySigned();
    // A frame that is offered again has the same count, which then adds nothing.
    if (absl::Status counted = TakeCount(wire.taken); !counted.ok()) return counted;
    // The next one may go to its place again.
    if (gathers_ && size >= kLeastPlaced) {
      gathers_ = (!after_short || size < kLeastAwaited) && sink.PlaceFor(header, size) == nullptr;
    }
    if ((wire.flags & kNoFrame) != 0) {
      in_begin_ += head_size_;
      NextFrame();
      continue;
    }
    if (!sink(header, absl::MakeConstSpan(payload, size))) break;
    in_begin_ += head_size_ + size;
    OnTaken(header, size);
    NextFrame();
    moved = true;
    after_short = size < kLeastPlaced;
  }
  if (end_of_stream_ && in_end_ > in_begin_ && in_end_ - in_begin_ < head_size_) {
    return Error("the peer closed the connection within a frame");
  }
  return moved;
}

void TcpWire::OnTaken(const FrameHeader& header, size_t size) {
  owner_.stats->receive_bytes.fetch_add(size, std::memory_order_relaxed);
  ++taken_;
  bytes_not_told_ += size;
  awaited_ = awaited_ || header.awaited;
}

absl::Status TcpWire::TakeCount(uint32_t taken) {
  // The wire carries the low 32 bits of the peer's count; far fewer frames are in flight.
  const uint32_t news = taken - static_cast<uint32_t>(acknowledged_);
  if (news > sent_ - acknowledged_) {
    return Error("the peer acknowledges data that was not sent", absl::StatusCode::kInternal);
  }
  acknowledged_ += news;
  for (uint32_t i = 0; i < news; ++i, ends_.Pop()) taken_end_ = ends_[ends_.begin()];
  return absl::OkStatus();
}

absl::Status TcpWire::Acknowledge() {
  if (taken_ == told_) return absl::OkStatus();
  return SendAcknowledgement();
}

absl::Status TcpWire::Arm(Wake /*wake*/) {
  MakeRoom();  // what was taken leaves some, and then more may come
  uint32_t wanted = 0;
  if (!end_of_stream_ && in_end_ < kInputSize) wanted |= EPOLLIN;
  if (refused_ || !Drained()) wanted |= EPOLLOUT;
  if (wanted == watched_) return absl::OkStatus();
  // If it waits for nothing, the socket leaves the set: its hang-up would be reported all the same,
  // and turn the wait into a busy loop.
  if (const absl::Status watched = owner_.waits->Watch(socket_.get(), wanted); !watched.ok()) {
    return Error(watched.message(), absl::StatusCode::kInternal);
  }
  watched_ = wanted;
  return absl::OkStatus();
}

}  // namespace railhead::transport
