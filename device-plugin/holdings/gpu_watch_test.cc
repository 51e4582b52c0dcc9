// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/holdings/gpu_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace railhead::device_plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class GpuWatchTest : public ::testing::Test {
 protected:
  static ContainerDevices Container(const std::string& pod, const std::string& gpu_id,
                                    const std::string& hca_id = "") {
    ContainerDevices container{"default", pod, "main", {}};
    if (!gpu_id.empty()) container.devices["nvidia.com/gpu"] = {gpu_id};
    if (!hca_id.empty()) container.devices["rdma/hca"] = {hca_id};
    return container;
  }
  void Look(const std::vector<ContainerDevices>& listed) { watch_.Look(listed, checkpoint_); }
  std::vector<std::string> InAdmission(const std::vector<ContainerDevices>& listed) const {
    return watch_.InAdmission(listed, checkpoint_, {"rdma/hca"}, gpus_, uuids_);
  }

  const std::vector<fabric::Gpu> gpus_ = {{"10de", "0000:1b:00.0", 0, {}},
                                          {"10de", "0000:43:00.0", 0, {}}};
  const std::map<std::string, std::string> uuids_ = {{"GPU-a", "0000:1b:00.0"},
                                                     {"GPU-b", "0000:43:00.0"}};
  std::vector<CheckpointEntry> checkpoint_;
  GpuWatch watch_;
};

TEST_F(GpuWatchTest, FindsTheGpuOfAnId) {
  EXPECT_EQ(GpuAddress("GPU-b", gpus_, uuids_), "0000:43:00.0");
  EXPECT_EQ(GpuAddress("GPU-b::3", gpus_, uuids_), "0000:43:00.0");
  EXPECT_EQ(GpuAddress("amd-0000:1b:00.0", gpus_, uuids_), "0000:1b:00.0");
  EXPECT_EQ(GpuAddress("GPU-c", gpus_, uuids_), "");
  EXPECT_EQ(GpuAddress("", gpus_, uuids_), "");
}

TEST_F(GpuWatchTest, IsTheNewContainerWithGpusAndWithoutHcas) {
  Look({Container("old", "GPU-b")});
  Look({Container("old", "GPU-b")});
  EXPECT_THAT(InAdmission({Container("old", "GPU-b"), Container("new", "GPU-a")}),
              ElementsAre("0000:1b:00.0"));
  EXPECT_THAT(InAdmission({Container("new", "GPU-a"), Container("old", "GPU-b")}),
              ElementsAre("0000:1b:00.0"));
  // It has its HCA: kubelet asks for somebody else, of whom nothing is known.
  EXPECT_THAT(InAdmission({Container("old", "GPU-b"), Container("new", "GPU-a", "mlx5_0")}),
              IsEmpty());
}

TEST_F(GpuWatchTest, ALookInTheMiddleOfAnAdmissionDoesNotHideIt) {
  Look({});
  Look({Container("new", "GPU-a")});
  EXPECT_THAT(InAdmission({Container("new", "GPU-a")}), ElementsAre("0000:1b:00.0"));
}

TEST_F(GpuWatchTest, OfTwoNewOnesItIsTheLast) {
  ContainerDevices first = Container("pod", "GPU-b");
  first.container = "sidecar";
  EXPECT_THAT(InAdmission({first, Container("pod", "GPU-a")}), ElementsAre("0000:1b:00.0"));
}

// A pod that wants GPUs only came a moment ago, whatever the order in which kubelet lists them.
TEST_F(GpuWatchTest, WhoIsWrittenDownHasGotAll) {
  checkpoint_ = {{"u1", "nvidia.com/gpu", {"GPU-b"}}};
  const ContainerDevices only_gpus = Container("only-gpus", "GPU-b");
  EXPECT_THAT(InAdmission({Container("pod", "GPU-a"), only_gpus}), ElementsAre("0000:1b:00.0"));
  EXPECT_THAT(InAdmission({only_gpus, Container("pod", "GPU-a")}), ElementsAre("0000:1b:00.0"));
  // The one in admission gets its HCAs first: its GPUs are not known yet.
  EXPECT_THAT(InAdmission({only_gpus}), IsEmpty());
}

// A look came between: its entry is an old one now, but it is still not the one in admission.
TEST_F(GpuWatchTest, WhoWasWrittenDownAtALookIsSettled) {
  const ContainerDevices only_gpus = Container("only-gpus", "GPU-b");
  checkpoint_ = {{"u1", "nvidia.com/gpu", {"GPU-b"}}};
  Look({only_gpus});
  EXPECT_THAT(InAdmission({Container("pod", "GPU-a"), only_gpus}), ElementsAre("0000:1b:00.0"));
  EXPECT_THAT(InAdmission({only_gpus}), IsEmpty());
}

// The file still has the pod that had this GPU before.
TEST_F(GpuWatchTest, WhoIsWrittenDownButHasGoneCountsNot) {
  checkpoint_ = {{"u0", "nvidia.com/gpu", {"GPU-a"}}};
  Look({Container("before", "GPU-a")});
  checkpoint_.push_back({"u1", "nvidia.com/gpu", {"GPU-b"}});
  EXPECT_THAT(InAdmission({Container("pod", "GPU-a"), Container("only-gpus", "GPU-b")}),
              ElementsAre("0000:1b:00.0"));
}

TEST_F(GpuWatchTest, APodThatComesBackUnderItsNameIsNew) {
  Look({Container("p", "GPU-a")});
  Look({Container("p", "GPU-a")});
  Look({});
  EXPECT_THAT(InAdmission({Container("p", "GPU-b")}), ElementsAre("0000:43:00.0"));
}

TEST_F(GpuWatchTest, WithoutGpusNothing) {
  EXPECT_THAT(InAdmission({}), IsEmpty());
  EXPECT_THAT(InAdmission({Container("p", "fpga-1")}), IsEmpty());
}

}  // namespace
}  // namespace railhead::device_plugin
