// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace railhead::bootstrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Nonce(char fill) { return std::string(kNonceSize, fill); }

Hello FromRank3() {
  return {kProtocolVersion, 8, 3, 0, false, "job", "pod x", Nonce('g'), std::nullopt};
}

HostHandshake Host(const Secret& secret, char nonce = 'h') {
  return HostHandshake({0, "job", "pod y", "", "", "here|5:1|process 5 (bash)"}, secret,
                       Nonce(nonce));
}

Frame OnlyFrame(const std::string& bytes) {
  FrameReader reader(kHelloLimit);
  reader.buffer()->append(bytes);
  const absl::StatusOr<std::optional<Frame>> frame = reader.Next();
  EXPECT_TRUE(frame.ok() && frame->has_value() && reader.buffer()->empty());
  return frame.ok() && frame->has_value() ? **frame : Frame{};
}

struct Outcome {
  std::string host_refusal;
  GuestHandshake::Step guest;
  bool host_believes = false;
  bool guest_believes = false;
  std::vector<std::string> from_guest;  // what was recorded on the way
};

Outcome Meet(GuestHandshake guest, HostHandshake host) {
  Outcome outcome;
  std::string bytes = guest.Begin();
  while (!bytes.empty()) {
    outcome.from_guest.push_back(bytes);
    const HostHandshake::Step step = host.Receive(OnlyFrame(bytes));
    outcome.host_refusal = step.refusal;
    if (step.reply.empty()) break;
    outcome.guest = guest.Receive(OnlyFrame(step.reply));
    bytes = outcome.guest.reply;
  }
  outcome.host_believes = host.proven();
  outcome.guest_believes = guest.proven();
  return outcome;
}

TEST(HandshakeTest, WhoKnowsTheSameBelievesEachOther) {
  for (const Secret& secret : {Secret(), Secret("0123456789abcdef", ""), Secret("", "key"),
                               Secret("0123456789abcdef", "key")}) {
    const Outcome outcome = Meet(GuestHandshake(FromRank3(), secret), Host(secret));
    EXPECT_TRUE(outcome.host_believes);
    EXPECT_TRUE(outcome.guest_believes);
    EXPECT_EQ(outcome.host_refusal, "");
    EXPECT_TRUE(outcome.guest.error.ok());
  }
}

TEST(HandshakeTest, AnotherSecretIsSaidOnBothSides) {
  const std::vector<std::pair<Secret, Secret>> pairs = {
      {Secret("0123456789abcdef", ""), Secret("0123456789abcdeg", "")},
      {Secret("", "key"), Secret("", "kez")},
      {Secret("0123456789abcdef", "key"), Secret("0123456789abcdef", "kez")},
  };
  for (const auto& [one, other] : pairs) {
    const Outcome outcome = Meet(GuestHandshake(FromRank3(), one), Host(other));
    EXPECT_FALSE(outcome.host_believes);
    EXPECT_FALSE(outcome.guest_believes);
    EXPECT_FALSE(outcome.guest.final);  // it may be a stale address
    for (const std::string& text :
         {outcome.host_refusal, std::string(outcome.guest.error.message())}) {
      EXPECT_THAT(text,
                  AllOf(HasSubstr("rank 3 (pod x) has a different secret than rank 0 (pod y)"),
                        HasSubstr("RAILHEAD_SECRET_FILE")));
    }
  }
}

TEST(HandshakeTest, ASecretOnOneSideOnlyIsSaidOnBothSides) {
  const Secret secret("0123456789abcdef", "");
  Outcome outcome = Meet(GuestHandshake(FromRank3(), Secret()), Host(secret));
  EXPECT_THAT(outcome.host_refusal,
              HasSubstr("rank 3 (pod x) has no secret, rank 0 (pod y) has one"));
  EXPECT_THAT(std::string(outcome.guest.error.message()), HasSubstr("has no secret"));
  outcome = Meet(GuestHandshake(FromRank3(), secret), Host(Secret()));
  EXPECT_THAT(outcome.host_refusal,
              HasSubstr("rank 3 (pod x) has a secret, rank 0 (pod y) has none"));
  EXPECT_FALSE(outcome.guest_believes);
}

