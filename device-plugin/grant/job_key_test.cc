// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/grant/job_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"

namespace railhead::device_plugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Bytes from `first` to `last`.
std::string Range(int first, int last) {
  std::string bytes;
  for (int byte = first; byte <= last; ++byte) bytes.push_back(static_cast<char>(byte));
  return bytes;
}

// Appendix A.1 to A.3 of RFC 5869.
TEST(HkdfTest, GivesTheKnownAnswers) {
  EXPECT_EQ(absl::BytesToHexString(
                *Hkdf(std::string(22, '\x0b'), Range(0x00, 0x0c), Range(0xf0, 0xf9), 42)),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
  EXPECT_EQ(
      absl::BytesToHexString(*Hkdf(Range(0x00, 0x4f), Range(0x60, 0xaf), Range(0xb0, 0xff), 82)),
      "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c"
      "59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71"
      "cc30c58179ec3e87c14c01d5c1f3434f1d87");
  EXPECT_EQ(absl::BytesToHexString(*Hkdf(std::string(22, '\x0b'), "", "", 42)),
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
}

TEST(HkdfTest, RefusesWhatItCannotDerive) {
  EXPECT_EQ(Hkdf("key", "", "", 255 * 32)->size(), 255 * 32);
  EXPECT_THAT(std::string(Hkdf("key", "", "", 255 * 32 + 1).status().message()),
              HasSubstr("8161 bytes by HKDF-SHA256"));
}

TEST(JobKeyTest, IsWhatHkdfSays) {
  // python3: prk = hmac(b"railhead job secret 1", b"m" * 32);
  // hmac(prk, p(b"ns") + p(b"job") + b"\x01"), where p(x) is the length in four bytes, big end
  // first, and x.
  EXPECT_EQ(*JobKey(std::string(32, 'm'), "ns", "job"),
            "5aa62b39b8f6d10425483add503a6457bca40ad4ee55434f3fc2109000dc498f\n");
}

TEST(JobKeyTest, EveryPartCounts) {
  const std::string master(32, 'm');
  const std::set<std::string> keys = {
      *JobKey(master, "a", "bc"),  *JobKey(master, "ab", "c"),
      *JobKey(master, "", "abc"),  *JobKey(master, "abc", ""),
      *JobKey(master, "a", "bcd"), *JobKey(std::string(32, 'n'), "a", "bc"),
  };
  EXPECT_EQ(keys.size(), 6U);
  for (const std::string& key : keys) EXPECT_EQ(key.size(), 65U);
}

TEST(MasterKeyTest, IsLongEnoughAndNotSomeOtherFile) {
  EXPECT_EQ(*ParseMasterKey(std::string(32, 'k')), std::string(32, 'k'));
  EXPECT_EQ(*ParseMasterKey(std::string(32, 'k') + "\r\n"), std::string(32, 'k'));
  for (const std::string& wrong :
       {std::string(), std::string("\n"), std::string(31, 'k'), std::string(5000, 'k')}) {
    const absl::Status status = ParseMasterKey(wrong).status();
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("32 to 4096"), HasSubstr("openssl rand -hex 32"),
                      ::testing::Not(HasSubstr("kk"))));
  }
}

}  // namespace
}  // namespace railhead::device_plugin
