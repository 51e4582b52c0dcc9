// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/kubelet/kubelet_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railhead::device_plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// As kubelet 1.36.3 writes it.
constexpr char kFile[] = R"({"Data":{"PodDeviceEntries":[
  {"PodUID":"u1","ContainerName":"main","ResourceName":"nvidia.com/gpu",
   "DeviceIDs":{"0":["GPU-a","GPU-b"],"1":["GPU-c"]},"AllocResp":"CgA="},
  {"PodUID":"u2","ContainerName":"main","ResourceName":"rdma/hca","DeviceIDs":{"-1":["rxe0"]},
   "AllocResp":""}],
  "RegisteredDevices":{"rdma/hca":["rxe0"]}},"Checksum":123})";

TEST(KubeletCheckpoint, TellsWhoHasGotAll) {
  EXPECT_THAT(ParseKubeletCheckpoint(kFile).value(),
              ElementsAre(CheckpointEntry{"u1", "nvidia.com/gpu", {"GPU-a", "GPU-b", "GPU-c"}},
                          CheckpointEntry{"u2", "rdma/hca", {"rxe0"}}));
}

TEST(KubeletCheckpoint, TellsNothingOfAnythingElse) {
  for (const char* text : {"", "{", "[]", "7", "{\"Data\":null}"}) {
    EXPECT_FALSE(ParseKubeletCheckpoint(text).has_value()) << text;
  }
  // Kubelet writes null where it has given nothing.
  EXPECT_THAT(ParseKubeletCheckpoint("{\"Data\":{\"PodDeviceEntries\":null}}").value(), IsEmpty());
  EXPECT_THAT(ParseKubeletCheckpoint("{\"Data\":{\"PodDeviceEntries\":7}}").value(),
              ElementsAre(CheckpointEntry{}));
  EXPECT_THAT(
      ParseKubeletCheckpoint(R"({"Data":{"PodDeviceEntries":[{"DeviceIDs":{"0":[7]}}]}})").value(),
      ElementsAre(CheckpointEntry{"", "", {""}}));
  EXPECT_FALSE(ReadKubeletCheckpoint("/nowhere").has_value());
}

}  // namespace
}  // namespace railhead::device_plugin
