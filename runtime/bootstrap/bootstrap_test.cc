// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/bootstrap/hello.h"
#include "runtime/testing/ranks.h"

namespace railhead::bootstrap {
namespace {

using railhead::testing::DialStranger;
using railhead::testing::FreePort;
using railhead::testing::IsClosedByPeer;
using railhead::testing::RunRanks;
using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Time In(double seconds) { return absl::Now() + absl::Seconds(seconds); }

JoinOptions Options(int rank, int world_size, int port, double seconds = 20) {
  JoinOptions options;
  options.rank = rank;
  options.world_size = world_size;
  options.host = "127.0.0.1";
  options.port = port;
  options.job = "job";
  options.name = absl::StrCat("pod p", rank);
  options.deadline = In(seconds);
  options.log = Logger(LogLevel::kError, "");
  return options;
}

class WorldTest : public ::testing::TestWithParam<int> {};

TEST_P(WorldTest, EverybodyGetsWhatEverybodyGave) {
  const int world = GetParam();
  const int port = FreePort();
  RunRanks(world, [&](int rank) {
    absl::StatusOr<Bootstrap> bootstrap = Bootstrap::Join(Options(rank, world, port));
    EXPECT_TRUE(bootstrap.ok()) << bootstrap.status();
    if (!bootstrap.ok()) return false;
    EXPECT_EQ(bootstrap->world_size(), world);
    EXPECT_EQ(bootstrap->Describe(world - 1),
              absl::StrCat("rank ", world - 1, " (pod p", world - 1, ")"));
    if (world > 1) {
      EXPECT_EQ(bootstrap->local_address()->ToString(), "127.0.0.1");
    }
    for (int round = 0; round < 3; ++round) {
      // Every rank gives another number of bytes, up to some hundred thousand.
      const auto part = [round](int r) {
        return std::string(static_cast<size_t>(r * 40000 * round), static_cast<char>('a' + r));
      };
      const auto all = bootstrap->Exchange(part(rank), In(20));
      EXPECT_TRUE(all.ok()) << all.status();
      if (!all.ok()) return false;
      for (int r = 0; r < world; ++r) EXPECT_EQ((*all)[static_cast<size_t>(r)], part(r));
    }
    return true;
  });
}

TEST_P(WorldTest, OneRanksFailureIsEverybodysError) {
  const int world = GetParam();
  for (int culprit = 0; culprit < world; ++culprit) {
    const int port = FreePort();
    const std::vector<absl::Status> statuses = RunRanks(world, [&](int rank) {
      absl::StatusOr<Bootstrap> bootstrap = Bootstrap::Join(Options(rank, world, port));
      if (!bootstrap.ok()) return bootstrap.status();
      absl::StatusOr<std::string> mine = std::string("fine");
      if (rank == culprit) {
        mine = absl::NotFoundError(absl::StrCat(bootstrap->Describe(rank), ": no uverbs0"));
      }
      return bootstrap->Exchange(std::move(mine), In(20)).status();
    });
    for (const absl::Status& status : statuses) {
      EXPECT_EQ(status, absl::NotFoundError(
                            absl::StrCat("rank ", culprit, " (pod p", culprit, "): no uverbs0")));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, WorldTest, ::testing::Values(1, 2, 3, 5, 9));

TEST(BootstrapTest, StrangersNeitherHangNorKillAnybodyAndAreCounted) {
  const int port = FreePort();
  std::vector<net::Fd> silent;
  std::thread strangers([&] {
    // These stay silent and open until the end.
    for (int i = 0; i < 3; ++i) silent.push_back(DialStranger(port));
    const std::vector<std::string> nonsense = {
        "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
        std::string(5000, '\xff'),
        std::string("RHB1") + std::string(8, '\xff'),  // huge frame of an unknown kind
        EncodeFrame(FrameKind::kBye, ""),              // right protocol, wrong beginning
        EncodeFrame(FrameKind::kHello, "short"),       // malformed introduction
        EncodeFrame(FrameKind::kHello, EncodeHello({kProtocolVersion, 3, 1, "other", ""})),
        EncodeFrame(FrameKind::kHello, EncodeHello({kProtocolVersion, 3, 7, "job", ""})),
        EncodeFrame(FrameKind::kHello, EncodeHello({kProtocolVersion, 3, 0, "job", ""})),
        EncodeFrame(FrameKind::kHello,
                    EncodeHello({kProtocolVersion + 1, 3, 1, "job", ""}) + "new"),
    };
    for (const std::string& bytes : nonsense) {
      const net::Fd fd = DialStranger(port);
      EXPECT_TRUE(net::SendAll(fd.get(), bytes, In(20)).ok());
      EXPECT_TRUE(IsClosedByPeer(fd)) << bytes;
    }
    { const net::Fd leaves_at_once = DialStranger(port); }
  });
  std::thread host([&] {
    const absl::StatusOr<Bootstrap> bootstrap = Bootstrap::Join(Options(0, 3, port));
    ASSERT_TRUE(bootstrap.ok()) << bootstrap.status();
    EXPECT_GE(bootstrap->rejected_connections(), 9U);
  });
  strangers.join();
  std::thread second([&] { EXPECT_TRUE(Bootstrap::Join(Options(2, 3, port)).ok()); });
  EXPECT_TRUE(Bootstrap::Join(Options(1, 3, port)).ok());
  second.join();
  host.join();
}

TEST(BootstrapTest, TheMissingRankIsNamedOnAllThatCame) {
  const int port = FreePort();
  const std::vector<absl::Status> statuses = RunRanks(2, [&](int rank) {
    return Bootstrap::Join(Options(rank, 3, port, rank == 0 ? 1 : 10)).status();
  });
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("rank 2 of 3"), HasSubstr("MASTER_ADDR")));
  }
}

TEST(BootstrapTest, AnotherWorldSizeIsRefusedAtOnceWithTheReason) {
  const int port = FreePort();
  absl::Status host_status;
  std::thread host([&] { host_status = Bootstrap::Join(Options(0, 3, port, 3)).status(); });
  const absl::Status status = Bootstrap::Join(Options(1, 2, port, 60)).status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("rank 1 has WORLD_SIZE=2"), HasSubstr("rank 0 has WORLD_SIZE=3")));
  host.join();
  EXPECT_THAT(std::string(host_status.message()), HasSubstr("rank 1 has WORLD_SIZE=2"));
}

