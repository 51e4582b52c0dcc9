// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/available_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace railhead::shm {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20U;

// A made-up /proc and /sys.
class AvailableMemoryTest : public ::testing::Test {
 protected:
  AvailableMemoryTest() : root_(absl::StrCat(::testing::TempDir(), "/available-XXXXXX")) {
    if (::mkdtemp(root_.data()) == nullptr) std::abort();
    Write("/proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\n");
  }
  ~AvailableMemoryTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void WriteGroup(uint64_t limit, uint64_t used, const std::string& stat) const {
    Write("/sys/fs/cgroup/memory.max", absl::StrCat(limit, "\n"));
    Write("/sys/fs/cgroup/memory.current", absl::StrCat(used, "\n"));
    Write("/sys/fs/cgroup/memory.stat", stat);
  }

  std::string root_;
};

TEST_F(AvailableMemoryTest, IsTheMachinesWithoutALimit) {
  EXPECT_EQ(AvailableMemory(root_), 32768 * kMiB);
  Write("/sys/fs/cgroup/memory.max", "max\n");
  Write("/sys/fs/cgroup/memory.current", "1048576\n");
  EXPECT_EQ(AvailableMemory(root_), 32768 * kMiB);
}

// A pod that has read a checkpoint has its limit full of the file's pages, and all of it is there
// for the asking.
TEST_F(AvailableMemoryTest, PagesOfFilesAndSlabsThatGoWhenNeededAreNotUsed) {
  WriteGroup(4096 * kMiB, 4090 * kMiB,
             absl::StrCat("anon ", 90 * kMiB, "\nfile ", 4000 * kMiB, "\nslab_reclaimable ",
                          100 * kMiB, "\nslab_unreclaimable ", 7 * kMiB, "\ninactive_file ",
                          3000 * kMiB, "\nactive_file ", 800 * kMiB, "\nshmem ", 200 * kMiB, "\n"));
  EXPECT_EQ(AvailableMemory(root_), (4096 - (4090 - 3000 - 800 - 100)) * kMiB);
}

TEST_F(AvailableMemoryTest, VersionOneIsReadToo) {
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", absl::StrCat(2048 * kMiB));
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", absl::StrCat(2000 * kMiB));
  Write("/sys/fs/cgroup/memory/memory.stat",
        absl::StrCat("inactive_file 1\nactive_file 1\ntotal_inactive_file ", 1500 * kMiB,
                     "\ntotal_active_file ", 200 * kMiB, "\n"));
  EXPECT_EQ(AvailableMemory(root_), 1748 * kMiB);
}

TEST_F(AvailableMemoryTest, CountsThatContradictEachOtherDoNotWrap) {
  WriteGroup(100 * kMiB, 50 * kMiB, absl::StrCat("inactive_file ", 70 * kMiB, "\n"));
  EXPECT_EQ(AvailableMemory(root_), 100 * kMiB);
  WriteGroup(100 * kMiB, 150 * kMiB, "");
  EXPECT_EQ(AvailableMemory(root_), 0U);
}

}  // namespace
}  // namespace railhead::shm
