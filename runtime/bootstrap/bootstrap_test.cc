// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/bootstrap.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/socket.h>

#include <atomic>
#include <barrier>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/now.h"
#include "runtime/base/wire.h"
#include "runtime/bootstrap/handshake.h"
#include "runtime/bootstrap/messages.h"
#include "runtime/bootstrap/tree.h"
#include "runtime/testing/ranks.h"

namespace {

std::atomic<int> lookups = 0;

}  // namespace

// Hides the C library's, which it calls.
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                           addrinfo** list) {
  ++lookups;
  static const auto real =
      reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(host, service, hints, list);
}

namespace railhead::bootstrap {
namespace {

using railhead::testing::DialStranger;
using railhead::testing::FreePort;
using railhead::testing::IsClosedByPeer;
using railhead::testing::RunRanks;
using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Time In(double seconds) { return MonotonicNow() + absl::Seconds(seconds); }

// Deadline of ranks that wait for nothing in the end: what comes before it is in time also on a
// busy machine, where a thread may not run for seconds.
constexpr double kGivesUp = 10;

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

// A rank's first words, as bytes.
std::string HelloFrame(uint32_t world_size, uint32_t rank, const std::string& job = "job",
                       uint32_t version = kProtocolVersion) {
  return EncodeFrame(FrameKind::kHello, EncodeHello({version, world_size, rank, 0, false, job, "",
                                                     std::string(kNonceSize, 'n'), std::nullopt}));
}

absl::Status Wait(int fd, absl::Time deadline) { return net::WaitReadable(fd, deadline); }

// A connection that has come through the handshake with whoever listens at the port, as a rank that
// then does nothing by itself.
Call ComeAs(uint32_t rank, uint32_t world_size, int port, uint32_t host_rank = 0,
            const Secret& secret = Secret(),
            const std::optional<net::SocketAddress>& listens_at = std::nullopt) {
  Hello hello{kProtocolVersion,
              world_size,
              rank,
              host_rank,
              secret.has_file(),
              "job",
              absl::StrCat("pod p", rank),
              "",
              listens_at};
  return ShakeHands(DialStranger(port), std::move(hello), secret, In(20), Wait);
}

class WorldTest : public ::testing::TestWithParam<int> {};

TEST_P(WorldTest, EverybodyGetsWhatEverybodyGave) {
  const int world = GetParam();
  const int port = FreePort();
  std::barrier all_through(world);  // who ends before the others are through is dead to them
  RunRanks(world, [&](int rank) {
    absl::StatusOr<Bootstrap> bootstrap = Bootstrap::Join(Options(rank, world, port));
    EXPECT_TRUE(bootstrap.ok()) << bootstrap.status();
    if (!bootstrap.ok()) std::abort();
    EXPECT_EQ(bootstrap->world_size(), world);
    std::vector<int> known = {rank, Parent(rank).value_or(0)};
    for (int other = 0; rank == 0 && other < world; ++other) known.push_back(other);
    for (const int other : known) {
      EXPECT_EQ(bootstrap->Describe(other), absl::StrCat("rank ", other, " (pod p", other, ")"));
    }
    if (world > 1) {
      EXPECT_EQ(bootstrap->local_address()->ToString(), "127.0.0.1");
    }
    for (int round = 0; round < 3; ++round) {
      // Every rank gives another number of bytes, up to some hundred thousand.
      const auto part = [round, world](int r) {
        return std::string(static_cast<size_t>(r * (120000 / world) * round),
                           static_cast<char>('a' + r));
      };
      const auto all = bootstrap->Exchange(part(rank), In(20));
      EXPECT_TRUE(all.ok()) << all.status();
      if (!all.ok()) std::abort();
      for (int r = 0; r < world; ++r) EXPECT_EQ((*all)[static_cast<size_t>(r)], part(r));
    }
    all_through.arrive_and_wait();
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

INSTANTIATE_TEST_SUITE_P(Sizes, WorldTest, ::testing::Values(1, 2, 3, 5, 9, 24));

TEST(BootstrapTest, StrangersNeitherHangNorKillAnybodyAndAreCounted) {
  const int port = FreePort();
  std::vector<net::Fd> silent;
  std::thread strangers([&] {
    // These stay silent and open until the end.
    for (int i = 0; i < 3; ++i) silent.push_back(DialStranger(port));
    // And these begin well.
    for (const std::string& prefix : {HelloFrame(3, 1), HelloFrame(3, 2).substr(0, 20)}) {
      silent.push_back(DialStranger(port));
      EXPECT_TRUE(net::SendAll(silent.back().get(), prefix, In(20)).ok());
    }
    const std::vector<std::string> nonsense = {
        "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
        std::string(5000, '\xff'),
        std::string("RHB1") + std::string(8, '\xff'),  // huge frame of an unknown kind
        EncodeFrame(FrameKind::kBye, ""),              // right protocol, wrong beginning
        EncodeFrame(FrameKind::kHello, "short"),       // malformed introduction
        HelloFrame(3, 1, "other"),
        HelloFrame(3, 1, "job", kProtocolVersion + 1) + "new",
        HelloFrame(3, 1) + EncodeFrame(FrameKind::kProof, "short"),
        HelloFrame(3, 1) + EncodeFrame(FrameKind::kProof, std::string(kMacSize, 'p')),
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
    EXPECT_GE(bootstrap->rejected_connections(), 10U);
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
    return Bootstrap::Join(Options(rank, 3, port, rank == 0 ? kGivesUp : 60)).status();
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
  std::thread host([&] { host_status = Bootstrap::Join(Options(0, 3, port, kGivesUp)).status(); });
  const absl::Status status = Bootstrap::Join(Options(1, 2, port, 60)).status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("rank 1 has WORLD_SIZE=2"), HasSubstr("rank 0 has WORLD_SIZE=3")));
  host.join();
  EXPECT_THAT(std::string(host_status.message()), HasSubstr("rank 1 has WORLD_SIZE=2"));
}

TEST(BootstrapTest, ARankThatDoesNotExistIsRefused) {
  const int port = FreePort();
  std::thread host([&] { EXPECT_TRUE(Bootstrap::Join(Options(0, 3, port)).ok()); });
  const Call call = ComeAs(7, 3, port);
  EXPECT_TRUE(call.status.ok()) << call.status;
  EXPECT_TRUE(IsClosedByPeer(call.fd));
  RunRanks(2, [&](int other) {
    EXPECT_TRUE(Bootstrap::Join(Options(1 + other, 3, port)).ok());
    return true;
  });
  host.join();
}

// What each rank's Join returns when their secrets are these, one for each rank.
std::vector<absl::Status> JoinWith(const std::vector<Secret>& secrets) {
  const int port = FreePort();
  const int world = static_cast<int>(secrets.size());
  return RunRanks(world, [&](int rank) {
    JoinOptions options = Options(rank, world, port, rank == 0 ? kGivesUp : 2 * kGivesUp);
    options.secret = secrets[static_cast<size_t>(rank)];
    return Bootstrap::Join(std::move(options)).status();
  });
}

TEST(BootstrapTest, RanksOfOneSecretMeet) {
  const Secret secret("0123456789abcdef", "");
  for (const absl::Status& status : JoinWith({secret, secret, secret})) {
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(BootstrapTest, AnotherSecretIsNamedOnAllRanks) {
  const Secret secret("0123456789abcdef", "");
  for (const absl::Status& status : JoinWith({secret, Secret("0123456789abcdeg", ""), secret})) {
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("rank 1 (pod p1) has a different secret than rank 0 (pod p0)"));
  }
}

// What keys of connections are made of: the same for all ranks of a meeting, and in no other one.
TEST(BootstrapTest, EachMeetingHasASessionOfItsOwn) {
  std::set<std::string> sessions;
  for (const Secret& secret : {Secret(), Secret(), Secret("0123456789abcdef", "")}) {
    const int port = FreePort();
    const std::vector<std::string> proofs = RunRanks(6, [&](int rank) -> std::string {
      JoinOptions options = Options(rank, 6, port);
      options.secret = secret;
      const absl::StatusOr<Bootstrap> bootstrap = Bootstrap::Join(std::move(options));
      if (!bootstrap.ok()) return std::string(bootstrap.status().message());
      EXPECT_EQ(bootstrap->session().proves(), secret.proves());
      return bootstrap->session().Mac("test", {});
    });
    for (const std::string& proof : proofs) EXPECT_EQ(proof, proofs.front());
    sessions.insert(proofs.front());
  }
  EXPECT_EQ(sessions.size(), 3U);
}

// What each of three ranks returns when this one cannot take part, long before the deadline.
std::vector<absl::Status> JoinWithTrouble(int troubled, const std::vector<Secret>& secrets,
                                          double seconds) {
  const int port = FreePort();
  return RunRanks(3, [&](int rank) {
    JoinOptions options = Options(rank, 3, port, seconds);
    options.log = Logger(LogLevel::kWarn, absl::StrCat("rank ", rank));
    options.secret = secrets[static_cast<size_t>(rank)];
    if (rank == troubled) options.trouble = absl::NotFoundError("its secret is not there");
    return Bootstrap::Join(std::move(options)).status();
  });
}

TEST(BootstrapTest, WithoutASecretARankThatCannotTakePartEndsTheStartAtOnce) {
  for (const int troubled : {0, 1}) {
    const std::vector<absl::Status> results =
        JoinWithTrouble(troubled, {Secret(), Secret(), Secret()}, 600);
    for (int rank = 0; rank < 3; ++rank) {
      const absl::Status& status = results[static_cast<size_t>(rank)];
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(absl::StrCat("rank ", troubled, " (pod p", troubled,
                                         "): its secret is not there")));
      EXPECT_EQ(status.code(), rank == troubled ? absl::StatusCode::kNotFound
                                                : absl::StatusCode::kFailedPrecondition);
    }
  }
}

// Anybody can say it, so that it ends nothing; but all ranks say what they wait for.
TEST(BootstrapTest, WithASecretAllRanksLogAtOnceWhoCannotTakePart) {
  const Secret secret("0123456789abcdef", "");
  for (const int troubled : {0, 1}) {
    std::vector<Secret> secrets(3, secret);
    secrets[static_cast<size_t>(troubled)] = Secret();
    ::testing::internal::CaptureStderr();
    const std::vector<absl::Status> results = JoinWithTrouble(troubled, secrets, 7);
    const std::string log = ::testing::internal::GetCapturedStderr();
    const std::string text =
        absl::StrCat("rank ", troubled, " (pod p", troubled, "): its secret is not there");
    for (const absl::Status& status : results) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    }
    if (troubled == 0) {
      EXPECT_THAT(log, HasSubstr(absl::StrCat("rank 0 rejected this rank: ", text)));
    } else {
      EXPECT_THAT(log, HasSubstr(absl::StrCat("rank 0 rejected a rank: ", text)));
    }
  }
}

// A cause that many ranks share is in the error once, with the ranks.
TEST(BootstrapTest, ManyRejectedRanksMakeAShortErrorWithEachCause) {
  constexpr int kRanks = 64;
  for (const unsigned distinct : {1U, 8U}) {
    std::mt19937 random(distinct);
    std::vector<std::string> causes;
    for (unsigned i = 0; i < distinct; ++i) {
      causes.push_back(absl::StrCat("cause ", i, " ", std::string(300 + random() % 200, 'x')));
    }
    const int port = FreePort();
    ::testing::internal::CaptureStderr();
    const std::vector<absl::Status> results = RunRanks(kRanks, [&](int rank) {
      JoinOptions options = Options(rank, kRanks, port, kGivesUp);
      // Nobody who has no secret ends the wait of others.
      if (rank == 0) options.secret = Secret("0123456789abcdef", "");
      const unsigned cause = static_cast<unsigned>(rank) % distinct;
      if (rank > 0) options.trouble = absl::NotFoundError(causes[cause]);
      return Bootstrap::Join(std::move(options)).status();
    });
    ::testing::internal::GetCapturedStderr();  // each rank's cause
    const std::string text(results.front().message());
    EXPECT_LT(text.size(), 4000U) << text;
    for (unsigned i = 0; i < distinct; ++i) {
      const std::string cause = absl::StrCat("cause ", i, " x");
      const size_t first = text.find(cause);
      EXPECT_NE(first, std::string::npos) << cause << ": " << text;
      EXPECT_EQ(text.find(cause, first + 1), std::string::npos) << cause << ": " << text;
    }
  }
}

TEST(BootstrapTest, ASecretOnOneSideOnlyIsNamedOnAllRanks) {
  const Secret secret("0123456789abcdef", "");
  for (const absl::Status& status : JoinWith({secret, Secret(), secret})) {
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("rank 1 (pod p1) has no secret, rank 0 (pod p0) has one"));
  }
  for (const absl::Status& status : JoinWith({Secret(), secret, Secret()})) {
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("rank 1 (pod p1) has a secret, rank 0 (pod p0) has none"));
  }
}

TEST(BootstrapTest, TwoRanksOfOneNumberAreNamed) {
  const int port = FreePort();
  std::thread host([&] { Bootstrap::Join(Options(0, 3, port, 20)).status().IgnoreError(); });
  // Whoever comes first is in, and the other one learns why not.
  const std::vector<absl::Status> statuses =
      RunRanks(2, [&](int) { return Bootstrap::Join(Options(1, 3, port, kGivesUp)).status(); });
  host.join();
  const std::string both = absl::StrCat(statuses[0].message(), "\n", statuses[1].message());
  EXPECT_THAT(both, HasSubstr("two processes have the same RANK"));
}

// Whose the other ranks are cannot be known, so neither job starts; with and without a secret.
TEST(BootstrapTest, ASecondRankZeroIsNamedOnAllRanks) {
  for (const char* secret : {"", "0123456789abcdef"}) {
    const int port = FreePort();
    const std::vector<absl::Status> statuses = RunRanks(3, [&](int number) {
      JoinOptions options = Options(number == 1 ? 1 : 0, 3, port);
      options.secret = Secret(secret, "");
      options.name = absl::StrCat("process ", number);
      // The second rank 0 comes when the first is there.
      if (number == 2) DialStranger(port);
      return Bootstrap::Join(std::move(options)).status();
    });
    for (const absl::Status& status : statuses) {
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("two processes have RANK=0: rank 0 (process 0) and rank 0 "
                                  "(process 2)"),
                        HasSubstr("give each job its own MASTER_PORT or RAILHEAD_JOB")));
    }
    EXPECT_THAT(std::string(statuses[2].message()),
                AllOf(HasSubstr(absl::StrCat("cannot listen on MASTER_PORT ", port, ": process ",
                                             ::getpid(), " (")),
                      HasSubstr("listens there")));
  }
}

// The first rank 0 goes on, and the second job ends with the reason.
TEST(BootstrapTest, ARankZeroOfAnotherJobHarmsNoJob) {
  using Change = std::function<void(JoinOptions&)>;
  const std::pair<Change, const char*> cases[] = {
      {[](JoinOptions& options) { options.job = "other"; }, "belongs to another job"},
      {[](JoinOptions& options) { options.launch = "srun (SLURM_JOB_ID=2)"; },
       "srun (SLURM_JOB_ID=2) has started one, no launcher the other"},
      {[](JoinOptions& options) { options.starter = "here|9:1|process 9 (sh)"; },
       "process 9 (sh) has started one, process 8 (sh) the other"},
      {[](JoinOptions& options) { options.world_size = 3; },
       "rank 0 has WORLD_SIZE=3, rank 0 has WORLD_SIZE=2"}};
  for (const auto& [change, reason] : cases) {
    const int port = FreePort();
    const auto options = [&](int rank) {
      JoinOptions result = Options(rank, 2, port, 60);
      result.starter = "here|8:1|process 8 (sh)";
      return result;
    };
    std::thread host([&] { EXPECT_TRUE(Bootstrap::Join(options(0)).ok()); });
    { const net::Fd there = DialStranger(port); }
    JoinOptions other = options(0);
    change(other);
    EXPECT_THAT(std::string(Bootstrap::Join(std::move(other)).status().message()),
                AllOf(HasSubstr("listens there"), HasSubstr(reason)));
    // A rank of the other job does not get in.
    JoinOptions rank = options(1);
    change(rank);
    rank.deadline = In(0.2);
    EXPECT_FALSE(Bootstrap::Join(std::move(rank)).ok());
    EXPECT_TRUE(Bootstrap::Join(options(1)).ok());
    host.join();
  }
}

// The Hello of rank 1 of 2; other versions have other fields behind these.
std::string HelloOfVersion(uint32_t version) {
  WireWriter writer;
  writer.U32(version);
  writer.U32(2);
  writer.U32(1);
  writer.String("another field");
  return EncodeFrame(FrameKind::kHello, writer.Take());
}

// Sends a Hello of this version to rank 0. Returns its refusal.
Refusal RefusalOf(uint32_t version, int port) {
  const net::Fd guest = DialStranger(port);
  EXPECT_TRUE(net::SendAll(guest.get(), HelloOfVersion(version), In(20)).ok());
  FrameReader reader(kHelloLimit);
  bool open = true;
  while (open) {
    EXPECT_TRUE(net::WaitReadable(guest.get(), In(20)).ok());
    open = net::ReceiveSome(guest.get(), kHelloLimit, reader.buffer()).value_or(false);
    const absl::StatusOr<std::optional<Frame>> frame = reader.Next();
    if (!frame.ok() || !frame->has_value()) continue;
    EXPECT_EQ((*frame)->kind, FrameKind::kRefuse);
    return ParseRefusal((*frame)->payload).value_or(Refusal());
  }
  return {};
}

TEST(BootstrapTest, TwoProtocolVersionsAreBothNamedOnBothSides) {
  // By number: an older and a newer one, without and with a secret.
  RunRanks(4, [](int number) {
    const int port = FreePort();
    const uint32_t version = number % 2 == 0 ? kProtocolVersion - 1 : kProtocolVersion + 1;
    absl::Status host_status;
    std::thread host([&] {
      JoinOptions options = Options(0, 2, port, kGivesUp);
      if (number >= 2) options.secret = Secret("0123456789abcdef", "");
      host_status = Bootstrap::Join(std::move(options)).status();
    });
    const Refusal refusal = RefusalOf(version, port);
    host.join();
    const std::string both = absl::StrCat(
        "rank 1 speaks version ", version, " of the rendezvous, but rank 0 speaks version ",
        kProtocolVersion, ": use the same Railhead release in all pods");
    EXPECT_EQ(refusal.text, both);
    EXPECT_TRUE(refusal.final);
    EXPECT_THAT(std::string(host_status.message()), HasSubstr(both));
    return true;
  });
}

TEST(BootstrapTest, ARankThatRestartsWhileOthersGatherIsTakenAgain) {
  const int port = FreePort();
  std::thread host([&] { EXPECT_TRUE(Bootstrap::Join(Options(0, 3, port)).ok()); });
  // It dies in the middle of the handshake, and then behind it.
  {
    const net::Fd first_life = DialStranger(port);
    ASSERT_TRUE(net::SendAll(first_life.get(), HelloFrame(3, 1), In(20)).ok());
    ASSERT_TRUE(net::WaitReadable(first_life.get(), In(20)).ok());
  }
  ASSERT_TRUE(ComeAs(1, 3, port).status.ok());
  std::thread second_life([&] { EXPECT_TRUE(Bootstrap::Join(Options(1, 3, port)).ok()); });
  EXPECT_TRUE(Bootstrap::Join(Options(2, 3, port)).ok());
  second_life.join();
  host.join();
}

TEST(BootstrapTest, ARecordedHandshakeOpensNothing) {
  const Secret secret("0123456789abcdef", "");
  const auto options = [&](int rank, int port) {
    JoinOptions result = Options(rank, 2, port);
    result.secret = secret;
    return result;
  };
  const int port = FreePort();
  // A rank 1 of this secret, whose words are recorded.
  GuestHandshake guest(
      {kProtocolVersion, 2, 1, 0, true, "job", "", std::string(kNonceSize, 'n'), std::nullopt},
      secret);
  std::string recorded = guest.Begin();
  {
    std::thread host([&] { Bootstrap::Join(options(0, port)).status().IgnoreError(); });
    const net::Fd fd = DialStranger(port);
    ASSERT_TRUE(net::SendAll(fd.get(), recorded, In(20)).ok());
    FrameReader reader(kHelloLimit);
    bool welcome = false;
    while (!welcome) {
      ASSERT_TRUE(net::WaitReadable(fd.get(), In(20)).ok());
      ASSERT_TRUE(net::ReceiveSome(fd.get(), kHelloLimit, reader.buffer()).ok());
      for (auto frame = reader.Next(); frame.ok() && frame->has_value(); frame = reader.Next()) {
        welcome = (*frame)->kind == FrameKind::kWelcome;
        if (welcome) break;
        const GuestHandshake::Step step = guest.Receive(**frame);
        ASSERT_TRUE(step.error.ok()) << step.error;
        recorded += step.reply;
        ASSERT_TRUE(net::SendAll(fd.get(), step.reply, In(20)).ok());
      }
    }
    ::shutdown(fd.get(), SHUT_RDWR);
    host.join();
  }
  // The same words once more, to the next job of the same secret.
  const int next = FreePort();
  std::thread host([&] {
    const absl::StatusOr<Bootstrap> bootstrap = Bootstrap::Join(options(0, next));
    ASSERT_TRUE(bootstrap.ok()) << bootstrap.status();
    EXPECT_GE(bootstrap->rejected_connections(), 1U);
  });
  const net::Fd fd = DialStranger(next);
  ASSERT_TRUE(net::SendAll(fd.get(), recorded, In(20)).ok());
  EXPECT_TRUE(IsClosedByPeer(fd));
  EXPECT_TRUE(Bootstrap::Join(options(1, next)).ok());
  host.join();
}

// Runs a world of which one rank is played by `play`, which comes as ranks come, and returns what
// Join returned on the others.
std::vector<absl::Status> JoinWithout(int world, int played,
                                      const std::function<void(Call, const Welcome&)>& play) {
  const int port = FreePort();
  std::vector<absl::Status> statuses = RunRanks(world, [&](int rank) {
    if (rank != played) return Bootstrap::Join(Options(rank, world, port)).status();
    const net::SocketAddress nowhere{*net::IpAddress::Parse("127.0.0.1"),
                                     static_cast<uint16_t>(FreePort())};
    Call call = ComeAs(static_cast<uint32_t>(rank), static_cast<uint32_t>(world), port, 0, Secret(),
                       nowhere);
    EXPECT_TRUE(call.status.ok()) << call.status;
    const absl::StatusOr<Frame> frame = ReadFrame(call, In(20), Wait);
    const absl::StatusOr<Welcome> welcome =
        frame.ok() ? ParseWelcome(frame->payload) : frame.status();
    EXPECT_TRUE(welcome.ok()) << welcome.status();
    if (welcome.ok()) play(std::move(call), *welcome);
    return absl::OkStatus();
  });
  statuses.erase(statuses.begin() + played);
  return statuses;
}

TEST(BootstrapTest, ARankThatDiesWhileTheTreeGrowsIsNamedOnAllOthers) {
  for (const int victim : {1, 2, 5, 8}) {
    const std::vector<absl::Status> statuses =
        JoinWithout(9, victim, [](Call call, const Welcome&) { call.fd.Reset(); });
    for (const absl::Status& status : statuses) {
      EXPECT_EQ(
          std::string(status.message()),
          absl::StrCat("rank ", victim, " (pod p", victim, ") is gone: its connection was closed"));
    }
  }
}

TEST(BootstrapTest, NobodyElseComesInThroughAnInnerRanksDoor) {
  // Rank 5 is a child of rank 1, and says nothing to it before strangers have tried.
  const std::vector<absl::Status> statuses =
      JoinWithout(9, 5, [](Call call, const Welcome& welcome) {
        ASSERT_TRUE(welcome.parent.has_value());
        const int port = welcome.parent->port;
        const Secret session = Secret().ForSession(welcome.session);
        for (const std::string& nonsense :
             {std::string("GET / HTTP/1.1\r\n\r\n"), HelloFrame(9, 5)}) {
          const net::Fd fd = DialStranger(port);
          EXPECT_TRUE(net::SendAll(fd.get(), nonsense, In(20)).ok());
          EXPECT_TRUE(IsClosedByPeer(fd));
        }
        // Of another meeting of the same job, and a rank that is in another place of the tree.
        EXPECT_FALSE(ComeAs(5, 9, port, 1).status.ok());
        EXPECT_FALSE(ComeAs(5, 9, port, 1, Secret().ForSession("another")).status.ok());
        EXPECT_FALSE(ComeAs(5, 9, port, 2, session).status.ok());
        const Call other = ComeAs(2, 9, port, 1, session);
        EXPECT_TRUE(IsClosedByPeer(other.fd));
        EXPECT_TRUE(ComeAs(5, 9, port, 1, session).status.ok());
        call.fd.Reset();
      });
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(std::string(status.message()), "rank 5 (pod p5) is gone: its connection was closed");
  }
}

