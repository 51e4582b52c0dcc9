// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/start_abort.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace railhead::comm {
namespace {

// To fail the job takes seconds if other ranks are silent; the start ends without waiting for it.
TEST(StartAbortTest, TheStartLearnsOfItWhileTheJobIsBeingFailed) {
  for (const bool before : {false, true}) {
    const auto abort = std::make_shared<StartAbort>();
    std::promise<void> learned;
    std::promise<void> failing;
    std::thread other;
    const auto fail = [&](const absl::Status& why) {
      EXPECT_EQ(why, absl::AbortedError("first"));
      failing.set_value();
      EXPECT_EQ(learned.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
    };
    const auto learn = [&] {
      failing.get_future().wait();
      EXPECT_EQ(abort->why(), absl::AbortedError("first"));
      learned.set_value();
    };
    if (before) {
      abort->Abort(absl::AbortedError("first"));
      other = std::thread(learn);
      const StartAbort::Told told(abort, fail);
      other.join();
    } else {
      const StartAbort::Told told(abort, fail);
      other = std::thread([&] { abort->Abort(absl::AbortedError("first")); });
      learn();
      other.join();
    }
  }
}

TEST(StartAbortTest, TheFirstErrorCountsAndNobodyIsToldAfterTheStart) {
  const auto abort = std::make_shared<StartAbort>();
  EXPECT_TRUE(abort->why().ok());
  std::vector<absl::Status> told;
  {
    const StartAbort::Told start(abort, [&](const absl::Status& why) { told.push_back(why); });
    EXPECT_TRUE(told.empty());
    abort->Abort(absl::AbortedError("first"));
    abort->Abort(absl::AbortedError("second"));
  }
  abort->Abort(absl::AbortedError("third"));
  EXPECT_EQ(abort->why(), absl::AbortedError("first"));
  EXPECT_EQ(told, (std::vector<absl::Status>(2, absl::AbortedError("first"))));
  const StartAbort::Told none(nullptr, nullptr);
}

}  // namespace
}  // namespace railhead::comm
