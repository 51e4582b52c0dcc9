// SPDX-License-Identifier: Apache-2.0
//
// RDMA rails over fake NICs, for tests whose ranks are threads of one process.
#ifndef RAILHEAD_RUNTIME_COMM_API_FAKE_RAILS_FOR_TEST_H_
#define RAILHEAD_RUNTIME_COMM_API_FAKE_RAILS_FOR_TEST_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "fabric/pod_rails.h"
#include "runtime/base/background.h"
#include "runtime/base/now.h"
#include "runtime/comm/setup/rdma_rail.h"
#include "runtime/transport/verbs/fake_verbs.h"
#include "runtime/transport/verbs/verbs.h"

namespace railhead::comm {

// Advances the time of fake NICs with the monotonic clock, until it is destroyed.
class RunningClock {
 public:
  explicit RunningClock(std::shared_ptr<transport::verbs::FakeVerbs> fake)
      : thread_([this, fake = std::move(fake)] {
          for (absl::Time last = MonotonicNow(); !ended_;) {
            absl::SleepFor(absl::Milliseconds(1));
            const absl::Time now = MonotonicNow();
            fake->AdvanceTime(now - std::exchange(last, now));
          }
        }) {}
  ~RunningClock() {
    ended_ = true;
    thread_.join();
  }
  RunningClock(const RunningClock&) = delete;
  RunningClock& operator=(const RunningClock&) = delete;

 private:
  std::atomic<bool> ended_{false};
  std::thread thread_;  // started last, because it reads the other members
};

// Opens a fake NIC as an RDMA rail.
inline absl::StatusOr<std::unique_ptr<RdmaRail>> OpenFakeRail(
    const std::shared_ptr<transport::verbs::FakeVerbs>& fake, const fabric::PodRail& rail) {
  absl::StatusOr<std::unique_ptr<transport::VerbsDevice>> device =
      transport::OpenVerbsDevice(rail, {}, fake, [fake] { return fake->Now(); });
  if (!device.ok()) return device.status();
  return MakeVerbsRail(*std::move(device));
}

// Fake NICs, `rails` for each of `ranks` ranks, and the clock of their retransmissions. Ranks are
// threads of this process.
class FakeRails {
 public:
  explicit FakeRails(int ranks, int rails = 2)
      : fake_(std::make_shared<transport::verbs::FakeVerbs>(Nics(ranks, rails))) {
    folder_ = (std::filesystem::temp_directory_path() / "railhead-fake-rails-XXXXXX").string();
    if (::mkdtemp(folder_.data()) == nullptr) ADD_FAILURE() << "no folder " << folder_;
    for (int rank = 0; rank < ranks; ++rank) {
      fabric::PodRails pod{"node", {}};
      for (int rail = 0; rail < rails; ++rail) {
        fabric::PodRail& pod_rail = pod.rails.emplace_back();
        pod_rail.rail = rail;
        pod_rail.device = NicName(rank, rail);
      }
      std::ofstream(File(rank)) << fabric::ToJson(pod);
    }
    clock_.emplace(fake_);
  }
  ~FakeRails() {
    // Waits for communicators that were destroyed before their peers'.
    AwaitBackground();
    clock_.reset();
    std::filesystem::remove_all(folder_);
    EXPECT_EQ(fake_->violations(), std::vector<std::string>());
    EXPECT_EQ(fake_->open_objects(), 0U);
  }
  FakeRails(const FakeRails&) = delete;
  FakeRails& operator=(const FakeRails&) = delete;

  transport::verbs::FakeVerbs& verbs() const { return *fake_; }
  // Returns the path of a rank's rails file, for RAILHEAD_RAILS_FILE.
  std::string File(int rank) const { return absl::StrCat(folder_, "/rails-", rank, ".json"); }
  absl::StatusOr<std::unique_ptr<RdmaRail>> Open(const fabric::PodRail& rail) const {
    return OpenFakeRail(fake_, rail);
  }

 private:
  static std::string NicName(int rank, int rail) { return absl::StrCat("fake", rank, "_", rail); }
  static std::vector<transport::verbs::FakeDevice> Nics(int ranks, int rails) {
    std::vector<transport::verbs::FakeDevice> nics;
    for (int rank = 0; rank < ranks; ++rank) {
      for (int rail = 0; rail < rails; ++rail) {
        transport::verbs::FakeDevice& nic = nics.emplace_back();
        nic.name = NicName(rank, rail);
        nic.gids = {transport::verbs::FakeGid(0, absl::StrCat("10.", rail, ".0.", rank + 1),
                                              IBV_GID_TYPE_ROCE_V2)};
      }
    }
    return nics;
  }

  std::string folder_;
  std::shared_ptr<transport::verbs::FakeVerbs> fake_;
  std::optional<RunningClock> clock_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_API_FAKE_RAILS_FOR_TEST_H_
