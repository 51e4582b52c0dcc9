// SPDX-License-Identifier: Apache-2.0
//
// Link of a rail whose device cannot be opened yet. It has no connection, and tries from time to
// time to open the link that it stands for; from then on it is that link. So a rail that is down
// when a communicator starts needs no other treatment than one that is lost later.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_LATE_LINK_H_
#define RAILHEAD_RUNTIME_TRANSPORT_LATE_LINK_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/transport/link.h"

namespace railhead::transport {

class LateLink final : public Link {
 public:
  // Returns the link, or why it cannot be opened now; must not block.
  using Opener = std::function<absl::StatusOr<std::unique_ptr<Link>>()>;

  // Returns the link, or a late one if it cannot be opened now. `max_payload`: what the link will
  // have at least.
  static std::unique_ptr<Link> Open(Opener open, size_t max_payload);

  size_t max_payload() const override { return max_payload_; }
  absl::StatusOr<bool> TrySend(const FrameHeader& header,
                               absl::Span<const std::byte> payload) override;
  absl::Status Push() override { return link_ != nullptr ? link_->Push() : absl::OkStatus(); }
  Report Poll(FrameSink sink) override;
  void StopPlacing() override {
    if (link_ != nullptr) link_->StopPlacing();
  }
  bool polls_in_memory() const override { return link_ == nullptr || link_->polls_in_memory(); }
  bool connected() const override { return link_ != nullptr && link_->connected(); }
  void Drop(absl::string_view why) override {
    if (link_ != nullptr) link_->Drop(why);
  }
  absl::StatusOr<bool> Reconnect(absl::Time now) override;
  bool Flushed() const override { return link_ == nullptr || link_->Flushed(); }
  Load load() const override { return link_ != nullptr ? link_->load() : Load(); }
  void SetHold(size_t bytes) override {
    if (link_ != nullptr) link_->SetHold(bytes);
  }
  absl::StatusOr<bool> WakeBy(int epoll, void* tag) override;
  void Answer(absl::Time now) override {
    if (link_ != nullptr) link_->Answer(now);
  }
  absl::Status Acknowledge() override {
    return link_ != nullptr ? link_->Acknowledge() : absl::OkStatus();
  }
  absl::Status Arm(Wake wake) override {
    return link_ != nullptr ? link_->Arm(wake) : absl::OkStatus();
  }
  std::string MovedTo() const override { return link_ != nullptr ? link_->MovedTo() : ""; }
  void PeerMovedTo(absl::string_view address) override {
    if (link_ != nullptr) link_->PeerMovedTo(address);
  }
  const LinkStats& stats() const override { return *stats_.load(std::memory_order_acquire); }

 private:
  LateLink(Opener open, size_t max_payload, absl::Status why)
      : open_(std::move(open)), max_payload_(max_payload), why_(std::move(why)) {}

  const Opener open_;
  const size_t max_payload_;
  absl::Status why_;  // there is no link yet
  absl::Time next_attempt_ = absl::InfinitePast();
  std::unique_ptr<Link> link_;
  int epoll_ = -1;
  void* tag_ = nullptr;
  const LinkStats none_;
  std::atomic<const LinkStats*> stats_{&none_};
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_LATE_LINK_H_
