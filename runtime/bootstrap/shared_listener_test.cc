// SPDX-License-Identifier: Apache-2.0
//
// Rendezvous that share a listening socket: each gets its own guests.
#include "runtime/bootstrap/shared_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/call.h"
#include "runtime/bootstrap/handshake_server.h"
#include "runtime/net/socket.h"
#include "runtime/testing/ranks.h"

namespace railhead::bootstrap {
namespace {

using railhead::testing::DialStranger;
using railhead::testing::RunRanks;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

absl::Time InSeconds(double seconds) { return MonotonicNow() + absl::Seconds(seconds); }

struct Shared {
  std::shared_ptr<SharedListener> socket =
      std::make_shared<SharedListener>(*net::Listen(*net::IpAddress::Parse("127.0.0.1"), 0));
  int port = net::LocalAddress(socket->fd())->port;
};

Hello GuestOf(const std::string& job, uint32_t rank = 1) {
  return {kProtocolVersion, 3, rank, 0, false, job, "", std::string(kNonceSize, 'n'), std::nullopt};
}

// Server of one job with a shared socket, which serves when it is told to.
class Server {
 public:
  Server(const Shared& shared, const std::string& job)
      : server_(
            {net::Fd(), shared.socket}, {0, job, ""}, Secret(), 3,
            [](const Hello&) { return std::nullopt; }, Logger(LogLevel::kError, "")) {}

  // Serves until `done` or for 20 s.
  template <class Done>
  bool ServeUntil(Done done) {
    const absl::Time end = InSeconds(20);
    while (!done()) {
      if (MonotonicNow() >= end) return false;
      // No poll ends when another thread makes `done` true.
      absl::Time deadline = InSeconds(0.01);
      std::vector<pollfd> entries;
      server_.Prepare(entries, deadline);
      ::poll(entries.data(), entries.size(), net::PollTimeout(deadline));
      for (HandshakeServer::Guest& guest : server_.Serve(entries.data())) {
        guests_.push_back(std::move(guest));
      }
    }
    return true;
  }
  bool ServeUntilGuests(size_t number) {
    return ServeUntil([&] { return guests_.size() >= number; });
  }

  const std::vector<HandshakeServer::Guest>& guests() const { return guests_; }
  const HandshakeServer& server() const { return server_; }
  // Whether connections wait for it.
  bool IsWoken() const {
    std::vector<pollfd> entries;
    absl::Time deadline = absl::InfiniteFuture();
    server_.Prepare(entries, deadline);
    return ::poll(&entries[1], 1, 0) == 1;
  }

 private:
  HandshakeServer server_;
  std::vector<HandshakeServer::Guest> guests_;
};

// A guest that shakes hands in a thread of its own.
class Caller {
 public:
  Caller(const Shared& shared, Hello hello)
      : thread_([this, port = shared.port, hello = std::move(hello)] {
          call_ = ShakeHands(
              DialStranger(port), hello, Secret(), InSeconds(20),
              [](int fd, absl::Time deadline) { return net::WaitReadable(fd, deadline); });
          done_ = true;
        }) {}
  ~Caller() {
    if (thread_.joinable()) thread_.join();
  }
  bool done() const { return done_; }
  const Call& Result() {
    thread_.join();
    return call_;
  }

