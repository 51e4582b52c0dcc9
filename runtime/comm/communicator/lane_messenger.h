// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_MESSENGER_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_MESSENGER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/companion.h"
#include "runtime/base/traffic.h"
#include "runtime/collectives/messenger.h"
#include "runtime/net/fd.h"
#include "runtime/rails/mesh.h"
#include "runtime/shm/mailbox.h"

namespace railhead::comm {

// Messages of a lane: through memory to ranks that share it, over rails to others. One wait looks
// at both, and at a bell by which other threads end it.
class LaneMessenger final : public collectives::Messenger {
 public:
  // `memory` of the mailbox of the ranks `here`; null: there is none.
  static absl::StatusOr<std::unique_ptr<LaneMessenger>> Create(int rank, Alarm alarm,
                                                               rails::Reach reach,
                                                               std::byte* memory,
                                                               const std::vector<int>& here);

  // Any thread: ends the wait of Progress, or the next one.
  void Ring();

  // Whether messages to that rank go through memory.
  bool InMemory(int peer) const { return Number(peer) != kElsewhere; }
  // Ranks elsewhere to which there is a way now that there was not at the last call.
  std::vector<int> TakeOpened() { return std::exchange(opened_, {}); }

  void Expect(collectives::Call call) override;
  Ticket PostSend(int peer, absl::Span<const std::byte> data) override;
  Ticket PostReceive(int peer, const collectives::ReceiveBuffer& buffer) override;
  bool SendDone(int peer, Ticket ticket) const override;
  bool ReceiveDone(int peer, Ticket ticket) const override;
  // As Mesh::Progress. Also returns when the bell has rung.
  absl::Status Progress() override { return mesh_->Progress(); }

  rails::Mesh& mesh() { return *mesh_; }
  // Any thread.
  Traffic InMemory() const {
    return mailbox_ == nullptr ? Traffic()
                               : Traffic{mailbox_->given_bytes(), mailbox_->taken_bytes()};
  }

 private:
  // The mailbox and the bell, for the mesh's wait.
  class Beside final : public Companion {
   public:
    absl::Status Open(shm::Mailbox* mailbox);
    void Ring();

    bool Waits() const override { return mailbox_ != nullptr && mailbox_->Waits(); }
    absl::StatusOr<bool> Poll() override;
    int event_fd() const override { return epoll_.get(); }
    void Arm() override;
    void Answer() override;
    uint64_t progress() const override;
    std::string DescribeProgress() const override;

   private:
    shm::Mailbox* mailbox_ = nullptr;
    std::atomic<bool> rung_{false};
    uint64_t rings_ = 0;
    net::Fd event_;
    net::Fd epoll_;
  };
  static constexpr int kElsewhere = -1;

  LaneMessenger() = default;
  int Number(int peer) const {
    return static_cast<size_t>(peer) < in_mailbox_.size() ? in_mailbox_[static_cast<size_t>(peer)]
                                                          : kElsewhere;
  }

  std::vector<int> in_mailbox_;  // by rank: its number there
  std::unique_ptr<shm::Mailbox> mailbox_;
  Beside beside_;
  std::vector<int> opened_;
  std::unique_ptr<rails::Mesh> mesh_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_MESSENGER_H_
