// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/kubelet/registration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>

namespace railhead::device_plugin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SocketIdentity kKubelet{1, 10, 100};

// A Registration and the world it sees, moved by hand.
class RegistrationTest : public ::testing::Test {
 protected:
  RegistrationTest() {
    seen_.has_devices = true;
    seen_.kubelet = kKubelet;
    seen_.own_socket = true;
  }

  // Looks again at each wake_at until it says something else than kWait.
  Action Next(Duration within = seconds(60)) {
    const TimePoint end = now_ + within;
    while (now_ <= end) {
      const Decision decision = registration_.Decide(seen_, now_);
      if (decision.action != Action::kWait) return decision.action;
      EXPECT_LE(decision.wake_at, now_ + seconds(5)) << "it must look now and then";
      now_ = std::max(decision.wake_at, now_ + milliseconds(1));
    }
    return Action::kWait;
  }

  void OpenStream() {
    ++seen_.open_streams;
    ++seen_.streams_opened;
  }

  void BecomeServing() {
    ASSERT_EQ(Next(), Action::kRegister);
    registration_.RegisterFinished(true, now_);
    OpenStream();
    ASSERT_EQ(Next(seconds(1)), Action::kWait);
    ASSERT_TRUE(registration_.serving());
  }

  Registration registration_;
  Observation seen_;
  TimePoint now_ = TimePoint() + std::chrono::hours(1);
};

TEST_F(RegistrationTest, ServesFirstThenRegistersThenRests) {
  seen_.own_socket = false;
  EXPECT_EQ(Next(), Action::kServe);
  seen_.own_socket = true;
  BecomeServing();
  EXPECT_EQ(Next(std::chrono::hours(24)), Action::kWait);
}

TEST_F(RegistrationTest, WithoutDevicesNothingIsOffered) {
  seen_.has_devices = false;
  seen_.own_socket = false;
  EXPECT_EQ(Next(), Action::kWait);
  seen_.has_devices = true;
  EXPECT_EQ(Next(), Action::kServe);
}

TEST_F(RegistrationTest, WaitsForKubelet) {
  seen_.kubelet.reset();
  EXPECT_EQ(Next(), Action::kWait);
  seen_.kubelet = kKubelet;
  EXPECT_EQ(Next(milliseconds(500)), Action::kRegister);
}

TEST_F(RegistrationTest, ANewKubeletIsMetWithinASecond) {
  BecomeServing();
  seen_.open_streams = 0;
  seen_.kubelet.reset();
  seen_.own_socket = false;
  EXPECT_EQ(Next(), Action::kServe);
  seen_.own_socket = true;
  EXPECT_EQ(Next(), Action::kWait);
  seen_.kubelet = SocketIdentity{1, 10, 200};  // the same inode number again
  EXPECT_EQ(Next(seconds(1)), Action::kRegister);
}

TEST_F(RegistrationTest, ANewKubeletIsNotPunishedForTheOldOnesFailures) {
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(Next(), Action::kRegister);
    registration_.RegisterFinished(false, now_);
  }
  EXPECT_EQ(Next(seconds(5)), Action::kWait);  // backing off
  seen_.kubelet = SocketIdentity{1, 11, 200};
  EXPECT_EQ(Next(seconds(1)), Action::kRegister);
}

TEST_F(RegistrationTest, TheOldStreamEndsBeforeRegistering) {
  BecomeServing();
  seen_.kubelet = SocketIdentity{1, 11, 200};
  EXPECT_EQ(Next(), Action::kEndStreams);
  EXPECT_EQ(Next(seconds(1)), Action::kWait);
  seen_.open_streams = 0;
  const TimePoint ended = now_;
  EXPECT_EQ(Next(), Action::kRegister);
  EXPECT_GE(now_ - ended, milliseconds(250)) << "kubelet needs a moment to note the end";
}

TEST_F(RegistrationTest, AStreamThatDoesNotEndFallsWithItsServer) {
  BecomeServing();
  seen_.kubelet = SocketIdentity{1, 11, 200};
  EXPECT_EQ(Next(), Action::kEndStreams);
  EXPECT_EQ(Next(), Action::kServe);
}

TEST_F(RegistrationTest, AStreamThatOpensWhileSettlingIsEndedToo) {
  ASSERT_EQ(registration_.Decide(seen_, now_).action, Action::kWait);  // settling
  OpenStream();
  EXPECT_EQ(Next(), Action::kEndStreams);
}

TEST_F(RegistrationTest, ACutStreamIsRegisteredAgain) {
  BecomeServing();
  seen_.open_streams = 0;
  EXPECT_EQ(Next(seconds(1)), Action::kRegister);
  EXPECT_FALSE(registration_.serving());
}

TEST_F(RegistrationTest, AStreamThatNeverComes) {
  ASSERT_EQ(Next(), Action::kRegister);
  registration_.RegisterFinished(true, now_);
  const TimePoint registered = now_;
  EXPECT_EQ(Next(), Action::kRegister);
  EXPECT_GE(now_ - registered, seconds(10));
}