TEST(BootstrapTest, TwoRanksOfOneNumberAreNamed) {
  const int port = FreePort();
  std::thread host([&] { Bootstrap::Join(Options(0, 3, port, 2)).status().IgnoreError(); });
  // Both try for a second; whoever comes first is in, and the other learns why not.
  const std::vector<absl::Status> statuses =
      RunRanks(2, [&](int) { return Bootstrap::Join(Options(1, 3, port, 1)).status(); });
  host.join();
  const std::string both = absl::StrCat(statuses[0].message(), "\n", statuses[1].message());
  EXPECT_THAT(both, HasSubstr("two processes have the same RANK"));
}

TEST(BootstrapTest, ARankThatRestartsWhileOthersGatherIsTakenAgain) {
  const int port = FreePort();
  std::thread host([&] { EXPECT_TRUE(Bootstrap::Join(Options(0, 3, port)).ok()); });
  {
    const net::Fd first_life = DialStranger(port);
    const std::string hello =
        EncodeFrame(FrameKind::kHello, EncodeHello({kProtocolVersion, 3, 1, "job", ""}));
    ASSERT_TRUE(net::SendAll(first_life.get(), hello, In(20)).ok());
  }
  std::thread second_life([&] { EXPECT_TRUE(Bootstrap::Join(Options(1, 3, port)).ok()); });
  EXPECT_TRUE(Bootstrap::Join(Options(2, 3, port)).ok());
  second_life.join();
  host.join();
}

TEST(BootstrapTest, ARankThatDiesDuringSetUpIsNamedOnAllOthers) {
  const int port = FreePort();
  const std::vector<absl::Status> statuses = RunRanks(4, [&](int rank) {
    absl::StatusOr<Bootstrap> bootstrap = Bootstrap::Join(Options(rank, 4, port));
    if (!bootstrap.ok() || rank == 2) return bootstrap.status();
    return bootstrap->Exchange(std::string("x"), In(20)).status();
  });
  for (const int rank : {0, 1, 3}) {
    EXPECT_THAT(std::string(statuses[static_cast<size_t>(rank)].message()),
                HasSubstr("rank 2 (pod p2) is gone"));
  }
}

