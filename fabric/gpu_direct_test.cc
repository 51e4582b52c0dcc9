// SPDX-License-Identifier: Apache-2.0
#include "fabric/gpu_direct.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "fabric/inventory.h"
#include "fabric/pci_path.h"
#include "fabric/root_files.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::fabric {
namespace {

using ::testing::HasSubstr;

constexpr char kGpu[] = "0000:19:00.0";
constexpr char kHca[] = "0000:18:00.0";
constexpr char kFarHca[] = "0000:98:00.0";

// A GPU and an HCA below one switch, and an HCA at another host bridge.
class GpuDirectTest : public ::testing::Test {
 protected:
  GpuDirectTest() {
    const std::string at_switch = "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:0";
    inventory_.gpus.push_back(
        {"10de", kGpu, 0, ParsePciPath(absl::StrCat("/sys/devices/", at_switch, "0.0/", kGpu))});
    inventory_.hcas.push_back(HcaAt("mlx5_0", kHca, absl::StrCat(at_switch, "1.0/", kHca)));
    inventory_.hcas.push_back(
        HcaAt("mlx5_1", kFarHca, absl::StrCat("pci0000:97/0000:97:01.0/", kFarHca)));
    tree_.Write("/proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
    Driver("NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build");
  }

  static Hca HcaAt(const std::string& name, const std::string& address, const std::string& path) {
    Hca hca;
    hca.name = name;
    hca.pci_address = address;
    hca.path = ParsePciPath(absl::StrCat("/sys/devices/", path));
    return hca;
  }
  void Driver(const std::string& text) {
    tree_.Write("/proc/driver/nvidia/version",
                absl::StrCat("NVRM version: ", text, "\nGCC version:  gcc version 13.3.0\n"));
  }
  void Group(const std::string& address, const std::string& group, const std::string& type) {
    tree_.Write(absl::StrCat("/sys/kernel/iommu_groups/", group, "/type"), type + "\n");
    tree_.Link(absl::StrCat("/sys/bus/pci/devices/", address, "/iommu_group"),
               absl::StrCat("../../../../kernel/iommu_groups/", group));
  }
  GpuDirect Read() {
    const RootFiles files = *RootFiles::Open(tree_.root());
    return ReadGpuDirect(files, files, inventory_);
  }

  testing::SysfsTree tree_;
  NodeInventory inventory_;
};

TEST_F(GpuDirectTest, AnOpenDriverOnANewKernelExportsDmabuf) {
  const GpuDirect direct = Read();
  EXPECT_EQ(WayOf(direct), GpuDirectWay::kDmabuf);
  EXPECT_EQ(direct.kernel, "6.8.0-45-generic");
  EXPECT_EQ(GpuDirectTrouble(direct), "");
}

TEST_F(GpuDirectTest, AClosedDriverNeedsPeermem) {
  Driver("NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024");
  GpuDirect direct = Read();
  EXPECT_EQ(WayOf(direct), GpuDirectWay::kNone);
  EXPECT_EQ(GpuDirectTrouble(direct),
            "no HCA can register GPU memory: nvidia-peermem is not loaded, and NVIDIA's "
            "proprietary kernel module does not export dma-buf; install the open one");
  tree_.MakeFolder("/sys/module/nvidia_peermem");
  direct = Read();
  EXPECT_EQ(WayOf(direct), GpuDirectWay::kPeermem);
  EXPECT_EQ(GpuDirectTrouble(direct), "");
}

TEST_F(GpuDirectTest, AnOldOrUnknownKernelHasNoDmabuf) {
  for (const std::string release : {"5.11.0\n", "4.18.0-553.el8\n", "\x01", "six\n", ""}) {
    tree_.Write("/proc/sys/kernel/osrelease", release);
    EXPECT_EQ(WayOf(Read()), GpuDirectWay::kNone) << release;
    EXPECT_THAT(GpuDirectTrouble(Read()), HasSubstr("5.12")) << release;
  }
  for (const std::string release : {"5.12.0", "5.14.0-427.el9", "10.0"}) {
    tree_.Write("/proc/sys/kernel/osrelease", release);
    EXPECT_EQ(WayOf(Read()), GpuDirectWay::kDmabuf) << release;
  }
}

TEST_F(GpuDirectTest, WithoutADriverThereIsNoWay) {
  tree_.Remove("/proc/driver/nvidia/version");
  EXPECT_THAT(GpuDirectTrouble(Read()), HasSubstr("driver is not loaded"));
  inventory_.gpus[0].vendor = "1002";
  EXPECT_THAT(GpuDirectTrouble(Read()), HasSubstr("amdgpu is not loaded"));
  tree_.MakeFolder("/sys/module/amdgpu");
  EXPECT_EQ(WayOf(Read()), GpuDirectWay::kDmabuf);
  inventory_.gpus[0].vendor = "1234";
  EXPECT_EQ(WayOf(Read()), GpuDirectWay::kNone);
}

TEST_F(GpuDirectTest, OneGroupBelowASwitchMeansDirect) {
  EXPECT_EQ(Read().iommu, Iommu::kUnknown);
  tree_.MakeFolder("/sys/kernel/iommu_groups");
  EXPECT_EQ(Read().iommu, Iommu::kOff);
  EXPECT_EQ(Read().switch_path, SwitchPath::kUnknown) << "access control cannot be seen";
  Group(kGpu, "7", "identity");
  Group(kHca, "7", "identity");
  Group(kFarHca, "9", "identity");
  EXPECT_EQ(Read().iommu, Iommu::kPassthrough);
  EXPECT_EQ(Read().switch_path, SwitchPath::kDirect) << "the far HCA shares no switch with the GPU";
  EXPECT_EQ(GpuDirectTrouble(Read()), "");
}

TEST_F(GpuDirectTest, TwoGroupsBelowASwitchMeanADetour) {
  Group(kGpu, "7", "identity");
  Group(kHca, "8", "identity");
  EXPECT_EQ(Read().switch_path, SwitchPath::kRedirected);
  EXPECT_THAT(GpuDirectTrouble(Read()), HasSubstr("ACS"));
}

TEST_F(GpuDirectTest, ATranslatingIommuIsTold) {
  Group(kGpu, "7", "DMA-FQ");
  Group(kHca, "7", "DMA-FQ");
  EXPECT_EQ(Read().iommu, Iommu::kTranslating);
  EXPECT_THAT(GpuDirectTrouble(Read()), HasSubstr("iommu=pt"));
}

}  // namespace
}  // namespace railhead::fabric