 private:
  std::atomic<bool> done_ = false;
  Call call_;
  std::thread thread_;
};

TEST(SharedListenerTest, AGuestReachesTheRendezvousThatItNames) {
  const Shared shared;
  Server first(shared, "first");
  Server second(shared, "second");
  Caller caller(shared, GuestOf("second"));
  ASSERT_TRUE(first.ServeUntil([&] { return second.IsWoken(); }));
  EXPECT_FALSE(caller.done());
  ASSERT_TRUE(second.ServeUntilGuests(1));
  const Call& call = caller.Result();
  EXPECT_TRUE(call.status.ok()) << call.status;
  EXPECT_EQ(second.guests().front().hello.job, "second");
  EXPECT_THAT(second.guests().front().from, HasSubstr("127.0.0.1:"));
  EXPECT_FALSE(second.IsWoken());
  EXPECT_THAT(first.guests(), IsEmpty());
  EXPECT_EQ(first.server().rejected(), 0);
}

// It says no more than is true: nobody is rejected.
TEST(SharedListenerTest, AGuestWhoseRendezvousIsNotOpenIsToldToComeAgain) {
  const Shared shared;
  Server server(shared, "first");
  Caller caller(shared, GuestOf("second"));
  ASSERT_TRUE(server.ServeUntil([&] { return caller.done(); }));
  const Call& call = caller.Result();
  EXPECT_EQ(call.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(call.status.message()), HasSubstr("not opened this rendezvous yet"));
  EXPECT_TRUE(call.not_open);
  EXPECT_FALSE(call.final);
  EXPECT_EQ(server.server().rejected(), 0);
  EXPECT_THAT(server.server().turned_away(), IsEmpty());
}

TEST(SharedListenerTest, AtASocketOfItsOwnAServerRejectsAnotherJob) {
  net::Fd listener = *net::Listen(*net::IpAddress::Parse("127.0.0.1"), 0);
  Shared shared;
  shared.port = net::LocalAddress(listener.get())->port;
  JoinOptions options;
  options.world_size = 3;
  options.job = "first";
  options.listener = std::move(listener);
  options.deadline = InSeconds(10);  // the caller comes before it, also on a busy machine
  options.log = Logger(LogLevel::kError, "");
  Caller caller(shared, GuestOf("second"));
  EXPECT_THAT(std::string(Bootstrap::Join(std::move(options)).status().message()),
              AllOf(HasSubstr("another job"), HasSubstr("RAILHEAD_JOB match")));
  EXPECT_EQ(caller.Result().status.code(), absl::StatusCode::kFailedPrecondition);
}

TEST(SharedListenerTest, TheNumberOfConnectionsThatWaitIsLimited) {
  const Shared shared;
  Server first(shared, "first");
  SharedListener::Rendezvous second(shared.socket, "second", 2);
  const std::string hello = EncodeFrame(FrameKind::kHello, EncodeHello(GuestOf("second")));
  std::vector<net::Fd> callers;
  for (int i = 0; i < 3; ++i) {
    callers.push_back(DialStranger(shared.port));
    ASSERT_TRUE(net::SendAll(callers.back().get(), hello, InSeconds(20)).ok());
  }
  // One of them is turned away.
  std::vector<pollfd> entries;
  entries.reserve(callers.size());
  for (const net::Fd& caller : callers) entries.push_back({caller.get(), POLLIN, 0});
  ASSERT_TRUE(first.ServeUntil([&] { return ::poll(entries.data(), entries.size(), 0) == 1; }));
  EXPECT_EQ(second.Take().size(), 2U);
}

TEST(SharedListenerTest, ARendezvousThatEndsClosesWhatWaitsForIt) {
  const Shared shared;
  Server first(shared, "first");
  auto second = std::make_unique<Server>(shared, "second");
  Caller early(shared, GuestOf("second"));
  ASSERT_TRUE(first.ServeUntil([&] { return second->IsWoken(); }));
  second.reset();
  EXPECT_FALSE(early.Result().status.ok());
  Caller late(shared, GuestOf("second"));
  ASSERT_TRUE(first.ServeUntil([&] { return late.done(); }));
  EXPECT_TRUE(late.Result().not_open);
}

TEST(SharedListenerTest, WithoutADescriptorToWakeItARendezvousLooks) {
  const Shared shared;
  Server first(shared, "first");
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  Server second(shared, "second");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);

  std::vector<pollfd> entries;
  const absl::Time late = InSeconds(60);
  absl::Time deadline = late;
  second.server().Prepare(entries, deadline);
  EXPECT_EQ(entries[1].fd, -1);
  EXPECT_LT(deadline, InSeconds(1));

  Caller caller(shared, GuestOf("second"));
  // It has no event that tells when the connection is handed over.
  ASSERT_TRUE(first.ServeUntil([&, end = InSeconds(0.2)] { return MonotonicNow() > end; }));
  ASSERT_TRUE(second.ServeUntilGuests(1));
  EXPECT_TRUE(caller.Result().status.ok());
}

JoinOptions Options(const Shared& shared, const std::string& job, int rank) {
  JoinOptions options;
  options.rank = rank;
  options.world_size = 3;
  options.host = "127.0.0.1";
  options.port = shared.port;
  if (rank == 0) options.shared_listener = shared.socket;
  options.job = job;
  options.deadline = InSeconds(20);
  options.log = Logger(LogLevel::kWarn, absl::StrCat("rank ", rank));
  return options;
}

// Rendezvous open and end while others hand connections over to them.
TEST(SharedListenerTest, ManyJobsMeetAtOneSocket) {
  constexpr int kJobs = 24;
  const Shared shared;
  ::testing::internal::CaptureStderr();
  const std::vector<absl::Status> statuses = RunRanks(3 * kJobs, [&](int number) {
    const int rank = number % 3;
    const int job = number / 3;
    // Some ranks 0 come first, and some last.
    if ((rank == 0) == (job % 2 == 0)) absl::SleepFor(absl::Milliseconds(50 + 5 * job));
    return Bootstrap::Join(Options(shared, absl::StrCat("job ", job), rank)).status();
  });
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("rejected")));
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
}

// A rank that cannot take part is heard by its own rank 0 only.
TEST(SharedListenerTest, TroubleWaitsForItsRendezvous) {
  const Shared shared;
  std::thread other([&] {
    JoinOptions options = Options(shared, "first", 0);
    options.deadline = InSeconds(1);
    const std::string text(Bootstrap::Join(std::move(options)).status().message());
    EXPECT_THAT(text, AllOf(HasSubstr("they make this communicator, too"),
                            Not(HasSubstr("RAILHEAD_JOB")), Not(HasSubstr("rejected"))));
  });
  std::thread troubled([&] {
    absl::SleepFor(absl::Milliseconds(100));
    JoinOptions options = Options(shared, "second", 1);
    options.log = Logger(LogLevel::kError, "rank 1");
    options.trouble = absl::NotFoundError("its secret is not there");
    Bootstrap::Join(std::move(options)).status().IgnoreError();
  });
  absl::SleepFor(absl::Milliseconds(400));
  JoinOptions options = Options(shared, "second", 0);
  options.deadline = InSeconds(1000);  // nobody waits for it
  EXPECT_THAT(std::string(Bootstrap::Join(std::move(options)).status().message()),
              HasSubstr("its secret is not there"));
  troubled.join();
  other.join();
}

}  // namespace
}  // namespace railhead::bootstrap
