// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/files/running_pods_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::device_plugin {
namespace {

using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kUid[] = "0f5a9d2c-1b7e-4c3d-9a88-5c0de1f20731";
constexpr char kOther[] = "9be1cf10-77aa-4d2f-8f0c-3f6a4d6e2b10";
constexpr char kStatic[] = "b3f1c2a4d5e697887766554433221100";

TEST(ReadRunningPods, KnowsTheTreesOfBothDrivers) {
  const fabric::testing::SysfsTree systemd;
  EXPECT_EQ(ReadRunningPods(systemd.root()), std::nullopt) << "no cgroups here";
  const std::string slice = "/sys/fs/cgroup/kubepods.slice";
  systemd.MakeFolder(slice +
                     "/kubepods-burstable.slice/kubepods-burstable-pod0f5a9d2c_1b7e_4c3d_"
                     "9a88_5c0de1f20731.slice/cri-containerd-1234.scope");
  systemd.MakeFolder(slice + "/kubepods-pod9be1cf10_77aa_4d2f_8f0c_3f6a4d6e2b10.slice");
  systemd.MakeFolder("/sys/fs/cgroup/system.slice/pod0f5a9d2c-1b7e-4c3d-9a88-5c0de1f20999");
  EXPECT_THAT(ReadRunningPods(systemd.root()), Optional(UnorderedElementsAre(kUid, kOther)));

  const fabric::testing::SysfsTree cgroupfs;
  cgroupfs.MakeFolder(absl::StrCat("/sys/fs/cgroup/kubepods/besteffort/pod", kUid));
  cgroupfs.MakeFolder(absl::StrCat("/sys/fs/cgroup/kubepods/burstable/pod", kStatic));
  cgroupfs.MakeFolder(absl::StrCat("/sys/fs/cgroup/kubepods/pod", kOther));
  cgroupfs.MakeFolder("/sys/fs/cgroup/kubepods/podium");
  EXPECT_THAT(ReadRunningPods(cgroupfs.root()),
              Optional(UnorderedElementsAre(kUid, kOther, kStatic)));

  const fabric::testing::SysfsTree version1;
  version1.MakeFolder(absl::StrCat("/sys/fs/cgroup/pids/kubepods/burstable/pod", kUid));
  EXPECT_THAT(ReadRunningPods(version1.root()), Optional(UnorderedElementsAre(kUid)));

  // As in kind, whose kubelet has --cgroup-root=/kubelet.
  const fabric::testing::SysfsTree below;
  below.MakeFolder(
      "/sys/fs/cgroup/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
      "kubelet-kubepods-burstable-pod0f5a9d2c_1b7e_4c3d_9a88_5c0de1f20731.slice");
  EXPECT_THAT(ReadRunningPods(below.root()), Optional(UnorderedElementsAre(kUid)));
}

TEST(RunningPodsFile, IsOfOneBoot) {
  const fabric::testing::SysfsTree tree;
  const std::string folder = tree.root() + "/railhead";
  PodsByUid pods;
  pods[kUid].has_run = true;
  pods[kOther].name = {"team", "trainer"};
  RunningPodsFile(folder, "boot-1").Save(pods);
  EXPECT_THAT(RunningPodsFile(folder, "boot-1").Load(),
              UnorderedElementsAre(Pair(kUid, KnownPod{{}, true})));
  EXPECT_THAT(RunningPodsFile(folder, "boot-2").Load(), IsEmpty());
  EXPECT_THAT(RunningPodsFile(folder, "").Load(), IsEmpty());
  RunningPodsFile again(folder, "boot-1");
  again.Load();
  again.Save({});
  EXPECT_TRUE(std::filesystem::is_empty(folder)) << "nothing stays when no pod does";
}

}  // namespace
}  // namespace railhead::device_plugin
