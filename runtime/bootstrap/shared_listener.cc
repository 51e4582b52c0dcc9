// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/shared_listener.h"

#include <algorithm>

#include "absl/status/statusor.h"

namespace railhead::bootstrap {

SharedListener::Rendezvous::Rendezvous(std::shared_ptr<SharedListener> listener, std::string job,
                                       size_t limit)
    : listener_(std::move(listener)), job_(std::move(job)), limit_(limit) {
  absl::StatusOr<net::Event> event = net::Event::Open();
  if (event.ok()) wake_ = *std::move(event);
  const std::lock_guard<std::mutex> lock(listener_->mutex_);
  listener_->open_.push_back(this);
}

SharedListener::Rendezvous::~Rendezvous() {
  const std::lock_guard<std::mutex> lock(listener_->mutex_);
  std::erase(listener_->open_, this);
}

std::deque<SharedListener::Connection> SharedListener::Rendezvous::Take() {
  const std::lock_guard<std::mutex> lock(listener_->mutex_);
  if (wake_.valid() && !waiting_.empty()) wake_.Clear();
  return std::exchange(waiting_, {});
}

bool SharedListener::Give(absl::string_view job, Connection& connection) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(open_.begin(), open_.end(), [job](const Rendezvous* rendezvous) {
    return rendezvous->job_ == job;
  });
  if (found == open_.end() || (*found)->waiting_.size() >= (*found)->limit_) return false;
  (*found)->waiting_.push_back(std::move(connection));
  if ((*found)->wake_.valid()) (*found)->wake_.Signal();
  return true;
}

}  // namespace railhead::bootstrap
