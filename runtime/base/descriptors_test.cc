// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/descriptors.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

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

TEST(DescriptorsTest, FreeOnesAreCounted) {
  auto child = testing::Process::Fork({}, []() -> std::string {
    const rlimit limit = {200, 200};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return "setrlimit failed";
    std::string counted;
    uint64_t left = FreeDescriptors().value_or(0);
    for (const uint64_t more : {uint64_t{1}, uint64_t{30}, left - 31}) {
      for (uint64_t i = 0; i < more; ++i) {
        if (::eventfd(0, 0) < 0) return absl::StrCat("one of ", left, " cannot be opened");
      }
      left -= more;
      if (FreeDescriptors() != left) {
        return absl::StrCat(FreeDescriptors().value_or(999), " instead of ", left);
      }
    }
    // Those above a lower limit do not count against it.
    const rlimit lower = {100, 200};
    ::setrlimit(RLIMIT_NOFILE, &lower);
    ::close(50);
    return absl::StrCat("all, then ", FreeDescriptors().value_or(999));
  });
  EXPECT_EQ(child.Wait(MonotonicNow() + absl::Seconds(20)).output, "all, then 1");
}

// A start that needs more than there are must not take the last ones from the program's threads.
TEST(DescriptorsTest, CountingTakesNoneFromOtherThreads) {
  auto child = testing::Process::Fork({}, []() -> std::string {
    const rlimit limit = {200, 200};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return "setrlimit failed";
    std::atomic<bool> ended{false};
    std::atomic<int> refused{0};
    std::thread other([&] {
      while (!ended) {
        const int fd = ::eventfd(0, EFD_CLOEXEC);
        fd < 0 ? ++refused : ::close(fd);
      }
    });
    int enough = 0;
    for (int i = 0; i < 2000; ++i) enough += FreeDescriptors().value_or(999) >= 1000 ? 1 : 0;
    ended = true;
    other.join();
    return absl::StrCat(enough, " times enough, ", refused.load(), " refused");
  });
  EXPECT_EQ(child.Wait(MonotonicNow() + absl::Seconds(60)).output, "0 times enough, 0 refused");
}

}  // namespace
}  // namespace railhead
