// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/job_secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace railhead::device_plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

ContainerDevices Container(const std::string& pod, const std::vector<std::string>& ids) {
  return {"ns", pod, "main", {{"rdma/hca", ids}, {"example.com/other", {"x"}}}};
}

TEST(PodsThatMayHaveTest, HoldDevicesThatKubeletGaveToThatUid) {
  const std::vector<CheckpointEntry> checkpoint = {{"u1", "rdma/hca", {"a", "b"}, "one"},
                                                   {"u2", "rdma/hca", {"c"}, "two"},
                                                   {"u2", "rdma/other", {"a"}, "three"}};
  const std::vector<ContainerDevices> listed = {Container("p1", {"a", "b"}), Container("p2", {"c"}),
                                                Container("p3", {"d"})};
  EXPECT_THAT(PodsThatMayHave("u1", checkpoint, listed), ElementsAre(Pair("ns", "p1")));
  EXPECT_THAT(PodsThatMayHave("u2", checkpoint, listed), ElementsAre(Pair("ns", "p2")));
  EXPECT_THAT(PodsThatMayHave("u3", checkpoint, listed), IsEmpty());
  EXPECT_THAT(PodsThatMayHave("u1", checkpoint, {}), IsEmpty());
}

TEST(SecretFoldersOfTest, AreThoseThatEntriesName) {
  const std::vector<CheckpointEntry> checkpoint = {{"u1", "rdma/hca", {"a"}, "init"},
                                                   {"u1", "rdma/hca", {"a", "b"}, "main"},
                                                   {"u3", "rdma/hca", {"d"}, ""}};
  EXPECT_THAT(SecretFoldersOf(checkpoint), ElementsAre("init", "main"));
}

}  // namespace
}  // namespace railhead::device_plugin
