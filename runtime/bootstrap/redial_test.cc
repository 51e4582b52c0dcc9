// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/redial.h"

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/net/address.h"
#include "runtime/net/socket.h"
#include "runtime/testing/ranks.h"

namespace railhead::bootstrap {
namespace {

// A process that listens, with connections by their names.
class Host {
 public:
  Host()
      : listener_(*net::Listen(*net::IpAddress::Parse("127.0.0.1"), 0)),
        place_(*net::LocalAddress(listener_.get())) {}

  const net::SocketAddress& place() const { return place_; }

  // Returns what has become of the last visitor, if that is known.
  std::optional<absl::StatusOr<ReturnVisitor::Claim>> Serve() {
    while (true) {
      net::Fd fd = *net::Accept(listener_.get());
      if (!fd.valid()) break;
      visitors_.emplace_back(std::move(fd), MonotonicNow() + absl::Seconds(20));
    }
    const auto secret_of = [this](absl::string_view name) -> std::optional<Secret> {
      const auto found = connections.find(std::string(name));
      return found == connections.end() ? std::nullopt : std::optional<Secret>(found->second);
    };
    std::optional<absl::StatusOr<ReturnVisitor::Claim>> result;
    for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
      auto claim = visitor->Advance(MonotonicNow(), secret_of);
      if (claim.ok() && !claim->has_value()) {
        ++visitor;
        continue;
      }
      if (claim.ok()) {
        result = **claim;
        admitted = std::move(*visitor);
      } else {
        result = claim.status();
      }
      visitor = visitors_.erase(visitor);
    }
    return result;
  }

  std::map<std::string, Secret> connections;
  std::optional<ReturnVisitor> admitted;