TEST(BootstrapTest, ARankThatStandsStillDuringSetUpIsNamed) {
  const int port = FreePort();
  const std::vector<absl::Status> statuses = RunRanks(3, [&](int rank) {
    absl::StatusOr<Bootstrap> bootstrap = Bootstrap::Join(Options(rank, 3, port));
    if (!bootstrap.ok()) return bootstrap.status();
    if (rank == 2) {
      // Says nothing until rank 0 has given up on it.
      const std::vector<Member> members = bootstrap->TakeMembers();
      return net::WaitReadable(members.front().fd.get(), In(20));
    }
    return bootstrap->Exchange(std::string("x"), In(rank == 0 ? 0.5 : 20)).status();
  });
  for (const int rank : {0, 1}) {
    EXPECT_THAT(std::string(statuses[static_cast<size_t>(rank)].message()),
                HasSubstr("rank 2 (pod p2) did not answer in time"));
  }
}

TEST(BootstrapTest, NobodyAtTheMasterAddressIsReported) {
  const absl::Status status = Bootstrap::Join(Options(1, 2, FreePort(), 0.3)).status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("rank 1 (pod p1)"), HasSubstr("127.0.0.1:"), HasSubstr("refused")));
}

TEST(BootstrapTest, AnUnknownHostNameIsReported) {
  JoinOptions options = Options(1, 2, FreePort(), 0.5);
  options.host = "no-such-host.invalid";
  EXPECT_THAT(std::string(Bootstrap::Join(std::move(options)).status().message()),
              HasSubstr("no-such-host.invalid"));
}

TEST(BootstrapTest, SomebodyElseAtTheMasterPortDoesNotFoolARank) {
  const net::Fd listener = *net::Listen(*net::IpAddress::Parse("127.0.0.1"), 0);
  const int port = net::LocalAddress(listener.get())->port;
  std::thread web_server([&] {
    const absl::Time deadline = In(20);
    // Answers every connection like a web server, until the rank has given up.
    while (net::WaitReadable(listener.get(), std::min(deadline, In(1))).ok()) {
      const absl::StatusOr<net::Fd> fd = net::Accept(listener.get());
      if (fd.ok() && fd->valid() && net::WaitReadable(fd->get(), deadline).ok()) {
        std::string request;
        net::ReceiveSome(fd->get(), 4096, &request).status().IgnoreError();
        net::SendAll(fd->get(), "HTTP/1.1 400 Bad Request\r\n\r\n", deadline).IgnoreError();
      }
    }
  });
  const absl::Status status = Bootstrap::Join(Options(1, 2, port, 0.5)).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("not of a Railhead rank"));
  web_server.join();
}

TEST(BootstrapTest, ATakenPortIsReported) {
  const net::Fd listener = *net::Listen(std::nullopt, 0);
  const int port = net::LocalAddress(listener.get())->port;
  EXPECT_THAT(std::string(Bootstrap::Join(Options(0, 2, port, 1)).status().message()),
              AllOf(HasSubstr("MASTER_PORT"), HasSubstr(absl::StrCat(port))));
}

TEST(HelloTest, IntroductionsTravelAndBrokenOnesAreRefused) {
  const Hello hello{kProtocolVersion, 8, 3, "job", "pod x"};
  const std::string bytes = EncodeHello(hello);
  const absl::StatusOr<Hello> parsed = ParseHello(bytes);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->rank, 3U);
  EXPECT_EQ(parsed->world_size, 8U);
  EXPECT_EQ(parsed->job, "job");
  EXPECT_EQ(parsed->name, "pod x");
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ParseHello(absl::string_view(bytes).substr(0, size)).ok());
  }
  EXPECT_FALSE(ParseHello(bytes + "x").ok());
}

TEST(FailureTest, ErrorsTravelAndNonsenseBecomesAnError) {
  const absl::Status status = absl::NotFoundError("rank 1: nothing there");
  EXPECT_EQ(ParseFailure(EncodeFailure(status)), status);
  EXPECT_FALSE(ParseFailure("").ok());
  EXPECT_FALSE(ParseFailure(EncodeFailure(absl::OkStatus())).ok());
}

}  // namespace
}  // namespace railhead::bootstrap
