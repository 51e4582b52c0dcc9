// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/frame_seal.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"

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

std::vector<FrameProtection> Ciphers() {
  std::vector<FrameProtection> ciphers = {FrameProtection::kChaCha20Poly1305};
  if (HasAes256Gcm()) ciphers.push_back(FrameProtection::kAes256Gcm);
  return ciphers;
}

class CipherTest : public ::testing::TestWithParam<FrameProtection> {};
INSTANTIATE_TEST_SUITE_P(Ciphers, CipherTest, ::testing::ValuesIn(Ciphers()));

// The first frame of a connection may be empty. The undefined-behavior sanitizer sees a null.
TEST_P(CipherTest, AnEmptyPayloadNeedsNoMemory) {
  const LineKeys keys{std::string(32, 'a'), std::string(32, 'b')};
  const FrameSeals one(keys, GetParam());
  const FrameSeals other(LineKeys{keys.receive, keys.send}, GetParam());
  EXPECT_TRUE(other.received.Open({}, one.sent.Encrypt({}, nullptr)));
}

TEST_P(CipherTest, APayloadIsReadInItsPlaceAndByNoOtherKey) {
  const LineKeys keys{std::string(32, 'a'), std::string(32, 'b')};
  FrameSeals one(keys, GetParam());
  FrameSeals other(LineKeys{keys.receive, keys.send}, GetParam());
  const std::string text = "what is sent, of no size that a cipher likes";
  for (const size_t size : {size_t{0}, size_t{1}, size_t{16}, text.size()}) {
    const absl::string_view payload = absl::string_view(text).substr(0, size);
    std::string hidden(size, '\0');
    auto* const bytes = reinterpret_cast<std::byte*>(hidden.data());
    const Seal seal = one.sent.Encrypt(Bytes(payload), bytes);
    if (size > 1) {
      EXPECT_NE(hidden, payload);
    }
    const std::string recorded = hidden;
    const auto opens = [&seal](const FrameSealer& by, std::string frame) {
      return by.Open(absl::MakeSpan(reinterpret_cast<std::byte*>(frame.data()), frame.size()),
                     seal);
    };
    EXPECT_FALSE(opens(one.received, recorded));
    EXPECT_TRUE(other.received.Open(absl::MakeSpan(bytes, size), seal));
    EXPECT_EQ(hidden, payload);
    one.sent.Next();
    other.received.Next();
    EXPECT_NE(one.sent.Encrypt(Bytes(payload), bytes), seal);
    EXPECT_FALSE(opens(other.received, recorded)) << "at another place of the stream";
  }
}

// What Python's cryptography makes of frame 1, with the last block of the stream as key.
TEST_P(CipherTest, EncryptsAsOthersDo) {
  FrameSealer sealer(std::string(32, '\0'), GetParam());
  sealer.Next();
  std::string hidden(7, '\0');
  const Seal seal = sealer.Encrypt(Bytes("payload"), reinterpret_cast<std::byte*>(hidden.data()));
  hidden.append(reinterpret_cast<const char*>(seal.data()), seal.size());
  EXPECT_EQ(absl::BytesToHexString(hidden), GetParam() == FrameProtection::kAes256Gcm
                                                ? "3bbdb39768b3fcbb4b8e17e309b5ec6d9c83937ed40542"
                                                : "a18a6611249496340ea8b72482012690801e056a8d1ea7");
}

}  // namespace
}  // namespace railhead::transport