TEST(BootstrapTest, ARankThatDiesDuringSetUpIsNamedOnAllOthers) {
  for (const auto& [world, victim] : {std::pair(4, 2), std::pair(24, 1), std::pair(24, 5)}) {
    const int port = FreePort();
    std::barrier all_there(world);
    const std::vector<absl::Status> statuses = RunRanks(world, [&](int rank) {
      absl::StatusOr<Bootstrap> bootstrap = Bootstrap::Join(Options(rank, world, port));
      EXPECT_TRUE(bootstrap.ok()) << bootstrap.status();
      all_there.arrive_and_wait();
      if (!bootstrap.ok() || rank == victim) return bootstrap.status();
      return bootstrap->Exchange(std::string("x"), In(20)).status();
    });
    for (int rank = 0; rank < world; ++rank) {
      if (rank == victim) continue;
      EXPECT_EQ(
          std::string(statuses[static_cast<size_t>(rank)].message()),
          absl::StrCat("rank ", victim, " (pod p", victim, ") is gone: its connection was closed"));
    }
  }
}

TEST(BootstrapTest, ARankThatStandsStillDuringSetUpIsNamed) {
  for (const auto& [world, victim] : {std::pair(3, 2), std::pair(24, 1), std::pair(24, 23)}) {
    const int port = FreePort();
    std::barrier others_know(world);
    const std::vector<absl::Status> statuses = RunRanks(world, [&](int rank) {
      absl::StatusOr<Bootstrap> bootstrap = Bootstrap::Join(Options(rank, world, port));
      absl::Status status = bootstrap.status();
      if (bootstrap.ok() && rank != victim) {
        status = bootstrap->Exchange(std::string("x"), In(rank == 0 ? 5 : 20)).status();
      }
      others_know.arrive_and_wait();
      return status;
    });
    for (int rank = 0; rank < world; ++rank) {
      if (rank == victim) continue;
      EXPECT_EQ(std::string(statuses[static_cast<size_t>(rank)].message()),
                absl::StrCat("rank ", victim, " (pod p", victim,
                             ") did not answer in time while the job was set up"));
    }
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

// Of thousands of ranks that try again and again, none asks the name server each time.
TEST(BootstrapTest, ANameIsNotLookedUpForEachAttempt) {
  const absl::Time start = MonotonicNow();
  JoinOptions options = Options(1, 2, FreePort(), 5);
  options.host = "localhost";
  const int before = lookups;
  EXPECT_THAT(std::string(Bootstrap::Join(std::move(options)).status().message()),
              HasSubstr("refused"));
  // Of some dozen attempts; an answer is used for at least a second.
  EXPECT_LE(lookups - before, 1 + (MonotonicNow() - start) / absl::Seconds(1));
}

TEST(BootstrapTest, SomebodyElseAtTheMasterPortDoesNotFoolARank) {
  const net::Fd listener = *net::Listen(*net::IpAddress::Parse("127.0.0.1"), 0);
  const int port = net::LocalAddress(listener.get())->port;
  std::atomic<bool> given_up = false;
  std::thread web_server([&] {
    // Answers every connection like a web server, until the rank has given up.
    while (!given_up) {
      const absl::Time deadline = In(20);
      if (!net::WaitReadable(listener.get(), In(0.1)).ok()) continue;
      const absl::StatusOr<net::Fd> fd = net::Accept(listener.get());
      if (fd.ok() && fd->valid() && net::WaitReadable(fd->get(), deadline).ok()) {
        std::string request;
        net::ReceiveSome(fd->get(), 4096, &request).status().IgnoreError();
        net::SendAll(fd->get(), "HTTP/1.1 400 Bad Request\r\n\r\n", deadline).IgnoreError();
      }
    }
  });
  const absl::Status status = Bootstrap::Join(Options(1, 2, port, 0.5)).status();
  given_up = true;
  EXPECT_THAT(std::string(status.message()), HasSubstr("not a frame of a Railhead rank"));
  web_server.join();
}

TEST(BootstrapTest, ATakenPortIsReported) {
  const net::Fd listener = *net::Listen(std::nullopt, 0);
  const int port = net::LocalAddress(listener.get())->port;
  EXPECT_THAT(std::string(Bootstrap::Join(Options(0, 2, port, 1)).status().message()),
              AllOf(HasSubstr("MASTER_PORT"), HasSubstr(absl::StrCat(port))));
}

// Rank 2 never comes; what the others know of it ends their wait, not the deadline.
TEST(JoinTest, WhoKnowsThatSomebodyWillNotComeDoesNotWait) {
  const int port = FreePort();
  std::atomic<bool> known = false;
  std::thread news([&] {
    absl::SleepFor(absl::Milliseconds(100));
    known = true;
  });
  const auto statuses = RunRanks(2, [&](int rank) {
    JoinOptions options = Options(rank, 3, port, 1000);
    options.hopeless = [&] {
      return known ? absl::UnavailableError("rank 2 (pod p2) is gone") : absl::OkStatus();
    };
    return Bootstrap::Join(std::move(options)).status();
  });
  news.join();
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 2 (pod p2) is gone"));
  }
}

// Rank 1 never gives its part.
TEST(ExchangeTest, WhoIsToGiveUpEndsItForAll) {
  const int port = FreePort();
  std::atomic<bool> told = false;
  std::barrier<> joined(3);
  RunRanks(3, [&](int rank) {
    JoinOptions options = Options(rank, 3, port, 1000);
    if (rank == 2) {
      options.aborted = [&] {
        return told ? absl::AbortedError("rank 2 gives up") : absl::OkStatus();
      };
    }
    absl::StatusOr<Bootstrap> bootstrap = Bootstrap::Join(std::move(options));
    EXPECT_TRUE(bootstrap.ok()) << bootstrap.status();
    joined.arrive_and_wait();
    told = true;
    if (rank != 1) {
      const absl::Status status = bootstrap->Exchange(std::string("part"), In(1000)).status();
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 2 gives up"));
    }
    joined.arrive_and_wait();
    return true;
  });
}

}  // namespace
}  // namespace railhead::bootstrap