TEST_F(RegistrationTest, AStreamThatCameAndWentUnseenIsNotWaitedFor) {
  ASSERT_EQ(Next(), Action::kRegister);
  ++seen_.streams_opened;
  registration_.RegisterFinished(true, now_);
  EXPECT_EQ(Next(seconds(1)), Action::kRegister);
}

TEST_F(RegistrationTest, AStreamMayOpenBeforeRegisterReturns) {
  ASSERT_EQ(Next(), Action::kRegister);
  OpenStream();
  EXPECT_EQ(Next(seconds(1)), Action::kWait);
  registration_.RegisterFinished(true, now_);
  EXPECT_EQ(Next(), Action::kWait);
  EXPECT_TRUE(registration_.serving());
}

TEST_F(RegistrationTest, ARegisterCallWithoutAnyResultIsGivenUp) {
  ASSERT_EQ(Next(), Action::kRegister);
  EXPECT_EQ(Next(seconds(60)), Action::kRegister);
}

TEST_F(RegistrationTest, TheResultOfAnAttemptThatWasGivenUpDoesNotCount) {
  ASSERT_EQ(Next(), Action::kRegister);
  seen_.kubelet.reset();
  registration_.Decide(seen_, now_);
  registration_.RegisterFinished(true, now_);
  OpenStream();
  EXPECT_EQ(Next(), Action::kWait);
  EXPECT_FALSE(registration_.serving());
}

TEST_F(RegistrationTest, RepeatedFailuresBackOffUpToALimit) {
  Duration last = Duration::zero();
  for (int i = 0; i < 20; ++i) {
    const TimePoint before = now_;
    ASSERT_EQ(Next(), Action::kRegister);
    registration_.RegisterFinished(false, now_);
    if (i > 1) {
      EXPECT_GE(now_ - before, last);
    }
    last = now_ - before;
    EXPECT_LE(last, seconds(11));
  }
  EXPECT_GE(last, seconds(10));
}

TEST_F(RegistrationTest, AStableStreamForgivesEarlierFailures) {
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(Next(), Action::kRegister);
    registration_.RegisterFinished(false, now_);
  }
  BecomeServing();
  EXPECT_EQ(Next(seconds(40)), Action::kWait);
  seen_.open_streams = 0;
  EXPECT_EQ(Next(seconds(1)), Action::kRegister);
}

TEST_F(RegistrationTest, FlappingStreamsAreNotRegisteredInAFrenzy) {
  int registrations = 0;
  const TimePoint start = now_;
  while (now_ - start < seconds(60)) {
    if (Next(seconds(60) - (now_ - start)) != Action::kRegister) break;
    ++registrations;
    registration_.RegisterFinished(true, now_);
    OpenStream();
    Next(milliseconds(1));
    seen_.open_streams = 0;
  }
  EXPECT_LE(registrations, 15);
}

TEST_F(RegistrationTest, ASocketThatIsDeletedAgainAndAgainDoesNotSpin) {
  seen_.own_socket = false;
  int served = 0;
  const TimePoint start = now_;
  while (now_ - start < seconds(10)) {
    if (Next(seconds(1)) == Action::kServe) ++served;
  }
  EXPECT_GE(served, 10);
  EXPECT_LE(served, 60);
}

TEST_F(RegistrationTest, ServingThatFailsIsTriedLessAndLess) {
  seen_.own_socket = false;
  int served = 0;
  const TimePoint start = now_;
  while (now_ - start < seconds(60)) {
    if (Next(seconds(1)) != Action::kServe) continue;
    ++served;
    registration_.ServeFailed(now_);
  }
  EXPECT_GE(served, 5);
  EXPECT_LE(served, 15);
}

// A kubelet with the habits of 1.36.3, and everything that may go wrong around it, at random times.
class World {
 public:
  explicit World(unsigned seed) : random_(seed) {}

  // Lives through `trouble` of random events, then starts kubelet and lives through `peace` without
  // any; by the end, kubelet must hold our stream.
  void Run(Duration trouble, Duration peace) {
    const TimePoint quiet = now_ + trouble;
    const TimePoint end = quiet + peace;
    TimePoint next_event = now_;
    TimePoint wake_at = now_;
    while (now_ < end) {
      if (now_ < quiet && now_ >= next_event) {
        Disturb();
        next_event = now_ + Random(0, 3000);
        if (random_() % 4 != 0) wake_at = now_;  // one event in four wakes nobody
      }
      if (now_ == quiet) StartKubelet();
      if (Live()) wake_at = now_;
      if (now_ >= wake_at) {
        const Decision decision = registration_.Decide(See(), now_);
        Do(decision.action);
        wake_at = decision.action == Action::kWait ? decision.wake_at : now_ + milliseconds(1);
        ASSERT_LE(wake_at, now_ + seconds(5));
        if (::testing::Test::HasFatalFailure()) return;
      }
      now_ += milliseconds(1);
    }
    EXPECT_TRUE(registration_.serving());
    EXPECT_TRUE(stream_);
    EXPECT_EQ(actions_in_peace_, 0) << "nothing must disturb a stream that is well";
  }

