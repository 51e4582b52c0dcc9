// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/job_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"

namespace railhead::bootstrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class JobSecretTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "job-secret-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // As the node agent does: whole, and readable by every user of the container.
  void Write(const std::string& name, const std::string& text) const {
    const std::string path = absl::StrCat(folder_, "/", name);
    std::ofstream(path + ".unfinished", std::ios::binary) << text;
    ASSERT_EQ(::chmod((path + ".unfinished").c_str(), 0644), 0);
    std::filesystem::rename(path + ".unfinished", path);
  }

  absl::StatusOr<JobSecret> Await(absl::Duration patience, const Halt& halt = nullptr) const {
    return AwaitJobSecret(folder_, MonotonicNow() + patience, halt);
  }

  std::string folder_;
};

TEST_F(JobSecretTest, AKeyThatIsThereIsTakenAndItsModeIsNoFault) {
  Write("key", "00112233445566778899aabbccddeeff\n");
  ::testing::internal::CaptureStderr();
  const absl::StatusOr<JobSecret> found = Await(absl::ZeroDuration());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->secret, "00112233445566778899aabbccddeeff");
  EXPECT_EQ(found->none_cause, "");
}

TEST_F(JobSecretTest, AKeyThatComesLateIsAwaited) {
  int looks = 0;
  const absl::StatusOr<JobSecret> found = Await(absl::Minutes(10), [&] {
    if (++looks == 3) Write("key", "0123456789abcdef");
    return absl::OkStatus();
  });
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->secret, "0123456789abcdef");
  EXPECT_GE(looks, 3);
}

TEST_F(JobSecretTest, WhereTheAgentSaysThatNoneComesNothingWaits) {
  Write("none", "the pod has no controller\x1b[2J\n");
  const absl::StatusOr<JobSecret> found = Await(absl::InfiniteDuration());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->secret, "");
  EXPECT_TRUE(found->promised);
  EXPECT_THAT(found->none_cause,
              AllOf(HasSubstr("the pod has no controller"), Not(HasSubstr("\x1b"))));
}

TEST_F(JobSecretTest, AnAgentThatWritesNothingIsNamedAfterTheDeadline) {
  const absl::StatusOr<JobSecret> found = Await(absl::Milliseconds(50));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->secret, "");
  EXPECT_TRUE(found->promised);
  EXPECT_THAT(found->none_cause,
              AllOf(HasSubstr("node agent wrote no secret"), HasSubstr(folder_)));
}

TEST_F(JobSecretTest, WithoutTheFolderNothingWaits) {
  std::filesystem::remove(folder_);
  const absl::StatusOr<JobSecret> found = Await(absl::InfiniteDuration());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->secret, "");
  EXPECT_FALSE(found->promised);
  EXPECT_THAT(found->none_cause, HasSubstr("devicePlugin.jobSecrets"));
}

TEST_F(JobSecretTest, AKeyThatIsNoSecretIsAnErrorThatDoesNotShowIt) {
  for (const std::string& wrong : {std::string("hunter2"), std::string(), std::string(5000, 'x')}) {
    Write("key", wrong);
    const absl::Status status = Await(absl::InfiniteDuration()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(folder_ + "/key"), HasSubstr("recreate the pod"),
                      Not(HasSubstr("hunter2")), Not(HasSubstr("xxx"))));
  }
}

TEST_F(JobSecretTest, WhoAbortsWaitsNoLonger) {
  EXPECT_EQ(Await(absl::InfiniteDuration(), [] { return absl::AbortedError("enough"); }).status(),
            absl::AbortedError("enough"));
}

}  // namespace
}  // namespace railhead::bootstrap
