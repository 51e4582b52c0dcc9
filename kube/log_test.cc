// SPDX-License-Identifier: Apache-2.0
#include "kube/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <string>

#include "absl/strings/match.h"

namespace railhead::kube {
namespace {

using ::testing::EndsWith;

TEST(LogTest, OneRecordIsOneLineWithoutControlCharacters) {
  ::testing::internal::CaptureStderr();
  SetUpLog("test");
  spdlog::info("pod {}", "a\x1b[2J\nnext\xc2\x9b");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              EndsWith("Z info pod a\\x1b[2J\\nnext\\x9b\n"));
}

TEST(LogTest, RecordsBelowTheLevelAreLeftOut) {
  SetUpLog("levels");
  for (const std::string& level : LogLevels()) {
    ::testing::internal::CaptureStderr();
    SetLogLevel(level);
    spdlog::info("i");
    spdlog::warn("w");
    spdlog::error("e");
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(absl::StrContains(text, " info i"), level == "info");
    EXPECT_EQ(absl::StrContains(text, " warning w"), level != "error");
    EXPECT_TRUE(absl::StrContains(text, " error e")) << text;
  }
  SetLogLevel("info");
}

}  // namespace
}  // namespace railhead::kube
