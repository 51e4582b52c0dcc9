// SPDX-License-Identifier: Apache-2.0
#include "kube/http/http_fairness.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace railhead::kube {
namespace {

using State = HttpStanding::State;

const absl::Time kThen = absl::UnixEpoch() + absl::Hours(1);

HttpStanding Standing(const HttpSource& source, State state, absl::Duration age,
                      bool answered = false, size_t bytes = 0) {
  return {.state = state,
          .since = kThen - age,
          .answered = answered,
          .bytes = bytes,
          .source = &source};
}

std::vector<const HttpStanding*> Pointers(const std::vector<HttpStanding>& all) {
  std::vector<const HttpStanding*> pointers;
  for (const HttpStanding& one : all) pointers.push_back(&one);
  return pointers;
}

std::string SourceOfText(const char* text) {
  sockaddr_storage storage{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
  if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
  } else {
    v6.sin6_family = AF_INET6;
    EXPECT_EQ(inet_pton(AF_INET6, text, &v6.sin6_addr), 1) << text;
  }
  return SourceOf(reinterpret_cast<const sockaddr&>(storage));
}

TEST(HttpFairnessTest, ASourceIsAnAddressOrANetworkOfIpv6) {
  EXPECT_EQ(SourceOfText("10.0.0.1"), SourceOfText("::ffff:10.0.0.1"));
  EXPECT_NE(SourceOfText("10.0.0.1"), SourceOfText("10.0.0.2"));
  EXPECT_EQ(SourceOfText("fd00:1:2:3::1"), SourceOfText("fd00:1:2:3:ffff::2"));
  EXPECT_NE(SourceOfText("fd00:1:2:3::1"), SourceOfText("fd00:1:2:4::1"));
}

TEST(HttpFairnessTest, TheOldestThatHasSaidNothingMakesRoom) {
  const HttpSource many{.name = "many", .connections = 10};
  const HttpSource few{.name = "few", .connections = 2};
  const HttpSource newcomer;
  const std::vector<HttpStanding> all = {
      Standing(many, State::kIdle, absl::Minutes(1), true),
      Standing(many, State::kSilent, absl::Seconds(3)),
      Standing(few, State::kSilent, absl::Seconds(9)),
      Standing(many, State::kSending, absl::Seconds(5)),
      Standing(many, State::kInHand, absl::Minutes(9), true),
  };
  EXPECT_EQ(WhoMakesRoom(Pointers(all), newcomer, false, kThen), 1U) << "of the largest, a silent";
  const std::vector<HttpStanding> other = {all[0], all[2], all[3], all[4]};
  EXPECT_EQ(WhoMakesRoom(Pointers(other), newcomer, false, kThen), 2U) << "one that drips";
}

// An API server's new connection needs some milliseconds before it says something.
TEST(HttpFairnessTest, AYoungConnectionStaysBeforeAnIdleOneOfALargerSource) {
  const HttpSource hostile{.name = "hostile", .connections = 100};
  const HttpSource api_server{.name = "api_server", .connections = 3};
  const HttpSource newcomer;
  const std::vector<HttpStanding> all = {
      Standing(api_server, State::kSilent, absl::Milliseconds(30)),
      Standing(hostile, State::kIdle, absl::Seconds(1), true),
  };
  EXPECT_EQ(WhoMakesRoom(Pointers(all), newcomer, false, kThen), 1U);
}

TEST(HttpFairnessTest, ASourceDoesNotGrowAtTheExpenseOfSmallerOnes) {
  const HttpSource small{.name = "small", .connections = 2};
  const HttpSource large{.name = "large", .connections = 5};
  const std::vector<HttpStanding> all = {
      Standing(small, State::kSilent, absl::Seconds(5)),
      Standing(small, State::kIdle, absl::Minutes(1), true),
      Standing(large, State::kInHand, absl::Seconds(1)),
  };
  EXPECT_EQ(WhoMakesRoom(Pointers(all), large, false, kThen), std::nullopt);
  EXPECT_EQ(WhoMakesRoom(Pointers(all), large, true, kThen), std::nullopt);
  EXPECT_EQ(WhoMakesRoom(Pointers(all), small, true, kThen), 0U);
}

TEST(HttpFairnessTest, WhatIsCompleteIsNeverGivenUpForAConnection) {
  const HttpSource source{.name = "source", .connections = 5};
  const HttpSource newcomer;
  const std::vector<HttpStanding> all = {Standing(source, State::kQueued, absl::Hours(1)),
                                         Standing(source, State::kInHand, absl::Hours(1))};
  EXPECT_EQ(WhoMakesRoom(Pointers(all), newcomer, false, kThen), std::nullopt);
}

TEST(HttpFairnessTest, TheSlowestOfTheLargestSourceFreesMemory) {
  const HttpSource large{.name = "large", .bytes = 1000};
  const HttpSource small{.name = "small", .bytes = 10};
  const std::vector<HttpStanding> all = {
      Standing(small, State::kSending, absl::Seconds(9), false, 10),
      Standing(large, State::kSending, absl::Seconds(1), false, 300),
      Standing(large, State::kSending, absl::Seconds(8), false, 300),
      Standing(large, State::kQueued, absl::Seconds(9), false, 300),
      Standing(large, State::kInHand, absl::Seconds(9), false, 100),
  };
  EXPECT_EQ(WhoFreesMemory(Pointers(all), 0, kThen), 2U);
  EXPECT_EQ(WhoFreesMemory(Pointers({all[0], all[3], all[4]}), 0, kThen), 1U) << "then what waits";
  EXPECT_EQ(WhoFreesMemory(Pointers({all[4]}), 0, kThen), std::nullopt);
}

TEST(HttpFairnessTest, ASmallRequestIsNotGivenUpForLargeOnesOfItsSource) {
  const HttpSource source{.name = "source", .bytes = 1000};
  const std::vector<HttpStanding> all = {
      Standing(source, State::kSending, absl::Seconds(9), false, 20),
      Standing(source, State::kQueued, absl::Seconds(9), false, 20),
      Standing(source, State::kSending, absl::Seconds(1), false, 960),
  };
  EXPECT_EQ(WhoFreesMemory(Pointers(all), 20, kThen), 2U);
  EXPECT_EQ(WhoFreesMemory(Pointers({all[0], all[1]}), 20, kThen), std::nullopt);
}

TEST(HttpFairnessTest, SourcesTakeTurns) {
  const HttpSource busy{.name = "busy", .in_hand = 3};
  const HttpSource quiet;
  const std::vector<HttpStanding> all = {
      Standing(busy, State::kQueued, absl::Seconds(9)),
      Standing(quiet, State::kQueued, absl::Seconds(1)),
      Standing(quiet, State::kQueued, absl::Seconds(2)),
  };
  EXPECT_EQ(WhoIsNext(Pointers(all)), 2U);
}

}  // namespace
}  // namespace railhead::kube
