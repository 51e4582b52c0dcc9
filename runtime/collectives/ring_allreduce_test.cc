// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "runtime/collectives/algorithms.h"
#include "runtime/rails/mesh.h"
#include "runtime/rails/peer.h"
#include "runtime/testing/operations.h"
#include "runtime/testing/ranks.h"
#include "runtime/testing/tcp_pair.h"

namespace railhead::collectives {
namespace {

using railhead::testing::RunRanks;

// Between threads of this process: a full mesh of TCP peers with `rails` rails each.
std::vector<std::unique_ptr<rails::Mesh>> TcpWorld(int world, int rails) {
  std::vector<std::map<int, std::unique_ptr<rails::Peer>>> peers(static_cast<size_t>(world));
  for (int a = 0; a < world; ++a) {
    const int b = (a + 1) % world;
    if (b == a || peers[static_cast<size_t>(a)].count(b) > 0) continue;
    std::vector<rails::Rail> rails_a;
    std::vector<rails::Rail> rails_b;
    for (int rail = 0; rail < rails; ++rail) {
      railhead::testing::TcpPair pair = railhead::testing::ConnectedTcp();
      rails_a.push_back({{rail, "lo", 0, "tcp"}, std::move(pair.a)});
      rails_b.push_back({{rail, "lo", 0, "tcp"}, std::move(pair.b)});
    }
    peers[static_cast<size_t>(a)][b] = std::make_unique<rails::Peer>("b", std::move(rails_a));
    peers[static_cast<size_t>(b)][a] = std::make_unique<rails::Peer>("a", std::move(rails_b));
  }
  std::vector<std::unique_ptr<rails::Mesh>> meshes;
  for (auto& map : peers) meshes.push_back(*rails::Mesh::Create(std::move(map), {}));
  return meshes;
}

absl::Status SumAround(Messenger& messenger, int rank, int world, const std::vector<float>& send,
                       std::vector<float>& receive, size_t count) {
  return RingAllReduce(
      messenger, rank,
      testing::AllReduceOf(world, rhFloat32, rhSum, reinterpret_cast<const std::byte*>(send.data()),
                           reinterpret_cast<std::byte*>(receive.data()), count));
}

// Values whose float32 sum depends on the order of adding, so that ranks that added in different
// orders would differ in some bit.
std::vector<float> Awkward(int rank, size_t count, unsigned seed) {
  std::mt19937 random(seed + 1000U * static_cast<unsigned>(rank));
  std::vector<float> values(count);
  for (float& value : values) {
    value = (static_cast<float>(random()) / 4e9F - 0.5F) * std::pow(10.0F, random() % 8);
  }
  return values;
}

// Small whole numbers: every order gives the same, known, exact sum.
std::vector<float> Exact(int rank, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>((i * 7 + static_cast<size_t>(rank) * 131) % 1009);
  }
  return values;
}

std::vector<float> ExactSum(int world, size_t count) {
  std::vector<float> sum(count);
  for (int rank = 0; rank < world; ++rank) {
    const std::vector<float> values = Exact(rank, count);
    for (size_t i = 0; i < count; ++i) sum[i] += values[i];
  }
  return sum;
}

std::vector<size_t> Counts() {
  std::vector<size_t> counts;
  for (size_t count = 0; count <= 40; ++count) counts.push_back(count);
  for (const size_t count :
       {63, 64, 65, 127, 500, 999, 1000, 4095, 4096, 32767, 32769, 65536, 100003, 262145, 524288}) {
    counts.push_back(count);
  }
  return counts;
}

class RingTest : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(RingTest, SumsEveryCountInAndOutOfPlace) {
  const auto [world, rails] = GetParam();
  const std::vector<std::unique_ptr<rails::Mesh>> meshes = TcpWorld(world, rails);
  RunRanks(world, [&, world = world](int rank) {
    rails::Mesh& mesh = *meshes[static_cast<size_t>(rank)];
    for (const size_t count : Counts()) {
      const std::vector<float> expected = ExactSum(world, count);
      const std::vector<float> send = Exact(rank, count);
      // A guard behind the last value shows writes past the end.
      std::vector<float> receive(count + 1, -1.0F);
      mesh.Begin(absl::Seconds(30));
      absl::Status status = SumAround(mesh, rank, world, send, receive, count);
      status.Update(mesh.Finish());
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) return false;
      EXPECT_EQ(receive.back(), -1.0F);
      receive.pop_back();
      EXPECT_TRUE(receive == expected) << "count " << count << ", rank " << rank;
      EXPECT_TRUE(send == Exact(rank, count)) << "the input was changed";

      std::vector<float> both = send;
      status = SumAround(mesh, rank, world, both, both, count);
      status.Update(mesh.Finish());
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) return false;
      EXPECT_TRUE(both == expected) << "in place, count " << count << ", rank " << rank;
    }
    return true;
  });
}

TEST_P(RingTest, AllRanksGetTheSameBitsEveryTime) {
  const auto [world, rails] = GetParam();
  const std::vector<std::unique_ptr<rails::Mesh>> meshes = TcpWorld(world, rails);
  for (const size_t count : {size_t{1}, size_t{1000}, size_t{300001}}) {
    std::vector<float> first;
    for (int round = 0; round < 3; ++round) {
      const std::vector<std::vector<float>> results = RunRanks(world, [&, world = world](int rank) {
        rails::Mesh& mesh = *meshes[static_cast<size_t>(rank)];
        const std::vector<float> send = Awkward(rank, count, 17);
        std::vector<float> receive(count);
        mesh.Begin(absl::Seconds(30));
        absl::Status status = SumAround(mesh, rank, world, send, receive, count);
        status.Update(mesh.Finish());
        EXPECT_TRUE(status.ok()) << status;
        return receive;
      });
      if (first.empty()) first = results[0];
      for (const std::vector<float>& result : results) {
        ASSERT_EQ(std::memcmp(result.data(), first.data(), count * sizeof(float)), 0);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, RingTest,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 5, 7),
                                            ::testing::Values(1, 2, 3)));

// A messenger that fails after some steps; the algorithm must hand the error on at once.
class FailingMessenger final : public Messenger {
 public:
  void Expect(Call /*call*/) override {}
  Ticket PostSend(int, absl::Span<const std::byte>) override { return 0; }
  Ticket PostReceive(int, const ReceiveBuffer&) override { return 0; }
  bool SendDone(int, Ticket) const override { return false; }
  bool ReceiveDone(int, Ticket) const override { return false; }
  absl::Status Progress() override { return absl::UnavailableError("rail 1 is down"); }
};

TEST(RingErrors, AnErrorEndsIt) {
  FailingMessenger messenger;
  std::vector<float> values(100);
  EXPECT_EQ(SumAround(messenger, 0, 2, values, values, 100),
            absl::UnavailableError("rail 1 is down"));
}

}  // namespace
}  // namespace railhead::collectives