 private:
  net::Fd listener_;
  net::SocketAddress place_;
  std::list<ReturnVisitor> visitors_;
};

absl::Time In(double seconds) { return MonotonicNow() + absl::Seconds(seconds); }

// Both go on until each has a result; the host continues with every authentic guest.
struct Outcome {
  std::optional<absl::StatusOr<ReturnVisitor::Claim>> host;
  std::optional<absl::StatusOr<Resume>> guest;
};
Outcome Play(Host& host, absl::StatusOr<Redial> redial, const Resume& answer) {
  Outcome outcome;
  if (!redial.ok()) {
    outcome.guest = redial.status();
    return outcome;
  }
  const absl::Time end = In(20);
  while (MonotonicNow() < end && !outcome.guest.has_value()) {
    if (auto served = host.Serve(); served.has_value()) {
      outcome.host = *std::move(served);
      if (outcome.host->ok()) {
        const net::Fd fd = host.admitted->TakeFd();
        EXPECT_TRUE(
            net::SendAll(fd.get(), EncodeFrame(FrameKind::kResume, EncodeResume(answer)), In(20))
                .ok());
      }
    }
    const absl::StatusOr<std::optional<Resume>> theirs = redial->Advance(MonotonicNow());
    if (!theirs.ok()) outcome.guest = theirs.status();
    if (theirs.ok() && theirs->has_value()) outcome.guest = **theirs;
    absl::SleepFor(absl::Milliseconds(1));
  }
  // The host notices its guest's end.
  redial = absl::CancelledError("over");
  while (MonotonicNow() < end && !outcome.host.has_value()) outcome.host = host.Serve();
  return outcome;
}

const Secret kSecret("a secret", "");

TEST(RedialTest, BothLearnWhereTheOtherContinues) {
  Host host;
  host.connections["name"] = kSecret;
  const Outcome outcome =
      Play(host, Redial::Start(host.place(), {"name", kSecret}, {7, 1000}, In(20)), {7, 2000});
  ASSERT_TRUE(outcome.host.has_value() && outcome.host->ok());
  EXPECT_EQ((*outcome.host)->name, "name");
  EXPECT_EQ((*outcome.host)->theirs.attempt, 7u);
  EXPECT_EQ((*outcome.host)->theirs.received, 1000u);
  ASSERT_TRUE(outcome.guest.has_value() && outcome.guest->ok());
  EXPECT_EQ((*outcome.guest)->received, 2000u);
}

TEST(RedialTest, AnAnswerToAnotherAttemptIsNone) {
  Host host;
  host.connections["name"] = kSecret;
  const Outcome outcome =
      Play(host, Redial::Start(host.place(), {"name", kSecret}, {7, 1000}, In(20)), {6, 2000});
  ASSERT_TRUE(outcome.guest.has_value());
  EXPECT_FALSE(outcome.guest->ok());
  EXPECT_FALSE(absl::IsNotFound(outcome.guest->status()));
}

// Somebody who does not know the secret of the connection continues it on neither side, and says
// nothing of the peer.
TEST(RedialTest, WhoDoesNotKnowTheSecretIsRefused) {
  for (const Secret& other : {Secret("another secret", ""), Secret()}) {
    for (const bool host_knows : {true, false}) {
      Host host;
      host.connections["name"] = host_knows ? kSecret : other;
      const Outcome outcome = Play(
          host, Redial::Start(host.place(), {"name", host_knows ? other : kSecret}, {1, 0}, In(20)),
          {1, 0});
      ASSERT_TRUE(outcome.host.has_value() && outcome.guest.has_value());
      EXPECT_FALSE(outcome.host->ok());
      EXPECT_FALSE(outcome.guest->ok());
      EXPECT_FALSE(absl::IsNotFound(outcome.guest->status())) << outcome.guest->status();
    }
  }
}

TEST(RedialTest, AProcessWithoutTheConnectionSaysSo) {
  Host host;
  const Outcome outcome =
      Play(host, Redial::Start(host.place(), {"name", kSecret}, {1, 0}, In(20)), {1, 0});
  ASSERT_TRUE(outcome.guest.has_value());
  EXPECT_TRUE(absl::IsNotFound(outcome.guest->status())) << outcome.guest->status();
}

TEST(RedialTest, AnAddressWithoutAProcessRefuses) {
  Host host;
  const net::SocketAddress nobody = {*net::IpAddress::Parse("127.0.0.1"),
                                     static_cast<uint16_t>(railhead::testing::FreePort())};
  const Outcome outcome =
      Play(host, Redial::Start(nobody, {"name", kSecret}, {1, 0}, In(20)), {1, 0});
  ASSERT_TRUE(outcome.guest.has_value());
  EXPECT_TRUE(absl::IsNotFound(outcome.guest->status())) << outcome.guest->status();
}

// A process that stands still, or a network that swallows everything.
TEST(RedialTest, WhoDoesNotAnswerIsUnknown) {
  const Host host;
  absl::StatusOr<Redial> redial =
      Redial::Start(host.place(), {"name", kSecret}, {1, 0}, absl::InfinitePast());
  ASSERT_TRUE(redial.ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(redial->Advance(MonotonicNow()).status()));
}

TEST(RedialTest, NonsenseIsNoVisitor) {
  const std::string nonsense[] = {"GET / HTTP/1.1\r\n\r\n",
                                  EncodeFrame(FrameKind::kResume, EncodeResume({1, 0})),
                                  EncodeFrame(FrameKind::kHello, "short"),
                                  EncodeFrame(FrameKind::kProof, std::string(32, '\0'))};
  for (const std::string& bytes : nonsense) {
    Host host;
    host.connections["name"] = kSecret;
    const net::Fd stranger =
        *net::Dial(host.place().address, host.place().port, std::nullopt, In(20));
    ASSERT_TRUE(net::SendAll(stranger.get(), bytes, In(20)).ok());
    std::optional<absl::StatusOr<ReturnVisitor::Claim>> served;
    for (const absl::Time end = In(20); !served.has_value() && MonotonicNow() < end;) {
      served = host.Serve();
    }
    ASSERT_TRUE(served.has_value());
    EXPECT_FALSE(served->ok());
  }
}

TEST(RedialTest, AttemptsHaveOneOrderForBothSides) {
  EXPECT_LT((Attempt{1, "b"}), (Attempt{2, "a"}));
  EXPECT_LT((Attempt{2, "a"}), (Attempt{2, "b"}));
}

TEST(RedialTest, ResumeIsReadAsWritten) {
  const absl::StatusOr<Resume> resume = ParseResume(EncodeResume({3, uint64_t{1} << 40}));
  ASSERT_TRUE(resume.ok());
  EXPECT_EQ(resume->attempt, 3u);
  EXPECT_EQ(resume->received, uint64_t{1} << 40);
  EXPECT_FALSE(ParseResume("short").ok());
  EXPECT_FALSE(ParseResume(EncodeResume({3, 4}) + "x").ok());
}

}  // namespace
}  // namespace railhead::bootstrap
