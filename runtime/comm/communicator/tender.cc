// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/communicator/tender.h"

#include "runtime/base/now.h"

namespace railhead::comm {

absl::StatusOr<std::unique_ptr<Tender>> Tender::Start(absl::Duration pause,
                                                      std::function<void(absl::Time now)> tend) {
  absl::StatusOr<std::shared_ptr<net::WatchThread>> thread =
      net::WatchThread::Get(net::WatchThread::Work::kProgress);
  if (!thread.ok()) return thread.status();
  std::unique_ptr<Tender> tender(new Tender(*std::move(thread), pause, std::move(tend)));
  tender->thread_->Wake(*tender, MonotonicNow() + pause);
  return tender;
}

Tender::~Tender() {
  ending_ = true;
  thread_->Wake(*this);
  thread_->AwaitEnd(*this);
}

std::optional<absl::Time> Tender::Turn() {
  if (ending_) return std::nullopt;
  const absl::Time now = MonotonicNow();
  tend_(now);
  return now + pause_;
}

}  // namespace railhead::comm
