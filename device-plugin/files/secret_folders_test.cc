// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/files/secret_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "device-plugin/devices/secret_folder_name.h"

namespace railhead::device_plugin {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string NewFolder() {
  std::string path = fs::temp_directory_path() / "secret-folders-XXXXXX";
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  return path;
}

class SecretFoldersTest : public ::testing::Test {
 protected:
  ~SecretFoldersTest() override { fs::remove_all(base_); }

  std::string Make() {
    const absl::StatusOr<std::string> path = folders_.Make();
    EXPECT_TRUE(path.ok()) << path.status();
    return path.value_or("");
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  static mode_t Mode(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }

  const std::string base_ = NewFolder();
  SecretFolders folders_{base_ + "/railhead"};
};

TEST_F(SecretFoldersTest, AnyUserOfTheContainerAndNoOtherUserOfTheHostReadsAKey) {
  const mode_t before = umask(0077);
  const std::string path = Make();
  const std::string name = SecretFolderIn(path);
  ASSERT_TRUE(IsSecretFolderName(name)) << path;
  EXPECT_THAT(folders_.Empty(), ElementsAre(name));
  EXPECT_TRUE(folders_.PutKey(name, "key\n").ok());
  umask(before);
  EXPECT_THAT(folders_.Empty(), IsEmpty());
  EXPECT_EQ(Read(path + "/key"), "key\n");
  EXPECT_EQ(Mode(path + "/key"), 0644);
  EXPECT_EQ(Mode(path), 0755);
  EXPECT_EQ(Mode(base_ + "/railhead/secrets"), 0700);
}

// A container runtime makes it anew, with 0755, if it is missing when a container starts.
TEST_F(SecretFoldersTest, OtherUsersAreKeptOutAgainAtEachUse) {
  const std::string all = base_ + "/railhead/secrets";
  const std::string path = Make();
  const auto open_and = [&](const absl::Status& used) {
    EXPECT_TRUE(used.ok()) << used;
    EXPECT_EQ(Mode(all), 0700);
    EXPECT_EQ(chmod(all.c_str(), 0755), 0);
  };
  open_and(absl::OkStatus());
  open_and(folders_.Make().status());
  open_and(folders_.PutKey(SecretFolderIn(path), "key"));
  open_and(folders_.PutNone(SecretFolderIn(path), "why"));
  open_and(folders_.Collect({}, absl::InfinitePast()));
}

TEST_F(SecretFoldersTest, AFolderOfAnotherUserOrElsewhereGetsNoKey) {
  const std::string path = Make();
  SecretFolders of_another(base_ + "/railhead", geteuid() + 1);
  EXPECT_THAT(std::string(of_another.Make().status().message()), HasSubstr("belongs to user"));
  EXPECT_FALSE(of_another.PutKey(SecretFolderIn(path), "key").ok());
  EXPECT_FALSE(of_another.Collect({}, absl::InfiniteFuture()).ok());
  EXPECT_TRUE(fs::exists(path));
  EXPECT_FALSE(fs::exists(path + "/key"));
  fs::rename(base_ + "/railhead/secrets", base_ + "/elsewhere");
  fs::create_directory_symlink(base_ + "/elsewhere", base_ + "/railhead/secrets");
  EXPECT_FALSE(folders_.Make().ok());
  EXPECT_FALSE(folders_.PutKey(SecretFolderIn(path), "key").ok());
}

TEST_F(SecretFoldersTest, NoTwoAreTheSame) { EXPECT_NE(Make(), Make()); }

TEST_F(SecretFoldersTest, AReasonIsNoKey) {
  const std::string path = Make();
  EXPECT_TRUE(folders_.PutNone(SecretFolderIn(path), "why").ok());
  EXPECT_EQ(Read(path + "/none"), "why\n");
  EXPECT_FALSE(fs::exists(path + "/key"));
  EXPECT_THAT(folders_.Empty(), IsEmpty());
}

TEST_F(SecretFoldersTest, WhatNobodyUsesGoesWithItsKey) {
  const std::string used = Make();
  const std::string unused = Make();
  ASSERT_TRUE(folders_.PutKey(SecretFolderIn(unused), "key").ok());
  std::ofstream(unused + "/key.unfinished") << "ke";
  const std::set<std::string> keep = {SecretFolderIn(used)};
  EXPECT_TRUE(folders_.Collect(keep, absl::InfinitePast()).ok());
  EXPECT_TRUE(fs::exists(unused)) << "too young";
  EXPECT_TRUE(folders_.HasFoldersUntil(absl::InfiniteFuture()));
  EXPECT_TRUE(folders_.Collect(keep, absl::InfiniteFuture()).ok());
  EXPECT_FALSE(fs::exists(unused));
  EXPECT_TRUE(fs::exists(used));
  EXPECT_FALSE(folders_.PutKey(SecretFolderIn(unused), "key").ok());
  EXPECT_FALSE(fs::exists(unused)) << "a key brings it back";
  EXPECT_TRUE(folders_.Collect({}, absl::InfiniteFuture()).ok());
  EXPECT_FALSE(fs::exists(base_ + "/railhead/secrets"));
  EXPECT_FALSE(folders_.HasFoldersUntil(absl::InfiniteFuture()));
}

}  // namespace
}  // namespace railhead::device_plugin
