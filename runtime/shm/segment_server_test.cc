// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/segment_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/net/fd.h"
#include "runtime/shm/segment.h"
#include "runtime/testing/processes.h"

namespace railhead::shm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kSize = 1U << 16U;

absl::Time Soon() { return MonotonicNow() + absl::Seconds(30); }

TEST(ShareTest, OtherProcessesSeeTheSameMemory) {
  const Segment segment = *Segment::Create(kSize);
  const absl::StatusOr<SegmentServer> server = SegmentServer::Open();
  ASSERT_TRUE(server.ok()) << server.status();
  std::vector<railhead::testing::Process> takers;
  for (int i = 0; i < 3; ++i) {
    takers.push_back(railhead::testing::Process::Fork({}, [&, i]() -> std::string {
      const absl::StatusOr<Segment> taken = Take(server->address(), kSize, Soon());
      if (!taken.ok()) return std::string(taken.status().message());
      taken->data()[i] = std::byte{42};
      return "taken";
    }));
  }
  EXPECT_TRUE(server->Give(segment, 3, Soon()).ok());
  for (auto& taker : takers) EXPECT_EQ(taker.Wait(Soon()).output, "taken");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(segment.data()[i], std::byte{42});
}

TEST(ShareTest, StrangersAreTurnedAwayAndHoldNobodyUpForLong) {
  const Segment segment = *Segment::Create(kSize);
  const SegmentServer server = *SegmentServer::Open();
  std::string wrong_key = server.address();
  wrong_key.back() = wrong_key.back() == '0' ? '1' : '0';
  // One with a wrong key, one that says nothing.
  absl::Status stranger;
  std::thread wrong([&] { stranger = Take(wrong_key, kSize, Soon()).status(); });
  const net::Fd silent(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const std::string text = absl::StrCat("railhead-", server.address().substr(0, 32));
  std::memcpy(&name.sun_path[1], text.data(), text.size());
  ASSERT_EQ(connect(silent.get(), reinterpret_cast<const sockaddr*>(&name),
                    static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size())),
            0);
  absl::Status taken;
  std::thread taker([&] { taken = Take(server.address(), kSize, Soon()).status(); });
  EXPECT_TRUE(server.Give(segment, 1, Soon()).ok());
  taker.join();
  wrong.join();
  EXPECT_TRUE(taken.ok()) << taken;
  EXPECT_FALSE(stranger.ok());
}

TEST(ShareTest, EveryWaitEnds) {
  const Segment segment = *Segment::Create(kSize);
  const SegmentServer server = *SegmentServer::Open();
  const absl::Time soon = MonotonicNow() + absl::Milliseconds(50);
  EXPECT_THAT(std::string(server.Give(segment, 2, soon).message()), HasSubstr("2 of 2 ranks"));
  EXPECT_FALSE(Take(server.address(), kSize, MonotonicNow() + absl::Milliseconds(50)).ok());
  EXPECT_FALSE(Take(std::string(64, 'f'), kSize, Soon()).ok()) << "nobody is there";
  EXPECT_FALSE(Take("", kSize, Soon()).ok());
}

// At the limit of descriptors accept() fails, and who waits stays readable.
TEST(ShareTest, AtTheLimitOfDescriptorsItSaysSo) {
  const Segment segment = *Segment::Create(kSize);
  const SegmentServer server = *SegmentServer::Open();
  auto child = railhead::testing::Process::Fork({}, [&]() -> std::string {
    const rlimit limit = {3, 3};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return "setrlimit failed";
    return std::string(server.Give(segment, 2, Soon()).message());
  });
  absl::Status taken;
  std::thread taker(
      [&] { taken = Take(server.address(), kSize, MonotonicNow() + absl::Seconds(3)).status(); });
  EXPECT_THAT(child.Wait(Soon()).output,
              AllOf(HasSubstr("cannot give 2 of 2 ranks shared memory"),
                    HasSubstr("Too many open files (EMFILE: this process may have 3 open")));
  taker.join();
  EXPECT_FALSE(taken.ok());
}

TEST(ShareTest, WhoIsToldToGiveUpDoes) {
  const Segment segment = *Segment::Create(kSize);
  const SegmentServer server = *SegmentServer::Open();
  const absl::Status told = absl::AbortedError("told to");
  const Halt halt = [&] { return told; };
  EXPECT_EQ(server.Give(segment, 2, absl::InfiniteFuture(), halt), told);
  EXPECT_EQ(Take(server.address(), kSize, absl::InfiniteFuture(), halt).status(), told);
}

TEST(ShareTest, APlaceIsTheSameForProcessesThatCanShare) {
  const std::string here = PlaceOfProcess();
  EXPECT_NE(here, "");
  auto child = railhead::testing::Process::Fork({}, [] { return PlaceOfProcess(); });
  EXPECT_EQ(child.Wait(Soon()).output, here);
}

}  // namespace
}  // namespace railhead::shm