TEST(HandshakeTest, WhatWasRecordedOpensNoOtherHandshake) {
  const Secret secret("0123456789abcdef", "");
  const Outcome recorded = Meet(GuestHandshake(FromRank3(), secret), Host(secret, 'h'));
  ASSERT_TRUE(recorded.host_believes);
  ASSERT_EQ(recorded.from_guest.size(), 2U);
  HostHandshake other = Host(secret, 'i');
  EXPECT_EQ(other.Receive(OnlyFrame(recorded.from_guest[0])).refusal, "");
  EXPECT_THAT(other.Receive(OnlyFrame(recorded.from_guest[1])).refusal,
              HasSubstr("different secret"));
  EXPECT_FALSE(other.proven());
}

TEST(HandshakeTest, AProofIsBoundToEverythingThatWasSaid) {
  const Secret secret("0123456789abcdef", "");
  // Somebody on the way changes what rank 3 says of itself.
  const std::vector<std::function<void(Hello&)>> changes = {
      [](Hello& hello) { hello.rank = 4; },
      [](Hello& hello) { hello.world_size = 9; },
      [](Hello& hello) { hello.name = "pod z"; },
      [](Hello& hello) { hello.nonce = Nonce('n'); },
  };
  for (const auto& change : changes) {
    Hello changed = FromRank3();
    changed.has_secret = true;
    change(changed);
    GuestHandshake guest(FromRank3(), secret);
    HostHandshake host = Host(secret);
    const HostHandshake::Step challenge = host.Receive({FrameKind::kHello, EncodeHello(changed)});
    const GuestHandshake::Step proof = guest.Receive(OnlyFrame(challenge.reply));
    EXPECT_NE(host.Receive(OnlyFrame(proof.reply)).refusal, "");
    EXPECT_FALSE(host.proven());
  }
}

TEST(HandshakeTest, AHostCannotAnswerWithTheGuestsOwnProof) {
  const Secret secret("0123456789abcdef", "");
  GuestHandshake guest(FromRank3(), secret);
  const GuestHandshake::Step proof =
      guest.Receive({FrameKind::kChallenge, EncodeChallenge({"pod y", Nonce('h')})});
  const GuestHandshake::Step step =
      guest.Receive({FrameKind::kAccept, OnlyFrame(proof.reply).payload});
  EXPECT_FALSE(guest.proven());
  EXPECT_THAT(std::string(step.error.message()),
              HasSubstr("the process that responds as rank 0 (pod y)"));
}

TEST(HandshakeTest, WithASecretARefusalOfWhoProvedNothingIsNotTheLastWord) {
  const std::string refusal = EncodeRefusal({true, "go away"});
  GuestHandshake with(FromRank3(), Secret("0123456789abcdef", ""));
  EXPECT_FALSE(with.Receive({FrameKind::kRefuse, refusal}).final);
  GuestHandshake without(FromRank3(), Secret());
  EXPECT_TRUE(without.Receive({FrameKind::kRefuse, refusal}).final);
}

TEST(HandshakeTest, StrangersAreToldApart) {
  struct Case {
    std::function<void(Hello&)> change;
    const char* refusal;
  };
  const std::vector<Case> cases = {
      {[](Hello& hello) { hello.version = 99; }, "speaks version 99"},
      {[](Hello& hello) { hello.job = "other"; }, "another job"},
      {[](Hello& hello) { hello.launch = "srun (SLURM_JOB_ID=1)"; },
       "rank 3 (pod x) and rank 0 (pod y) are of different jobs, although both have this address: "
       "srun (SLURM_JOB_ID=1) has started one, no launcher the other; give each job its own "
       "MASTER_PORT"},
      {[](Hello& hello) { hello.starter = "here|3:1,2:1|process 2 (bash)"; },
       "rank 3 (pod x) and rank 0 (pod y) are not known to be of one job: process 2 (bash) has "
       "started one, process 5 (bash) the other, on one host; set the same RAILHEAD_JOB"},
      {[](Hello& hello) { hello.host_rank = 2; }, "looks for rank 2, but this is rank 0 (pod y)"},
  };
  for (const Case& c : cases) {
    Hello hello = FromRank3();
    c.change(hello);
    const Outcome outcome = Meet(GuestHandshake(hello, Secret()), Host(Secret()));
    EXPECT_THAT(outcome.host_refusal, HasSubstr(c.refusal));
    EXPECT_FALSE(outcome.guest_believes);
  }
}

