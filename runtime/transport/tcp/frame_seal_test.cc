// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/frame_seal.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace railhead::transport {
namespace {

absl::Span<const std::byte> Bytes(absl::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// RFC 8439 has the stream and the authenticator; this is how they are put together: keys of frame n
// are block n of the stream. (The first 32 bytes of block 0 under a key of zeros are known.)
TEST(FrameSealTest, KeysAreBlocksOfTheStream) {
  const FrameSealer sealer(std::string(32, '\0'));
  // Poly1305 of nothing is the second half of its key.
  const Seal seal = sealer.OfHead({});
  const unsigned char expected[kSealSize] = {0xbd, 0xd2, 0x19, 0xb8, 0xa0, 0x8d, 0xed, 0x1a,
                                             0xa8, 0x36, 0xef, 0xcc, 0x8b, 0x77, 0x0d, 0xc7};
  EXPECT_TRUE(SameSeal(seal, reinterpret_cast<const std::byte*>(expected)));
}

TEST(FrameSealTest, EachSealIsOfOneFrameOneDirectionAndOnePart) {
  const LineKeys keys{std::string(32, 'a'), std::string(32, 'b')};
  FrameSeals one(keys);
  FrameSeals other(LineKeys{keys.receive, keys.send});
  EXPECT_EQ(one.sent.OfHead(Bytes("x")), other.received.OfHead(Bytes("x")));
  EXPECT_EQ(one.sent.OfPayload(Bytes("x")), other.received.OfPayload(Bytes("x")));
  EXPECT_NE(one.sent.OfHead(Bytes("x")), one.sent.OfPayload(Bytes("x")));
  EXPECT_NE(one.sent.OfHead(Bytes("x")), one.received.OfHead(Bytes("x")));
  EXPECT_NE(one.sent.OfHead(Bytes("x")), one.sent.OfHead(Bytes("y")));
  const Seal before = one.sent.OfHead(Bytes("x"));
  one.sent.Next();
  EXPECT_NE(one.sent.OfHead(Bytes("x")), before);
  other.received.Next();
  EXPECT_EQ(one.sent.OfHead(Bytes("x")), other.received.OfHead(Bytes("x")));
}

}  // namespace
}  // namespace railhead::transport