 private:
  milliseconds Random(int low, int high) {
    return milliseconds(std::uniform_int_distribution<int>(low, high)(random_));
  }

  Observation See() const {
    Observation seen;
    seen.has_devices = true;
    if (kubelet_up_) seen.kubelet = kubelet_;
    seen.own_socket = own_socket_;
    seen.open_streams = stream_ ? 1 : 0;
    seen.streams_opened = opened_;
    return seen;
  }

  void Disturb() {
    switch (random_() % 6) {
      case 0:  // kubelet stops; its socket file may stay
        kubelet_dead_ = true;
        kubelet_up_ = random_() % 2 == 0;
        EndStream(false);
        opens_at_.reset();
        answers_at_ = answers_at_.has_value() ? std::optional(now_) : std::nullopt;
        break;
      case 1:  // kubelet starts, and deletes every socket
        StartKubelet();
        break;
      case 2:
        EndStream(true);
        break;
      case 3:
        own_socket_ = false;
        break;
      case 4:
        refuse_ = static_cast<int>(random_() % 3);
        break;
      default:
        lose_streams_ = static_cast<int>(random_() % 3);
    }
  }

  void StartKubelet() {
    EndStream(false);
    opens_at_.reset();
    disconnects_at_.reset();
    own_socket_ = false;
    kubelet_up_ = true;
    kubelet_dead_ = false;
    ++kubelet_.changed_ns;
  }

  void EndStream(bool kubelet_lives) {
    if (!stream_) return;
    stream_ = false;
    // Kubelet notes the end a little later, and then disconnects whoever is registered.
    if (kubelet_lives) disconnects_at_ = now_ + Random(0, 200);
  }

  // What happens by itself. Returns true when the agent would be woken.
  bool Live() {
    bool woken = false;
    if (disconnects_at_.has_value() && now_ >= *disconnects_at_) {
      disconnects_at_.reset();
      opens_at_.reset();
      woken = stream_;
      stream_ = false;
    }
    if (answers_at_.has_value() && now_ >= *answers_at_) {
      answers_at_.reset();
      const bool ok = !kubelet_dead_ && own_socket_ && refuse_ == 0;
      if (refuse_ > 0) --refuse_;
      if (ok && lose_streams_ == 0) opens_at_ = now_ + Random(0, 300);
      if (lose_streams_ > 0) --lose_streams_;
      registration_.RegisterFinished(ok, now_);
      woken = true;
    }
    if (opens_at_.has_value() && now_ >= *opens_at_) {
      opens_at_.reset();
      stream_ = true;
      ++opened_;
      woken = true;
    }
    return woken;
  }

  void Do(Action action) {
    if (action == Action::kWait) {
      settled_ = registration_.serving();
      if (!settled_) actions_in_peace_ = 0;
      return;
    }
    if (settled_ && stream_ && own_socket_ && !kubelet_dead_) ++actions_in_peace_;
    switch (action) {
      case Action::kServe:
        ASSERT_FALSE(own_socket_ && !stream_) << "a good socket was thrown away";
        own_socket_ = true;
        answers_at_.reset();
        EndStream(!kubelet_dead_);
        break;
      case Action::kEndStreams:
        ASSERT_TRUE(stream_);
        EndStream(!kubelet_dead_);
        break;
      default:
        ASSERT_FALSE(stream_) << "registered while an old stream was open";
        ASSERT_TRUE(own_socket_) << "registered before serving";
        ASSERT_TRUE(kubelet_up_) << "registered with nobody";
        ASSERT_FALSE(disconnects_at_.has_value()) << "kubelet would tear this registration down";
        opens_at_.reset();
        answers_at_ = now_ + Random(0, 500);
    }
  }

  std::mt19937 random_;
  Registration registration_;
  TimePoint now_ = TimePoint() + std::chrono::hours(1);
  SocketIdentity kubelet_ = kKubelet;
  bool kubelet_up_ = true;  // its socket file is there
  bool kubelet_dead_ = false;
  bool own_socket_ = false;
  bool stream_ = false;
  uint64_t opened_ = 0;
  int refuse_ = 0;        // Register calls that fail
  int lose_streams_ = 0;  // registrations after which no stream comes
  std::optional<TimePoint> answers_at_;
  std::optional<TimePoint> opens_at_;
  std::optional<TimePoint> disconnects_at_;
  bool settled_ = false;
  int actions_in_peace_ = 0;
};

TEST(RegistrationProperty, EverySuccessionOfTroublesEndsWithTheStreamBack) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed);
    world.Run(seconds(60), seconds(90));
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace railhead::device_plugin
