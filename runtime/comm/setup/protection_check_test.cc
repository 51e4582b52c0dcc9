// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/protection_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "runtime/comm/setup/agreement.h"

namespace railhead::comm {
namespace {

using config::FrameWish;
using ::testing::AllOf;
using ::testing::HasSubstr;
using transport::FrameProtection;

// What protects the data between ranks of several pods.
enum Carrier { kMemory, kRdma, kTcpPlain, kTcpSigned, kTcpChaCha, kTcpAes };

Decision DecisionFor(Carrier carrier, FrameProtection beside) {
  Decision decision;
  decision.shm = carrier == kMemory;
  decision.verbs = carrier == kRdma;
  decision.protection = carrier == kTcpPlain    ? FrameProtection::kNone
                        : carrier == kTcpSigned ? FrameProtection::kSigned
                        : carrier == kTcpChaCha ? FrameProtection::kChaCha20Poly1305
                        : carrier == kTcpAes    ? FrameProtection::kAes256Gcm
                                                : beside;
  return decision;
}

// The rule, as a list of what is refused.
const std::set<std::tuple<FrameWish, Carrier>> kRefused = {
    {FrameWish::kSigned, kTcpPlain},
    {FrameWish::kEncrypted, kRdma},
    {FrameWish::kEncrypted, kTcpPlain},
    {FrameWish::kEncrypted, kTcpSigned},
};

TEST(ProtectionCheckTest, AllWishesAndDecisions) {
  int refused = 0;
  for (const FrameWish frames : {FrameWish::kPlain, FrameWish::kSigned, FrameWish::kEncrypted}) {
    for (const Carrier carrier : {kMemory, kRdma, kTcpPlain, kTcpSigned, kTcpChaCha, kTcpAes}) {
      // What is decided of TCP says nothing where no TCP is used, and neither does the secret.
      for (const FrameProtection beside : {FrameProtection::kNone, FrameProtection::kAes256Gcm}) {
        for (const bool require_secret : {false, true}) {
          for (const int world : {1, 2, 300}) {
            config::Settings own;
            own.frames = frames;
            own.require_secret = require_secret;
            const Decision decision = DecisionFor(carrier, beside);
            const absl::Status status = CheckProtection(own, decision, world);
            EXPECT_EQ(status.ok(), world == 1 || !kRefused.contains({frames, carrier}))
                << static_cast<int>(frames) << " " << carrier << " " << status;
            if (status.ok()) continue;
            ++refused;
            EXPECT_THAT(
                std::string(status.message()),
                AllOf(HasSubstr(frames == FrameWish::kSigned ? "RAILHEAD_AUTH=frames"
                                                             : "RAILHEAD_AUTH=encrypt"),
                      HasSubstr(carrier == kRdma ? "RDMA" : "TCP with"), HasSubstr("MASTER_PORT")));
          }
        }
      }
    }
  }
  EXPECT_EQ(refused, 4 * 2 * 2 * 2);
}

// Rank 0's own decisions always pass the check of the ranks whose reports it has.
TEST(ProtectionCheckTest, DecisionsFromUnchangedReportsPass) {
  int decisions = 0;
  constexpr FrameWish kWishes[] = {FrameWish::kPlain, FrameWish::kSigned, FrameWish::kEncrypted};
  for (const FrameWish first : kWishes) {
    for (const FrameWish second : kWishes) {
      for (const bool rdma : {false, true}) {
        for (const bool one_pod : {false, true}) {
          for (const bool aes : {false, true}) {
            RankReport reports[2];
            for (int rank = 0; rank < 2; ++rank) {
              RankReport& report = reports[rank];
              report.name = absl::StrCat("rank ", rank);
              report.frames = rank == 0 ? first : second;
              report.has_aes = aes || rank == 0;
              report.place = one_pod ? "a" : absl::StrCat(rank);
              if (rdma) report.rails = {{0, "rxe0", ""}};
            }
            const absl::StatusOr<Decision> decision = Decide(reports);
            if (!decision.ok()) continue;
            ++decisions;
            for (const RankReport& report : reports) {
              config::Settings own;
              own.frames = report.frames;
              EXPECT_TRUE(CheckProtection(own, *decision, 2).ok());
            }
          }
        }
      }
    }
  }
  EXPECT_GT(decisions, 40);
}

}  // namespace
}  // namespace railhead::comm
