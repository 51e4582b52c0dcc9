// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/hierarchy/patient.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "runtime/rails/mesh.h"
#include "runtime/rails/peer.h"
#include "runtime/testing/fake_link.h"

namespace railhead::comm {
namespace {

using testing::FakeLink;

constexpr absl::Duration kTimeout = absl::Milliseconds(400);

// A rank that sends to rank 1 over one rail. Rank 1 has posted its receive, and gets nothing.
class BlackHole {
 public:
  BlackHole() {
    auto [link, other] = testing::FakePair();
    link_ = link.get();
    link_->payload_limit = 4096;
    other_ = std::move(other);
    std::vector<rails::Rail> rails;
    rails.push_back({{0, "rxe0", 1, "verbs"}, std::move(link)});
    std::map<int, std::unique_ptr<rails::Peer>> peers;
    peers[1] = std::make_unique<rails::Peer>("rank 1", std::move(rails));
    mesh_ = *rails::Mesh::Create(std::move(peers), {});
    patient_ = std::make_unique<Patient>(*mesh_, go_on_, [this] { ++asked_; });
  }

  FakeLink& link() { return *link_; }
  Patient& patient() { return *patient_; }
  int asked() const { return asked_; }

  // The rail is lost, and finds a new connection at once.
  void Flap() {
    link_->cable().Cut();
    link_->cable().plugged = true;
  }

  // Sends, while the rail flaps, until that fails or many timeouts have passed.
  absl::Status SendInVain() {
    const std::vector<std::byte> data(size_t{16} << 20U);
    patient_->Begin(kTimeout);
    patient_->PostSend(1, data);
    transport::FrameHeader posted;
    posted.kind = transport::FrameKind::kPosted;
    posted.posted = 1;
    EXPECT_TRUE(other_->TrySend(posted, {}).value_or(false));
    const absl::Time end = absl::Now() + 20 * kTimeout;
    absl::Status status;
    while (status.ok() && absl::Now() < end) {
      status = patient_->Progress();
      absl::SleepFor(absl::Milliseconds(5));
      Flap();
    }
    return status;
  }

 private:
  FakeLink* link_ = nullptr;
  std::unique_ptr<FakeLink> other_;
  std::unique_ptr<rails::Mesh> mesh_;
  const std::function<bool()> go_on_ = [] { return false; };
  int asked_ = 0;
  std::unique_ptr<Patient> patient_;
};

TEST(PatientTest, ARailThatComesBackInVainDoesNotRestartTheTimeout) {
  BlackHole hole;
  EXPECT_TRUE(absl::IsDeadlineExceeded(hole.SendInVain()));
  EXPECT_EQ(hole.asked(), 1);
}

// As a path does that loses large packets only: each connection takes a little more than the one
// before it, of which nothing arrives.
TEST(PatientTest, WhatARailTakesAndLosesDoesNotRestartTheTimeout) {
  BlackHole hole;
  int room = 0;
  int taken = 0;
  uint64_t connection = 0;
  hole.link().has_room = [&] {
    if (std::exchange(connection, hole.link().cable().connection) != connection) {
      taken = 0;
      ++room;
    }
    return ++taken <= room;
  };
  EXPECT_TRUE(absl::IsDeadlineExceeded(hole.SendInVain()));
}

TEST(PatientTest, ARailThatComesBackInVainIsNotNotedAsProgress) {
  BlackHole hole;
  std::atomic<int64_t> last_moved{0};
  hole.patient().Note(&last_moved);
  EXPECT_TRUE(absl::IsDeadlineExceeded(hole.SendInVain()));
  // The first connection took all of it.
  const absl::Duration since = MonotonicNow() - absl::FromUnixNanos(last_moved);
  EXPECT_GE(since, kTimeout);
}

TEST(PatientTest, WhatComesWhileAllAreAskedIsNotLate) {
  auto [link, other] = testing::FakePair();
  std::vector<rails::Rail> rails;
  rails.push_back({{0, "rxe0", 1, "verbs"}, std::move(link)});
  std::map<int, std::unique_ptr<rails::Peer>> peers;
  peers[1] = std::make_unique<rails::Peer>("rank 1", std::move(rails));
  const std::unique_ptr<rails::Mesh> mesh = *rails::Mesh::Create(std::move(peers), {});
  const std::vector<std::byte> sent(8, std::byte{7});
  std::vector<std::byte> got(sent.size());
  const std::function<bool()> go_on = [&other = other, &sent] {
    transport::FrameHeader header;
    header.size = sent.size();
    EXPECT_TRUE(other->TrySend(header, sent).value_or(false));
    return false;
  };
  Patient patient(*mesh, go_on, [] {});
  patient.Begin(absl::Milliseconds(40));
  collectives::ReceiveBuffer buffer;
  buffer.data = got.data();
  buffer.size = got.size();
  const auto ticket = patient.PostReceive(1, buffer);
  absl::Status status;
  while (status.ok() && !patient.ReceiveDone(1, ticket)) status = patient.Progress();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(got, sent);
}

}  // namespace
}  // namespace railhead::comm
