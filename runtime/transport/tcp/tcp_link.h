// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_LINK_H_
#define RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_LINK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/net/fd.h"
#include "runtime/transport/link.h"

namespace railhead::transport {

// Frames on a connected socket. Each is 24 bytes of header (magic, payload size, transfer, offset;
// little-endian) and the payload.
class TcpLink final : public Link {
 public:
  // `socket` is connected and non-blocking; `name` says in errors which connection this is.
  static absl::StatusOr<std::unique_ptr<Link>> Create(net::Fd socket, std::string name);

  size_t max_payload() const override;
  absl::StatusOr<bool> TrySend(const FrameHeader& header,
                               absl::Span<const std::byte> payload) override;
  absl::StatusOr<bool> Poll(FrameSink sink) override;
  bool Flushed() const override { return out_begin_ == out_.size(); }
  int event_fd() const override { return epoll_.get(); }
  absl::Status Arm() override;
  const LinkStats& stats() const override { return stats_; }

 private:
  TcpLink(net::Fd socket, net::Fd epoll, std::string name);

  absl::Status Error(absl::string_view what) const;
  absl::Status Flush();
  absl::StatusOr<bool> Receive();
  absl::StatusOr<bool> Offer(FrameSink sink);
  void MakeRoom();

  net::Fd socket_;
  // Stands for the socket in other people's waits, with exactly the events that matter now.
  net::Fd epoll_;
  uint32_t watched_ = 0;
  std::string name_;
  LinkStats stats_;

  // Arrived bytes [in_begin_, in_end_) of in_.
  std::vector<std::byte> in_;
  size_t in_begin_ = 0;
  size_t in_end_ = 0;
  bool end_of_stream_ = false;

  // The rest of a frame of which the kernel took only the beginning: [out_begin_, out_.size()).
  std::vector<std::byte> out_;
  size_t out_begin_ = 0;
  bool refused_ = false;  // a TrySend found no room since the last Poll
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_LINK_H_
