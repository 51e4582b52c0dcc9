// SPDX-License-Identifier: Apache-2.0
#include "kube/auth/run_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"

namespace railhead::kube {
namespace {

using ::testing::HasSubstr;

Command Shell(const std::string& script) { return {"sh", {"-c", script}, {}, false}; }

std::string Message(const absl::StatusOr<std::string>& answer) {
  return std::string(answer.status().message());
}

TEST(RunCommandTest, ReturnsWhatItHasWritten) {
  EXPECT_EQ(RunCommand(Shell("printf 'two\nlines\n'")).value(), "two\nlines\n");
  EXPECT_EQ(RunCommand({"true", {}, {}, false}).value(), "");
  // More than a pipe holds.
  EXPECT_EQ(RunCommand(Shell("head -c 300000 /dev/zero")).value().size(), 300000);
}

TEST(RunCommandTest, ArgumentsAndEnvironmentArriveAsTheyAre) {
  ASSERT_EQ(::setenv("RAILHEAD_TEST_KEPT", "kept", 1), 0);
  ASSERT_EQ(::setenv("RAILHEAD_TEST_REPLACED", "old", 1), 0);
  const Command command = {
      "sh",
      {"-c",
       "printf '%s|' \"$@\" \"$RAILHEAD_TEST_KEPT\"; env | grep -c ^RAILHEAD_TEST_REPLACED=;"
       "printf %s \"$RAILHEAD_TEST_REPLACED\"",
       "sh", "a b", "", "$HOME"},
      {{"RAILHEAD_TEST_REPLACED", "new; x=1"}},
      false};
  EXPECT_EQ(RunCommand(command).value(), "a b||$HOME|kept|1\nnew; x=1");
}

TEST(RunCommandTest, ItsInputIsEmptyUnlessItMayRead) {
  EXPECT_EQ(RunCommand(Shell("cat; echo done")).value(), "done\n");
}

TEST(RunCommandTest, SignalsAreAsInANewProgram) {
  struct sigaction old = {};
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGPIPE, &ignore, &old), 0);
  const auto answer = RunCommand(Shell("kill -PIPE $$; echo lives"));
  ASSERT_EQ(::sigaction(SIGPIPE, &old, nullptr), 0);
  EXPECT_THAT(Message(answer), HasSubstr("sh was terminated by signal 13"));
}

TEST(RunCommandTest, SaysHowItFailed) {
  const auto missing = RunCommand({"railhead-no-such-program", {}, {}, false});
  EXPECT_TRUE(absl::IsNotFound(missing.status())) << missing.status();
  EXPECT_THAT(Message(missing), HasSubstr("railhead-no-such-program cannot be run"));
  const auto folder = RunCommand({"/", {}, {}, false});
  EXPECT_TRUE(absl::IsFailedPrecondition(folder.status())) << folder.status();
  const auto failed = RunCommand(Shell("echo half; exit 3"));
  EXPECT_TRUE(absl::IsFailedPrecondition(failed.status()));
  EXPECT_EQ(Message(failed), "sh exited with code 3");
}

TEST(RunCommandTest, IsKilledAtALimit) {
  const auto slow =
      RunCommand(Shell("echo $$; exec sleep 1000"), {absl::Milliseconds(200), size_t{1} << 20U});
  EXPECT_TRUE(absl::IsDeadlineExceeded(slow.status())) << slow.status();
  const auto loud = RunCommand(Shell("yes"), {absl::Minutes(2), 1000});
  EXPECT_TRUE(absl::IsResourceExhausted(loud.status())) << loud.status();
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST(RunCommandTest, WhatItLeavesRunningIsNotWaitedFor) {
  const auto answer = RunCommand(Shell("sleep 1000 & echo $!"));
  ASSERT_TRUE(answer.ok()) << answer.status();
  int left = 0;
  ASSERT_TRUE(absl::SimpleAtoi(*answer, &left));
  EXPECT_EQ(::kill(left, SIGKILL), 0) << "it had ended";
}

}  // namespace
}  // namespace railhead::kube
