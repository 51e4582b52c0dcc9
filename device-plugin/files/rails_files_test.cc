// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/files/rails_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "device-plugin/devices/device_list.h"
#include "fabric/pod_rails.h"

namespace railhead::device_plugin {
namespace {

namespace fs = std::filesystem;

fabric::PodRails Rails(const std::vector<int>& numbers) {
  fabric::PodRails rails{.node = "n", .rails = {}};
  for (const int number : numbers) {
    fabric::PodRail rail;
    rail.rail = number;
    rail.device = absl::StrCat("rxe", number);
    rail.pci_address = absl::StrCat("0000:00:0", number, ".0");
    rails.rails.push_back(rail);
  }
  return rails;
}

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

mode_t Mode(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

class RailsFilesTest : public ::testing::Test {
 protected:
  RailsFilesTest() : base_(fs::temp_directory_path() / "railhead-files-XXXXXX") {
    EXPECT_NE(mkdtemp(base_.data()), nullptr);
    folder_ = base_ + "/railhead";
  }
  ~RailsFilesTest() override { fs::remove_all(base_); }

  std::string Store(const std::vector<int>& numbers) {
    const absl::StatusOr<std::string> path = RailsFiles(folder_).Store(Rails(numbers));
    EXPECT_TRUE(path.ok()) << path.status();
    return path.value_or("");
  }

  std::string base_;
  std::string folder_;
};

TEST_F(RailsFilesTest, EveryUserMayReadWhateverTheUmask) {
  const mode_t before = umask(0077);
  const std::string path = Store({0, 1});
  umask(before);
  EXPECT_EQ(fabric::ParsePodRails(Read(path)).value(), Rails({0, 1}));
  EXPECT_EQ(Mode(path), 0644u);
  EXPECT_EQ(Mode(folder_), 0755u);
}

TEST_F(RailsFilesTest, ThePathDependsOnTheContentAlone) {
  const std::string path = Store({0});
  EXPECT_EQ(Store({0}), path);
  EXPECT_NE(Store({1}), path);
  EXPECT_EQ(fs::path(path).parent_path(), folder_);
}

TEST_F(RailsFilesTest, DamageAndFoldersInItsPlaceAreReplaced) {
  const std::string path = Store({0});
  std::ofstream(path) << "{";
  EXPECT_EQ(Store({0}), path);
  EXPECT_EQ(Read(path), fabric::ToJson(Rails({0})));
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_EQ(Store({0}), path);
  EXPECT_EQ(Read(path), fabric::ToJson(Rails({0})));
}

TEST_F(RailsFilesTest, FailsWithThePathWhereItCannotWrite) {
  std::ofstream(folder_) << "a file";
  const absl::StatusOr<std::string> path = RailsFiles(folder_).Store(Rails({0}));
  ASSERT_FALSE(path.ok());
  EXPECT_THAT(std::string(path.status().message()), ::testing::HasSubstr(folder_));
}

TEST_F(RailsFilesTest, CollectKeepsFilesOfUsedDevices) {
  const std::string used = Store({0, 1});
  const std::string unused = Store({2, 3});
  RailsFiles files(folder_);
  EXPECT_TRUE(files.HasFilesUntil(absl::InfiniteFuture()));
  ASSERT_TRUE(files.Collect({"rxe1-0000_00_01_0"}, absl::InfiniteFuture()).ok());
  EXPECT_TRUE(fs::exists(used));
  EXPECT_FALSE(fs::exists(unused));
  ASSERT_TRUE(files.Collect({}, absl::InfiniteFuture()).ok());
  EXPECT_FALSE(fs::exists(folder_));
  EXPECT_FALSE(files.HasFilesUntil(absl::InfiniteFuture()));
  EXPECT_TRUE(files.Collect({}, absl::InfiniteFuture()).ok()) << "nothing to do is no error";
}

TEST_F(RailsFilesTest, YoungFilesStayAndStoringMakesYoung) {
  const std::string path = Store({0});
  RailsFiles files(folder_);
  const absl::Time limit = absl::Now() - absl::Minutes(5);
  EXPECT_FALSE(files.HasFilesUntil(limit));
  ASSERT_TRUE(files.Collect({}, limit).ok());
  EXPECT_TRUE(fs::exists(path));

  const utimbuf old = {0, 0};
  ASSERT_EQ(utime(path.c_str(), &old), 0);
  EXPECT_TRUE(files.HasFilesUntil(limit));
  Store({0});
  EXPECT_FALSE(files.HasFilesUntil(limit));
  ASSERT_EQ(utime(path.c_str(), &old), 0);
  ASSERT_TRUE(files.Collect({}, limit).ok());
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(RailsFilesTest, CollectTakesRemainsButNothingThatIsNotOurs) {
  fs::create_directories(folder_ + "/rails-0123.json");  // made by a container runtime
  std::ofstream(folder_ + "/rails-4567.json") << "garbage";
  std::ofstream(folder_ + "/rails-89ab.json.unfinished") << "{";
  std::ofstream(folder_ + "/notes.txt") << "of the administrator";
  ASSERT_TRUE(RailsFiles(folder_).Collect({}, absl::InfiniteFuture()).ok());
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder_)) left.push_back(entry.path().filename());
  EXPECT_THAT(left, ::testing::ElementsAre("notes.txt"));
}

TEST_F(RailsFilesTest, AFileThatCannotBeReadNowStays) {
  const std::string path = Store({0});
  fs::permissions(base_, fs::perms::all);
  fs::permissions(folder_, fs::perms::all);
  fs::permissions(path, fs::perms::none);
  const bool is_root = geteuid() == 0;
  if (is_root) setfsuid(65534);  // of this thread: root reads files without permissions
  const absl::Status kept = RailsFiles(folder_).Collect({}, absl::InfiniteFuture());
  if (is_root) setfsuid(0);
  EXPECT_TRUE(kept.ok()) << kept;
  ASSERT_TRUE(fs::exists(path));
  fs::permissions(path, fs::perms::owner_all);
  ASSERT_TRUE(RailsFiles(folder_).Collect({}, absl::InfiniteFuture()).ok());
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(RailsFilesTest, StoringAndCollectingAtTheSameTime) {
  RailsFiles files(folder_);
  std::atomic<bool> stop = false;
  std::thread collector([&] {
    while (!stop) {
      EXPECT_TRUE(files.Collect({"rxe0-0000_00_00_0"}, absl::InfiniteFuture()).ok());
    }
  });
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(files.Store(Rails({1 + i % 3})).ok());
    const absl::StatusOr<std::string> used = files.Store(Rails({0, 1 + i % 3}));
    EXPECT_TRUE(used.ok() && fs::exists(*used));
  }
  stop = true;
  collector.join();
}

}  // namespace
}  // namespace railhead::device_plugin
