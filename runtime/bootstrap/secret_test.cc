// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace railhead::bootstrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SecretFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "secret-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& text, mode_t mode = 0600) const {
    const std::string path = absl::StrCat(folder_, "/secret");
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  static absl::StatusOr<std::string> Read(const std::string& path) {
    return ReadSecretFile(path, Logger(LogLevel::kWarn, "rank 1"));
  }

  std::string folder_;
};

TEST_F(SecretFileTest, LineEndsBehindASecretDoNotCount) {
  for (const char* end : {"", "\n", "\r\n", "\n\n"}) {
    const absl::StatusOr<std::string> secret = Read(Write(absl::StrCat("0123456789abcdef", end)));
    ASSERT_TRUE(secret.ok()) << secret.status();
    EXPECT_EQ(*secret, "0123456789abcdef");
  }
  EXPECT_EQ(*Read(""), "");
}

TEST_F(SecretFileTest, WhatIsNoSecretIsRefusedWithoutShowingIt) {
  const absl::Status empty = Read(Write("\n")).status();
  EXPECT_THAT(std::string(empty.message()),
              AllOf(HasSubstr(folder_), HasSubstr("is empty"), HasSubstr("openssl rand -hex 32")));
  const absl::Status brief = Read(Write("hunter2")).status();
  EXPECT_THAT(std::string(brief.message()),
              AllOf(HasSubstr("fewer than 16 bytes"), Not(HasSubstr("hunter2"))));
  EXPECT_THAT(std::string(Read(Write(std::string(5000, 'x'))).status().message()),
              HasSubstr("more than 4096 bytes"));
  EXPECT_THAT(std::string(Read(folder_).status().message()), HasSubstr("cannot be read"));
  EXPECT_THAT(std::string(Read(folder_ + "/none").status().message()),
              AllOf(HasSubstr("RAILHEAD_SECRET_FILE="), HasSubstr("cannot be opened")));
}

TEST_F(SecretFileTest, AFileThatEverybodyMayReadIsWarnedOf) {
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(Read(Write("0123456789abcdef", 0640)).ok());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(Read(Write("0123456789abcdef", 0644)).ok());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("defaultMode: 0440"), Not(HasSubstr("0123456789abcdef"))));
}

TEST(SecretTest, EveryPartOfAProofCounts) {
  const Secret secret("0123456789abcdef", "key");
  const std::string proof = secret.Mac("label", {"a", "bc"});
  EXPECT_EQ(proof.size(), kMacSize);
  EXPECT_TRUE(SameMac(proof, Secret("0123456789abcdef", "key").Mac("label", {"a", "bc"})));
  EXPECT_FALSE(SameMac(proof, secret.Mac("label", {"ab", "c"})));
  EXPECT_FALSE(SameMac(proof, secret.Mac("babel", {"a", "bc"})));
  EXPECT_FALSE(SameMac(proof, Secret("0123456789abcdef", "").Mac("label", {"a", "bc"})));
  EXPECT_FALSE(SameMac(proof, Secret("", "key").Mac("label", {"a", "bc"})));
  EXPECT_FALSE(SameMac(proof, secret.ForSession("s").Mac("label", {"a", "bc"})));
  EXPECT_FALSE(SameMac(proof, proof.substr(1)));
  EXPECT_FALSE(SameMac("", ""));
}

TEST(SecretTest, ItIsHmacSha256) {
  // What python3 says: k = hmac(b"", p(b"railhead job") + p(b"key")), hmac(k, p(b"l") + p(b"a")),
  // where p(x) is the length in four bytes, little end first, and x.
  EXPECT_EQ(absl::BytesToHexString(Secret("", "key").Mac("l", {"a"})),
            "c2f3b8c1a008fb0dda78988690949627a8a4a1c8b877516f2bc80cff20fd2618");
}

TEST(SecretTest, AGroupsNameDoesNotTellItsKey) {
  EXPECT_EQ(GroupName("key"), GroupName("key"));
  EXPECT_NE(GroupName("key"), GroupName("kez"));
  EXPECT_THAT(GroupName("0123456789abcdef"), Not(HasSubstr("0123456789abcdef")));
}

}  // namespace
}  // namespace railhead::bootstrap
