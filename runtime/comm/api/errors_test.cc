// SPDX-License-Identifier: Apache-2.0
//
// Text that comes from outside the process is printable wherever people see it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "base/printable_text.h"
#include "railhead/railhead.h"
#include "runtime/base/log.h"
#include "runtime/bootstrap/hello.h"
#include "runtime/bootstrap/messages.h"
#include "runtime/comm/api/handle.h"

namespace railhead::comm {
namespace {

using ::testing::EndsWith;

// Letters, controls of all kinds, characters of 2 to 4 bytes, and parts of them.
std::string Hostile(std::mt19937& random) {
  const std::string kinds[] = {
      "a",        "\x1b[2J",          "\x9b",     "\xc2\x9b", "\xe2\x80\xae", "\n",
      "\xc3\xa9", "\xf0\x9f\x9a\x82", "\xe2\x82", "\xff",     "\x7f",         "\r"};
  std::string text;
  for (unsigned i = random() % 2000; i > 0; --i) text += kinds[random() % std::size(kinds)];
  return text;
}

TEST(PrintableErrorsTest, WhateverOthersSay) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const std::string hostile = Hostile(random);
    EXPECT_EQ(Report(nullptr, rhRemoteError, hostile), rhRemoteError);
    EXPECT_TRUE(IsPrintableText(rhGetLastError(nullptr)));
    rhComm comm;
    Report(&comm, absl::InternalError(hostile));
    EXPECT_TRUE(IsPrintableText(rhGetLastError(&comm)));

    ::testing::internal::CaptureStderr();
    Logger(LogLevel::kWarn, hostile).Warn(hostile);
    std::string line = ::testing::internal::GetCapturedStderr();
    ASSERT_THAT(line, EndsWith("\n"));
    line.pop_back();
    EXPECT_TRUE(IsPrintableText(line));

    // What is cut on its way is cut between characters.
    const absl::Status failure =
        bootstrap::ParseFailure(bootstrap::EncodeFailure(absl::InternalError(hostile)));
    EXPECT_TRUE(IsPrintableText(std::string(failure.message())));
    bootstrap::Hello hello;
    hello.version = bootstrap::kProtocolVersion;
    hello.nonce = std::string(bootstrap::kNonceSize, 'n');
    hello.trouble = hostile;
    const absl::StatusOr<bootstrap::Hello> parsed =
        bootstrap::ParseHello(bootstrap::EncodeHello(hello));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_TRUE(IsPrintableText(parsed->trouble));
    EXPECT_EQ(parsed->trouble, PrintableText(hostile, 512)) << "cut twice";
  }
}

}  // namespace
}  // namespace railhead::comm
