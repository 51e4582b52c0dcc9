// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/gpu_watch.h"

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
  std::vector<std::string> InAdmission(const std::vector<ContainerDevices>& listed) const {
    return watch_.InAdmission(listed, {"rdma/hca"}, gpus_, uuids_);
  }

  const std::vector<fabric::Gpu> gpus_ = {{"10de", "0000:1b:00.0", 0, {}},
                                          {"10de", "0000:43:00.0", 0, {}}};
  const std::map<std::string, std::string> uuids_ = {{"GPU-a", "0000:1b:00.0"},
                                                     {"GPU-b", "0000:43:00.0"}};
  GpuWatch watch_;
};

TEST_F(GpuWatchTest, FindsTheGpuOfAnId) {
  EXPECT_EQ(GpuAddress("GPU-b", gpus_, uuids_), "0000:43:00.0");
  EXPECT_EQ(GpuAddress("amd-0000:1b:00.0", gpus_, uuids_), "0000:1b:00.0");
  EXPECT_EQ(GpuAddress("GPU-c", gpus_, uuids_), "");
  EXPECT_EQ(GpuAddress("", gpus_, uuids_), "");
}

TEST_F(GpuWatchTest, IsTheNewContainerWithGpusAndWithoutHcas) {
  watch_.Look({Container("old", "GPU-b")});
  watch_.Look({Container("old", "GPU-b")});
  EXPECT_THAT(InAdmission({Container("old", "GPU-b"), Container("new", "GPU-a")}),
              ElementsAre("0000:1b:00.0"));
  EXPECT_THAT(InAdmission({Container("new", "GPU-a"), Container("old", "GPU-b")}),
              ElementsAre("0000:1b:00.0"));
  // It has its HCA: kubelet asks for somebody else, of whom nothing is known.
  EXPECT_THAT(InAdmission({Container("old", "GPU-b"), Container("new", "GPU-a", "mlx5_0")}),
              IsEmpty());
}

TEST_F(GpuWatchTest, ALookInTheMiddleOfAnAdmissionDoesNotHideIt) {
  watch_.Look({});
  watch_.Look({Container("new", "GPU-a")});
  EXPECT_THAT(InAdmission({Container("new", "GPU-a")}), ElementsAre("0000:1b:00.0"));
}

TEST_F(GpuWatchTest, OfTwoNewOnesItIsTheLast) {
  ContainerDevices first = Container("pod", "GPU-b");
  first.container = "sidecar";
  EXPECT_THAT(InAdmission({first, Container("pod", "GPU-a")}), ElementsAre("0000:1b:00.0"));
}

TEST_F(GpuWatchTest, APodThatComesBackUnderItsNameIsNew) {
  watch_.Look({Container("p", "GPU-a")});
  watch_.Look({Container("p", "GPU-a")});
  watch_.Look({});
  EXPECT_THAT(InAdmission({Container("p", "GPU-b")}), ElementsAre("0000:43:00.0"));
}

TEST_F(GpuWatchTest, WithoutGpusNothing) {
  EXPECT_THAT(InAdmission({}), IsEmpty());
  EXPECT_THAT(InAdmission({Container("p", "fpga-1")}), IsEmpty());
}

}  // namespace
}  // namespace railhead::device_plugin
