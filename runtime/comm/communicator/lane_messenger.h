// SPDX-License-Identifier: Apache-2.0
//
// Messages of the transfer lane (lane.h).
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_MESSENGER_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_MESSENGER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/companion.h"
#include "runtime/base/traffic.h"
#include "runtime/collectives/messenger.h"
#include "runtime/net/event.h"
#include "runtime/net/fd.h"
#include "runtime/rails/mesh.h"
#include "runtime/shm/mailbox.h"
#include "runtime/shm/patience.h"
#include "runtime/shm/spread.h"

namespace railhead::comm {

// Messenger of a lane: through shared memory to ranks that share it, over rails to others. One wait
// covers both, and other threads can interrupt it. One thread at a time, except where stated.
class LaneMessenger final : public collectives::Messenger {
 public:
  // `memory` of the mailbox of the ranks `here`; null without a mailbox. The last argument: true if
  // some of them share a core.
  static absl::StatusOr<std::unique_ptr<LaneMessenger>> Create(int rank, Alarm alarm,
                                                               rails::Reach reach,
                                                               std::byte* memory,
                                                               const std::vector<int>& here,
                                                               bool crowded);

  // Thread-safe. Ends the current wait in Progress, or the next one.
  void Ring();

  // Returns true if messages to that rank go through shared memory.
  bool InMemory(int peer) const { return Number(peer) != kElsewhere; }
  // Returns the ranks, outside of shared memory, that became reachable since the last call, and
  // whether there are any.
  bool HasOpened() const { return !opened_.empty(); }
  std::vector<int> TakeOpened() { return std::exchange(opened_, {}); }

  void Expect(collectives::Call call) override;
  Ticket PostSend(int peer, absl::Span<const std::byte> data) override;
  Ticket PostPart(int peer, absl::Span<const std::byte> data) override;
  Ticket PostReceive(int peer, const collectives::ReceiveBuffer& buffer) override;
  bool Joins(int peer) const override { return InMemory(peer); }
  bool SendJoined(int peer, absl::Span<const std::byte> head,
                  absl::Span<const std::byte> rest) override {
    return mailbox_->SendJoined(Number(peer), head, rest);
  }
  absl::StatusOr<absl::Span<const std::byte>> Arrived(int peer) override {
    return mailbox_->Arrived(Number(peer));
  }
  void Take(int peer) override { mailbox_->Take(Number(peer)); }
  bool SendDone(int peer, Ticket ticket) const override;
  bool ReceiveDone(int peer, Ticket ticket) const override;
  // See Mesh::Progress. Also returns after Ring.
  absl::Status Progress() override { return mesh_->Progress(); }
  // As Progress, but waits at most `longest`.
  enum class Came { kAtOnce, kLater, kNothing };  // at once: within a spin of kSpin
  absl::StatusOr<Came> Wait(absl::Duration longest);
  // Does what is possible without waiting. Returns true if anything has moved.
  absl::StatusOr<bool> Look();
  // See Mesh::PrepareSleep.
  absl::StatusOr<absl::Duration> PrepareSleep() { return mesh_->PrepareSleep(); }

  // Increases as messages with that rank come nearer to completion.
  uint64_t progress(int peer) const {
    const int here = Number(peer);
    return here == kElsewhere ? mesh_->progress(peer) : mailbox_->progress(here);
  }

  rails::Mesh& mesh() { return *mesh_; }
  // Thread-safe.
  Traffic InMemory() const {
    return mailbox_ == nullptr ? Traffic()
                               : Traffic{mailbox_->given_bytes(), mailbox_->taken_bytes()};
  }

 private:
  // The mailbox and Ring's event, for the mesh's wait.
  class Beside final : public Companion {
   public:
    absl::Status Open(shm::Mailbox* mailbox);
    void Ring();

    bool Waits() const override { return mailbox_ != nullptr && mailbox_->Waits(); }
    absl::StatusOr<bool> Poll() override;
    int event_fd() const override { return epoll_.get(); }
    absl::Status Arm() override;
    void Answer() override;
    uint64_t progress() const override;
    std::string DescribeProgress() const override;

   private:
    absl::Status Watch(int fd);

    shm::Mailbox* mailbox_ = nullptr;
    std::atomic<bool> rung_{false};
    uint64_t rings_ = 0;
    net::Event event_;
    net::Fd epoll_;
    bool watches_mailbox_ = false;
  };
  static constexpr int kElsewhere = -1;

  // Ranks on other cores answer within a few microseconds, before this one would be asleep.
  static constexpr absl::Duration kSpin = absl::Microseconds(50);

  // A rank without connections lets callers in now and then, also while memory is never still.
  static constexpr uint32_t kBetweenRounds = 256;

  LaneMessenger() = default;
  // Returns false if nothing has moved for kSpin.
  absl::StatusOr<bool> SpinInMemory();
  int Number(int peer) const {
    return static_cast<size_t>(peer) < in_mailbox_.size() ? in_mailbox_[static_cast<size_t>(peer)]
                                                          : kElsewhere;
  }

  std::optional<shm::Spread> spread_;  // with a mailbox
  shm::Patience patience_;
  uint32_t spins_ = 0;
  std::vector<int> in_mailbox_;  // by rank: its number in the mailbox
  std::unique_ptr<shm::Mailbox> mailbox_;
  Beside beside_;
  std::vector<int> opened_;
  std::unique_ptr<rails::Mesh> mesh_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_MESSENGER_H_