// At a shared socket they may look for another rendezvous of the process. Of other versions, only
// the version is known.
TEST(HandshakeTest, GuestsOfOtherJobsAreMarked) {
  Hello hello = FromRank3();
  EXPECT_FALSE(Host(Secret()).Receive({FrameKind::kHello, EncodeHello(hello)}).other_job);
  hello.host_rank = 2;
  EXPECT_FALSE(Host(Secret()).Receive({FrameKind::kHello, EncodeHello(hello)}).other_job);
  hello.job = "other";
  EXPECT_TRUE(Host(Secret()).Receive({FrameKind::kHello, EncodeHello(hello)}).other_job);
  hello.version = 99;
  EXPECT_FALSE(Host(Secret()).Receive({FrameKind::kHello, EncodeHello(hello)}).other_job);
}

TEST(HandshakeTest, ARendezvousThatIsNotOpenYetIsNoRejection) {
  Refusal refusal{false, "not yet"};
  refusal.not_open = true;
  GuestHandshake guest(FromRank3(), Secret());
  const GuestHandshake::Step step = guest.Receive({FrameKind::kRefuse, EncodeRefusal(refusal)});
  EXPECT_EQ(step.error, absl::UnavailableError("rank 0: not yet"));
  EXPECT_TRUE(step.not_open);
  EXPECT_FALSE(step.final);
}

TEST(HandshakeTest, FramesOutOfTurnAreRefused) {
  const std::string hello = EncodeHello(FromRank3());
  for (const FrameKind kind : {FrameKind::kProof, FrameKind::kAccept, FrameKind::kBye}) {
    HostHandshake host = Host(Secret());
    EXPECT_NE(host.Receive({kind, hello}).refusal, "");
    EXPECT_NE(host.Receive({FrameKind::kHello, hello}).refusal, "");  // one chance only
    GuestHandshake guest(FromRank3(), Secret());
    EXPECT_FALSE(guest.Receive({kind, std::string(kMacSize, '\0')}).error.ok());
    EXPECT_FALSE(guest.proven());
  }
}

TEST(HelloTest, WhatIsSaidTravelsAndWhatIsBrokenIsRefused) {
  const std::string hello = EncodeHello(FromRank3());
  const absl::StatusOr<Hello> parsed = ParseHello(hello);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(EncodeHello(*parsed), hello);
  const std::string challenge = EncodeChallenge({"pod y", Nonce('h')});
  ASSERT_TRUE(ParseChallenge(challenge).ok());
  EXPECT_EQ(EncodeChallenge(*ParseChallenge(challenge)), challenge);
  const std::string refusal = EncodeRefusal({true, "because"});
  ASSERT_TRUE(ParseRefusal(refusal).ok());
  EXPECT_TRUE(ParseRefusal(refusal)->final);
  EXPECT_FALSE(ParseRefusal(refusal)->not_open);
  for (size_t size = 0; size < hello.size(); ++size) {
    EXPECT_FALSE(ParseHello(absl::string_view(hello).substr(0, size)).ok());
  }
  for (size_t size = 0; size < challenge.size(); ++size) {
    EXPECT_FALSE(ParseChallenge(absl::string_view(challenge).substr(0, size)).ok());
  }
  EXPECT_FALSE(ParseHello(hello + "x").ok());
  EXPECT_FALSE(ParseChallenge(challenge + "x").ok());
  EXPECT_FALSE(ParseRefusal(refusal + "x").ok());
}

TEST(HelloTest, AStrangersTextIsPrintable) {
  Hello hello = FromRank3();
  // A line end; C1's CSI, as UTF-8 and as the byte; a character that reorders the text.
  for (const auto& [text, shown] : {std::pair("pod\nrailhead: forged", "pod\\nrailhead: forged"),
                                    std::pair("a\x1b[2J", "a\\x1b[2J"),
                                    std::pair("a\xc2\x9b"
                                              "2J",
                                              "a\\x9b2J"),
                                    std::pair("a\x9b"
                                              "2J",
                                              "a\\x9b2J"),
                                    std::pair("a\xe2\x80\xae"
                                              "b",
                                              "a\\u202eb")}) {
    hello.name = text;
    hello.trouble = text;
    hello.launch = text;
    hello.starter = text;
    EXPECT_EQ(ParseHello(EncodeHello(hello))->name, shown);
    EXPECT_EQ(ParseHello(EncodeHello(hello))->trouble, shown);
    EXPECT_EQ(ParseHello(EncodeHello(hello))->launch, shown);
    EXPECT_EQ(ParseHello(EncodeHello(hello))->starter, shown);
    EXPECT_EQ(ParseChallenge(EncodeChallenge({text, std::string(kNonceSize, 'n')}))->name, shown);
    EXPECT_EQ(ParseRefusal(EncodeRefusal({false, text}))->text, shown);
  }
}

}  // namespace
}  // namespace railhead::bootstrap
