// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/lasting_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "device-plugin/cluster/node_events.h"

namespace railhead::device_plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LastingFaultsTest : public ::testing::Test {
 protected:
  std::vector<std::string> Due() {
    std::vector<std::string> messages;
    for (const kube::Event& event : faults_.TakeDue(now_)) messages.push_back(event.message);
    return messages;
  }

  LastingFaults::Clock::time_point now_;
  LastingFaults faults_{std::chrono::minutes(30)};
};

TEST_F(LastingFaultsTest, AFaultIsRepeatedUntilItEnds) {
  faults_.Begin("a", NodeEvent(true, "A", "one"), now_);
  EXPECT_THAT(Due(), IsEmpty());
  now_ += std::chrono::minutes(10);
  faults_.Begin("b", NodeEvent(true, "B", "two"), now_);
  now_ += std::chrono::minutes(20);
  EXPECT_THAT(Due(), ElementsAre("one"));
  EXPECT_THAT(Due(), IsEmpty());
  now_ += std::chrono::minutes(30);
  EXPECT_THAT(Due(), ElementsAre("one", "two"));
  faults_.End("a");
  faults_.End("a");
  now_ += std::chrono::minutes(30);
  EXPECT_THAT(Due(), ElementsAre("two"));
}

TEST_F(LastingFaultsTest, AFaultThatChangesIsRepeatedAsItIs) {
  faults_.Begin("a", NodeEvent(true, "A", "one"), now_);
  now_ += std::chrono::minutes(29);
  faults_.Begin("a", NodeEvent(true, "A", "other"), now_);
  now_ += std::chrono::minutes(29);
  EXPECT_THAT(Due(), IsEmpty());
  now_ += std::chrono::minutes(1);
  EXPECT_THAT(Due(), ElementsAre("other"));
}

}  // namespace
}  // namespace railhead::device_plugin
