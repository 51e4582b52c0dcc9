// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/cpu_limit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace railhead::comm {
namespace {

class CpuLimitTest : public ::testing::Test {
 protected:
  CpuLimitTest() { std::filesystem::remove_all(root_); }
  ~CpuLimitTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  // Tests of this file run side by side.
  const std::string root_ = ::testing::TempDir() + "/cpu-limit-" + std::to_string(getpid());
};

TEST_F(CpuLimitTest, OfVersion2) {
  Write("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  const CpuLimit limit = ReadCpuLimit(root_);
  EXPECT_EQ(limit.millicores, 1500U);
  EXPECT_EQ(limit, ReadCpuLimit(root_ + "/"));
  EXPECT_NE(limit.group, 0U);
}

TEST_F(CpuLimitTest, OfVersion1) {
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(ReadCpuLimit(root_).millicores, 500U);
}

TEST_F(CpuLimitTest, ThereIsNone) {
  EXPECT_EQ(ReadCpuLimit(root_), CpuLimit());
  for (const char* text : {"max 100000\n", "100000\n", "100000 0\n", "-5 100000\n", "many\n",
                           "9223372036854775807 100000\n", ""}) {
    Write("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(ReadCpuLimit(root_), CpuLimit()) << text;
  }
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(ReadCpuLimit(root_), CpuLimit());
}

}  // namespace
}  // namespace railhead::comm
