// SPDX-License-Identifier: Apache-2.0
//
// An attacker between two ranks changes, repeats or drops frames: without signatures the change
// arrives, with them the connection is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/now.h"
#include "runtime/testing/relay.h"
#include "runtime/transport/connect/acceptor.h"
#include "runtime/transport/link.h"
#include "runtime/transport/tcp/frame_protection.h"
#include "runtime/transport/tcp/frame_seal.h"
#include "runtime/transport/tcp/tcp.h"
#include "runtime/transport/tcp/tcp_links_for_test.h"

namespace railhead::transport {
namespace {

using ::testing::HasSubstr;

// Two links whose bytes pass through a relay.
struct RelayedPair {
  explicit RelayedPair(FrameProtection protection)
      : acceptor_a(AHall()),
        acceptor_b(AHall()),
        to_a(*acceptor_a),
        to_b(*acceptor_b),
        a(*OpenTcpLink(acceptor_a, to_b.Address(), "rank 1", protection)),
        b(*OpenTcpLink(acceptor_b, to_a.Address(), "rank 0", protection)) {
    for (const absl::Time deadline = In(20); !a->connected() || !b->connected();) {
      if (MonotonicNow() >= deadline) {
        ADD_FAILURE() << "the links do not connect";
        break;
      }
      Pump();
      for (Link* link : {a.get(), b.get()}) link->Reconnect(MonotonicNow()).IgnoreError();
    }
    // What each side begins with has passed.
    for (int i = 0; i < 10; ++i) Pump();
  }
  void Pump() {
    to_a.Pump();
    to_b.Pump();
  }
  // From now on changes what a sends.
  void Change(const std::function<void(std::string& bytes)>& change) {
    const bool a_dials = acceptor_a->own().token < acceptor_b->own().token;
    (a_dials ? to_b : to_a).change = [=](bool from_caller, std::string& bytes) {
      if (from_caller == a_dials) change(bytes);
    };
  }

  std::shared_ptr<Acceptor> acceptor_a;
  std::shared_ptr<Acceptor> acceptor_b;
  railhead::testing::Relay to_a;
  railhead::testing::Relay to_b;
  std::unique_ptr<Link> a;
  std::unique_ptr<Link> b;
};

constexpr size_t kSealedHead = 56 + 2 * kSealSize;

// What b takes of a frame that a has sent, and how it ends: OK when it was taken.
absl::Status SendThrough(RelayedPair& pair, const std::string& payload, std::string* taken) {
  EXPECT_TRUE(*pair.a->TrySend({1, 2}, Bytes(payload)));
  EXPECT_EQ(pair.a->Push(), absl::OkStatus());
  for (const absl::Time deadline = In(20); MonotonicNow() < deadline;) {
    pair.Pump();
    const absl::StatusOr<bool> moved =
        pair.b
            ->Poll([&](const FrameHeader&, absl::Span<const std::byte> bytes) {
              taken->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
              return true;
            })
            .moved;
    if (!moved.ok()) return moved.status();
    if (*moved) return absl::OkStatus();
  }
  return absl::DeadlineExceededError("nothing has come");
}

// What is proven at the start says nothing of what follows.
TEST(TcpTest, WithoutSignaturesWhoeverIsOnTheWayMayChangeFrames) {
  RelayedPair pair(FrameProtection::kNone);
  pair.Change([](std::string& bytes) { bytes.back() = '?'; });
  std::string taken;
  EXPECT_TRUE(SendThrough(pair, "payload", &taken).ok());
  EXPECT_EQ(taken, "payloa?");
}

// With signatures alone, and with those of ciphers.
class SealedTest : public ::testing::TestWithParam<FrameProtection> {};
INSTANTIATE_TEST_SUITE_P(Frames, SealedTest, ::testing::ValuesIn(Protections()), name_of_frames);

TEST_P(SealedTest, OnlyEncryptionHidesThePayload) {
  const std::string payload(100, 'p');
  RelayedPair pair(GetParam());
  std::string seen;
  pair.Change([&seen](std::string& bytes) { seen += bytes; });
  std::string taken;
  EXPECT_TRUE(SendThrough(pair, payload, &taken).ok());
  EXPECT_EQ(taken, payload);
  EXPECT_EQ(seen.size(), kSealedHead + payload.size());
  EXPECT_EQ(seen.find("ppp") == std::string::npos, GetParam() != FrameProtection::kSigned);
}

TEST_P(SealedTest, NoBitOfAFrameMayChange) {
  const std::string payload(100, 'p');
  for (size_t at = 4; at < kSealedHead + payload.size(); at += at < kSealedHead ? 3 : 33) {
    // What cannot be the header of a frame at all is refused as such.
    if (at < 8 || (at >= 48 && at < 56)) continue;
    RelayedPair pair(GetParam());
    pair.Change([at](std::string& bytes) {
      if (bytes.size() > at) bytes[at] = static_cast<char>(bytes[at] ^ 4);
    });
    std::string taken;
    const absl::Status lost = SendThrough(pair, payload, &taken);
    EXPECT_EQ(taken, "") << at;
    EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable) << at;
    EXPECT_THAT(std::string(lost.message()), HasSubstr("its signature is wrong")) << at;
    EXPECT_FALSE(pair.b->connected());
  }
}

TEST_P(SealedTest, NoFrameMayBeRepeatedLeftOutOrPutIn) {
  const std::vector<std::function<void(std::string&)>> changes = {
      [](std::string& bytes) { bytes += bytes; },
      [](std::string& bytes) { bytes.erase(0, kSealedHead + 7); },
      [](std::string& bytes) {
        // The second frame in place of the first.
        bytes = bytes.substr(kSealedHead + 7) + bytes;
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    RelayedPair pair(GetParam());
    pair.Change(changes[i]);
    ASSERT_TRUE(*pair.a->TrySend({1, 0}, Bytes("first f")));
    ASSERT_EQ(pair.a->Push(), absl::OkStatus());
    std::string taken;
    absl::Status lost = SendThrough(pair, "secondf", &taken);
    for (const absl::Time deadline = In(20); lost.ok() && MonotonicNow() < deadline;) {
      pair.Pump();
      lost = Drop(*pair.b).status();
    }
    EXPECT_THAT(std::string(lost.message()), HasSubstr("its signature is wrong")) << i;
  }
}

}  // namespace
}  // namespace railhead::transport
