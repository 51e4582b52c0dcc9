// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/kubelet_checkpoint.h"

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
  EXPECT_THAT(ParseKubeletCheckpoint(kFile),
              ElementsAre(CheckpointEntry{"u1", "nvidia.com/gpu", {"GPU-a", "GPU-b", "GPU-c"}},
                          CheckpointEntry{"u2", "rdma/hca", {"rxe0"}}));
}

TEST(KubeletCheckpoint, IsEmptyForAnythingElse) {
  for (const char* text :
       {"", "{", "[]", "7", "{\"Data\":null}", "{\"Data\":{\"PodDeviceEntries\":null}}",
        "{\"Data\":{\"PodDeviceEntries\":7}}"}) {
    for (const CheckpointEntry& entry : ParseKubeletCheckpoint(text)) {
      EXPECT_EQ(entry, CheckpointEntry{}) << text;
    }
  }
  EXPECT_THAT(ParseKubeletCheckpoint(R"({"Data":{"PodDeviceEntries":[{"DeviceIDs":{"0":[7]}}]}})"),
              ElementsAre(CheckpointEntry{"", "", {""}}));
  EXPECT_THAT(ReadKubeletCheckpoint("/nowhere"), IsEmpty());
}

}  // namespace
}  // namespace railhead::device_plugin
