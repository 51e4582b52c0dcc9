// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/connect/rail_handshake.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/mac.h"

namespace railhead::transport {
namespace {

const RailKey kKey{"the key of this job's ranks", 2};

RailHello AHello() {
  return {std::string(kTokenSize, 'a'), std::string(kTokenSize, 'b'), 5,
          std::string(kRailNonceSize, 'n')};
}
std::string Nonce(char c) { return std::string(kRailNonceSize, c); }

TEST(RailHandshakeTest, BothSidesProveThemselvesAndHaveTheSameKeys) {
  const std::string hello = EncodeRailHello(kKey, AHello());
  EXPECT_EQ(hello.size(), RailHelloSize());
  const std::optional<RailHello> parsed = ParseRailHello(kKey, hello);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->from, AHello().from);
  EXPECT_EQ(parsed->to, AHello().to);
  EXPECT_EQ(parsed->number, 5U);
  RailHandshake dialer = RailHandshake::OfDialer(kKey, hello);
  RailHandshake listener = RailHandshake::OfListener(kKey, hello, Nonce('l'));
  EXPECT_EQ(dialer.Begin(), hello);
  EXPECT_EQ(dialer.expected(), listener.Begin().size());
  const std::optional<std::string> confirmation = dialer.Receive(listener.Begin());
  ASSERT_TRUE(confirmation.has_value());
  EXPECT_TRUE(dialer.proven());
  EXPECT_FALSE(listener.proven());
  EXPECT_EQ(listener.expected(), confirmation->size());
  EXPECT_EQ(listener.Receive(*confirmation), "");
  EXPECT_TRUE(listener.proven());
  EXPECT_EQ(dialer.keys().send, listener.keys().receive);
  EXPECT_EQ(dialer.keys().receive, listener.keys().send);
  EXPECT_NE(dialer.keys().send, dialer.keys().receive);
}

TEST(RailHandshakeTest, NoByteOfItMayChange) {
  const std::string hello = EncodeRailHello(kKey, AHello());
  for (size_t i = 0; i < hello.size(); ++i) {
    std::string changed = hello;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_FALSE(ParseRailHello(kKey, changed).has_value()) << i;
    EXPECT_FALSE(ParseRailHello(kKey, hello.substr(0, i)).has_value()) << i;
  }
  RailHandshake dialer = RailHandshake::OfDialer(kKey, hello);
  RailHandshake listener = RailHandshake::OfListener(kKey, hello, Nonce('l'));
  const std::string answer = listener.Begin();
  for (size_t i = 0; i < answer.size(); ++i) {
    std::string changed = answer;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(dialer.Receive(changed).has_value()) << i;
    EXPECT_FALSE(dialer.Receive(answer.substr(0, i)).has_value()) << i;
  }
  const std::string confirmation = *dialer.Receive(answer);
  for (size_t i = 0; i < confirmation.size(); ++i) {
    std::string changed = confirmation;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(listener.Receive(changed).has_value()) << i;
    EXPECT_FALSE(listener.proven());
  }
}

// What is right elsewhere is wrong here.
TEST(RailHandshakeTest, NothingServesInAnotherPlace) {
  const std::string hello = EncodeRailHello(kKey, AHello());
  EXPECT_FALSE(ParseRailHello({kKey.key, 3}, hello).has_value());
  EXPECT_FALSE(ParseRailHello({"another session's", kKey.rail}, hello).has_value());

  std::vector<std::string> answers;
  // Recorded, to an earlier Hello of the same two.
  RailHello earlier = AHello();
  earlier.number = 4;
  earlier.nonce = Nonce('e');
  answers.push_back(
      RailHandshake::OfListener(kKey, EncodeRailHello(kKey, earlier), Nonce('l')).Begin());
  // Another rail, another session, another rank in its place.
  answers.push_back(RailHandshake::OfListener({kKey.key, 3}, hello, Nonce('l')).Begin());
  answers.push_back(RailHandshake::OfListener({"another", kKey.rail}, hello, Nonce('l')).Begin());
  RailHello to_another = AHello();
  to_another.to = std::string(kTokenSize, 'c');
  answers.push_back(
      RailHandshake::OfListener(kKey, EncodeRailHello(kKey, to_another), Nonce('l')).Begin());
  // Its own words, and the tokens swapped.
  answers.push_back(hello.substr(hello.size() - answers.front().size()));
  RailHello swapped = AHello();
  std::swap(swapped.from, swapped.to);
  answers.push_back(
      RailHandshake::OfListener(kKey, EncodeRailHello(kKey, swapped), Nonce('l')).Begin());
  for (size_t i = 0; i < answers.size(); ++i) {
    RailHandshake dialer = RailHandshake::OfDialer(kKey, hello);
    EXPECT_FALSE(dialer.Receive(answers[i]).has_value()) << i;
    EXPECT_FALSE(dialer.proven());
  }

  // A confirmation of the same Hello to another nonce; the listener's own MAC.
  RailHandshake dialer = RailHandshake::OfDialer(kKey, hello);
  const std::string confirmation =
      *dialer.Receive(RailHandshake::OfListener(kKey, hello, Nonce('1')).Begin());
  RailHandshake listener = RailHandshake::OfListener(kKey, hello, Nonce('2'));
  EXPECT_FALSE(listener.Receive(confirmation).has_value());
  EXPECT_FALSE(listener.Receive(listener.Begin().substr(kRailNonceSize)).has_value());
  EXPECT_FALSE(listener.proven());
}

TEST(RailHandshakeTest, WhatCannotBecomeAHelloIsKnownEarly) {
  const std::string hello = EncodeRailHello(kKey, AHello());
  for (size_t i = 0; i <= hello.size(); ++i) {
    EXPECT_TRUE(MayBeRailHello(hello.substr(0, i))) << i;
  }
  EXPECT_FALSE(MayBeRailHello(hello + "!"));
  EXPECT_FALSE(MayBeRailHello("GET "));
}

TEST(RailHandshakeTest, TheBeginningOfAHelloNamesItsTarget) {
  const std::string hello = EncodeRailHello(kKey, AHello());
  bool known = false;
  for (size_t i = 0; i <= hello.size(); ++i) {
    const std::optional<absl::string_view> target =
        RailHelloTarget(absl::string_view(hello).substr(0, i));
    EXPECT_TRUE(target.has_value() || !known) << i;
    known = target.has_value();
    EXPECT_EQ(target.value_or(AHello().to), AHello().to) << i;
  }
  EXPECT_TRUE(known);
  EXPECT_FALSE(RailHelloTarget(hello + "!").has_value());
  EXPECT_FALSE(RailHelloTarget(std::string(hello.size(), 'x')).has_value());
}

}  // namespace
}  // namespace railhead::transport
