// SPDX-License-Identifier: Apache-2.0
//
// Concurrent transfers of a communicator. The first one, or what another rank sends, starts the
// lane (lane.h), which runs them.
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/bootstrap/watch.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/comm/communicator/lane.h"
#include "runtime/comm/setup/reach.h"
#include "runtime/shm/mailbox.h"
#include "runtime/transport/wake_event.h"

namespace railhead::comm {

absl::Status Communicator::StartTransfer(LaneTransfer& transfer) {
  if (watch_->failed()) return WhyFailed();
  Lane* transfers = lane();
  if (transfers == nullptr) {
    const absl::StatusOr<Lane*> opened = OpenLane();
    if (!opened.ok()) return opened.status();
    transfers = *opened;
  }
  return transfers->Post(transfer);
}

absl::StatusOr<Lane*> Communicator::OpenLane() {
  const std::lock_guard<std::mutex> lock(lane_mutex_);
  if (lane_ == nullptr) {
    absl::StatusOr<std::shared_ptr<Lane>> started = StartLane();
    if (!started.ok()) return started.status();
    lane_ = *std::move(started);
    lane_reach_.reset();
    lane_started_.store(lane_.get(), std::memory_order_release);
  }
  return lane_.get();
}

const std::vector<int>& Communicator::LaneRanks() const {
  return paths_.hierarchy != nullptr ? paths_.hierarchy->here() : fabric_.decision.places.front();
}

bool Communicator::IsLaneCalled() {
  if (fabric_.lane_memory != nullptr) {
    const std::vector<int>& here = LaneRanks();
    const auto self = std::find(here.begin(), here.end(), rank_) - here.begin();
    if (shm::Mailbox::HasMail(fabric_.lane_memory, static_cast<size_t>(self), here.size())) {
      return true;
    }
  }
  const std::lock_guard<std::mutex> lock(lane_mutex_);
  return lane_reach_.has_value() && !lane_reach_->callers().empty();
}

void Communicator::Tend(absl::Time now) {
  // Without rails the mesh has no peers.
  if (paths_.group == nullptr) paths_.mesh->Tend(now);
  if (lane() != nullptr || watch_->failed() || !IsLaneCalled()) return;
  // Without memory or descriptors: it is called again.
  OpenLane().IgnoreError();
}

size_t Communicator::UnfinishedTransfers() const {
  Lane* const transfers = lane();
  return transfers != nullptr ? transfers->unfinished() : 0;
}

absl::StatusOr<std::shared_ptr<Lane>> Communicator::StartLane() {
  Lane::Options options;
  options.rank = rank_;
  options.world_size = world_size_;
  options.timeout = setup_.settings.timeout;
  options.alarm = {&watch_->failed()};
  if (lane_reach_.has_value()) {
    options.reach = *lane_reach_;
  } else {
    options.reach.wake = std::make_shared<transport::WakeEvent>();
    WakeOnNews(*watch_, options.reach.wake);
  }
  if (fabric_.lane_memory != nullptr) {
    options.memory = fabric_.lane_memory;
    options.here = LaneRanks();
  }
  options.crowded = fabric_.decision.crowded;
  options.name = [this](int rank) { return rank == rank_ ? self_ : absl::StrCat("rank ", rank); };
  options.left = [this](int rank) -> std::optional<std::string> {
    for (const bootstrap::Gone& gone : watch_->gone()) {
      if (gone.rank == rank) return gone.name;
    }
    return std::nullopt;
  };
  options.stuck_with = [this] { return hang_reporter_->StuckWith(); };
  options.fail = [this](const absl::Status& failure) {
    const std::string report =
        absl::IsDeadlineExceeded(failure) ? hang_reporter_->Report(*watch_) : std::string();
    return Fail("transfers (rhIsend, rhIrecv)", failure, report);
  };
  return Lane::Start(std::move(options));
}

}  // namespace railhead::comm
