// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/handle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/transport/connect/rail_handshake.h"

namespace railhead::nccl {
namespace {

using ::testing::HasSubstr;

net::IpAddress Ip(const std::string& text) { return *net::IpAddress::Parse(text); }

Handle HandleWith(std::vector<HandleRail> rails) {
  return {"eleven byte", config::FrameWish::kSigned, std::move(rails)};
}

TEST(HandleTest, SaysWhatWasWritten) {
  const Handle handle = HandleWith({{RailKind::kVerbs, 0, Ip("10.0.0.1"), 4000},
                                    {RailKind::kVerbs, 127, Ip("10.0.0.1"), 4000},
                                    {RailKind::kTcp, 0, Ip("fd00::7"), 65535}});
  const EncodedHandle encoded = Encode(handle);
  EXPECT_EQ(encoded.left_out, 0U);
  const absl::StatusOr<Handle> parsed = ParseHandle(encoded.bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, handle);
}

// RDMA rails have one listener, TCP rails each their own.
TEST(HandleTest, HasRoomForTheRailsOfALargeNode) {
  std::vector<HandleRail> rails;
  for (int i = 0; i < 8; ++i) rails.push_back({RailKind::kVerbs, i, Ip("fd00::1"), 4000});
  for (int i = 0; i < 8; ++i) {
    rails.push_back({RailKind::kTcp, i, Ip(absl::StrCat("10.0.", i, ".1")), 4000});
  }
  EXPECT_EQ(Encode(HandleWith(rails)).left_out, 0U);
}

TEST(HandleTest, RailsWithoutRoomAreLeftOut) {
  std::vector<HandleRail> rails;
  for (int i = 0; i < 16; ++i) {
    rails.push_back({RailKind::kTcp, i, Ip(absl::StrCat("fd00::", i + 1)), 4000});
  }
  const Handle handle = HandleWith(rails);
  const EncodedHandle encoded = Encode(handle);
  const absl::StatusOr<Handle> parsed = ParseHandle(encoded.bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->rails.size() + encoded.left_out, rails.size());
  EXPECT_GE(parsed->rails.size(), 4U);
  rails.resize(parsed->rails.size());
  EXPECT_EQ(parsed->rails, rails);
}

TEST(HandleTest, OtherPluginsAndVersionsAreNamed) {
  HandleBytes bytes{};
  EXPECT_THAT(std::string(ParseHandle(bytes).status().message()), HasSubstr("NCCL_NET_PLUGIN"));
  bytes = Encode(HandleWith({})).bytes;
  bytes[4] = 9;
  EXPECT_THAT(std::string(ParseHandle(bytes).status().message()),
              HasSubstr("the receiver's plugin speaks version 9, and this one version 2"));
}

TEST(HandleTest, AnyOtherBytesAreAHandleOrAnError) {
  std::mt19937 random(7);
  const HandleBytes good = Encode(HandleWith({{RailKind::kTcp, 3, Ip("10.0.0.1"), 4000},
                                              {RailKind::kTcp, 4, Ip("fd00::1"), 4000}}))
                               .bytes;
  for (int i = 0; i < 20000; ++i) {
    HandleBytes bytes = good;
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
      bytes[random() % 60] = static_cast<char>(random());
    }
    const absl::StatusOr<Handle> parsed = ParseHandle(bytes);
    if (!parsed.ok()) continue;
    for (const HandleRail& rail : parsed->rails) {
      EXPECT_LE(rail.rail, kMostRail);
      EXPECT_NE(rail.port, 0);
    }
  }
}

// The side with the smaller token dials.
TEST(HandleTest, TheSendersTokenIsTheSmallerOne) {
  std::mt19937 random(11);
  for (int i = 0; i < 1000; ++i) {
    std::string base(kTokenBaseBytes, '\0');
    for (char& byte : base) byte = static_cast<char>(random());
    const auto rail = static_cast<int>(random() % (kMostRail + 1));
    const std::string receiver = ReceiverToken(base, RailKind::kTcp, rail);
    const std::string sender = SenderToken(base, RailKind::kTcp, rail, random());
    EXPECT_LT(sender, receiver);
    EXPECT_EQ(sender.size(), transport::kTokenSize);
    EXPECT_EQ(receiver.size(), transport::kTokenSize);
    EXPECT_NE(receiver, ReceiverToken(base, RailKind::kVerbs, rail));
  }
}

}  // namespace
}  // namespace railhead::nccl
