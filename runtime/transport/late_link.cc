// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/late_link.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace railhead::transport {
namespace {

constexpr absl::Duration kBetweenOpenings = absl::Seconds(1);

}  // namespace

std::unique_ptr<Link> LateLink::Open(Opener open, size_t max_payload) {
  absl::StatusOr<std::unique_ptr<Link>> link = open();
  if (link.ok()) return *std::move(link);
  return std::unique_ptr<Link>(new LateLink(std::move(open), max_payload, link.status()));
}

absl::StatusOr<bool> LateLink::TrySend(const FrameHeader& header,
                                       absl::Span<const std::byte> payload) {
  if (link_ == nullptr) return why_;
  return link_->TrySend(header, payload);
}

Link::Report LateLink::Poll(FrameSink sink) {
  if (link_ == nullptr) return {why_};
  return link_->Poll(sink);
}

absl::StatusOr<bool> LateLink::Reconnect(absl::Time now) {
  if (link_ != nullptr) return link_->Reconnect(now);
  if (now < next_attempt_) return why_;
  next_attempt_ = now + kBetweenOpenings;
  absl::StatusOr<std::unique_ptr<Link>> link = open_();
  if (link.ok() && (*link)->max_payload() < max_payload_) {
    link = absl::InternalError(absl::StrCat("its frames carry ", (*link)->max_payload(),
                                            " bytes, less than ", max_payload_));
  }
  if (!link.ok()) return why_ = link.status();
  link_ = *std::move(link);
  stats_.store(&link_->stats(), std::memory_order_release);
  if (const absl::StatusOr<bool> wakes = link_->WakeBy(epoll_, tag_); !wakes.ok()) {
    return wakes.status();
  }
  return link_->Reconnect(now);
}

absl::StatusOr<bool> LateLink::WakeBy(int epoll, void* tag) {
  epoll_ = epoll;
  tag_ = tag;
  // Without a link, there are no events.
  if (link_ == nullptr) return true;
  return link_->WakeBy(epoll, tag);
}

}  // namespace railhead::transport
