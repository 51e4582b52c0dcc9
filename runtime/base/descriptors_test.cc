// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/descriptors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/testing/processes.h"

namespace railhead {
namespace {

TEST(DescriptorsTest, TheLimitIsRaisedAsFarAsItMay) {
  auto child = testing::Process::Fork({}, []() -> std::string {
    const rlimit limit = {64, 200};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return "setrlimit failed";
    const uint64_t before = DescriptorLimit();
    RaiseDescriptorLimit();
    return absl::StrCat(before, " ", DescriptorLimit());
  });
  EXPECT_EQ(child.Wait(MonotonicNow() + absl::Seconds(20)).output, "64 200");
}

}  // namespace
}  // namespace railhead
