// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/devices/kubelet_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "device-plugin/proto/deviceplugin.pb.h"

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
  EXPECT_THAT(
      ParseKubeletCheckpoint(kFile).value(),
      ElementsAre(CheckpointEntry{"u1", "nvidia.com/gpu", {"GPU-a", "GPU-b", "GPU-c"}, "", "main"},
                  CheckpointEntry{"u2", "rdma/hca", {"rxe0"}, "", "main"}));
}

TEST(KubeletCheckpoint, TellsWhichRailsAContainerHas) {
  const std::string digits = "0123456789abcdef0123456789abcdef";
  const auto rails_of = [](const std::string& path) {
    v1beta1::ContainerAllocateResponse response;
    response.add_mounts()->set_host_path("/etc/hosts");
    response.add_mounts()->set_host_path(path);
    const std::string text =
        absl::StrCat(R"({"Data":{"PodDeviceEntries":[{"AllocResp":")",
                     absl::Base64Escape(response.SerializeAsString()), R"("}]}})");
    return ParseKubeletCheckpoint(text)->at(0).rails_file;
  };
  const std::string folder = "/var/lib/kubelet/device-plugins/railhead/";
  EXPECT_EQ(rails_of(folder + "rails-" + digits + ".json"), digits);
  EXPECT_EQ(rails_of(folder + "rails-" + digits + ".xml"), "");
  EXPECT_EQ(rails_of(folder + "rails-" + digits), "");
  EXPECT_EQ(rails_of(folder + "rails-" + digits + "0.json"), "");
  EXPECT_EQ(rails_of(folder + "secrets/" + digits), "");
}

TEST(KubeletCheckpoint, TellsWhichFolderAContainerHas) {
  const std::string name = "0123456789abcdef0123456789abcdef";
  const auto folder_of = [](const std::string& response) {
    const std::string text = absl::StrCat(R"({"Data":{"PodDeviceEntries":[{"AllocResp":")",
                                          absl::Base64Escape(response), R"("}]}})");
    return ParseKubeletCheckpoint(text)->at(0).secret_folder;
  };
  v1beta1::ContainerAllocateResponse response;
  response.add_mounts()->set_host_path("/var/lib/kubelet/device-plugins/railhead/rails-0.json");
  EXPECT_EQ(folder_of(response.SerializeAsString()), "");
  response.add_mounts()->set_host_path("/var/lib/kubelet/device-plugins/railhead/secrets/" + name);
  response.mutable_mounts(1)->set_container_path("/run/railhead/secret");
  EXPECT_EQ(folder_of(response.SerializeAsString()), name);
  for (const std::string& other :
       {std::string("railhead/secrets/"), "railhead/secrets/" + name.substr(1),
        std::string("railhead/secrets/../../../0123456789abcdef01234567"), "secrets/" + name}) {
    EXPECT_EQ(folder_of(other), "") << other;
  }
  EXPECT_EQ(ParseKubeletCheckpoint(R"({"Data":{"PodDeviceEntries":[{"AllocResp":"!"}]}})")
                ->at(0)
                .secret_folder,
            "");
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
