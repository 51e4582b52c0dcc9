// SPDX-License-Identifier: Apache-2.0
#include "kube/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <string>

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

}  // namespace
}  // namespace railhead::kube
