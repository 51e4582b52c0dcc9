// SPDX-License-Identifier: Apache-2.0
//
// Messages of a communicator over rails and shared memory, with a common timeout.
#ifndef RAILHEAD_RUNTIME_COMM_HIERARCHY_PATIENT_H_
#define RAILHEAD_RUNTIME_COMM_HIERARCHY_PATIENT_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/now.h"
#include "runtime/collectives/messenger.h"
#include "runtime/rails/mesh.h"
#include "runtime/shm/mailbox.h"

namespace railhead::comm {

// Messenger of a communicator: through shared memory to ranks that share it, over rails to others.
// One wait covers both. When its timeout expires, it starts again if `go_on` returns true. Ranks
// that made different calls may wait for each other without exchanging a message. So after a short
// time without progress, it queries what all ranks have called. One thread at a time.
class Patient final : public collectives::Messenger {
 public:
  // The mesh and `go_on` must outlive this object. The last argument starts a query, whose result
  // may fail the job, and returns at once.
  Patient(rails::Mesh& mesh, const std::function<bool()>& go_on, std::function<void()> ask)
      : mesh_(mesh), go_on_(go_on), ask_(std::move(ask)) {}

  // Routes messages to the ranks `here` (the mailbox's ranks, in order) through the mailbox, which
  // must outlive the mesh.
  absl::Status UseMemory(shm::Mailbox& mailbox, const std::vector<int>& here, int world_size) {
    mailbox_ = &mailbox;
    in_mailbox_.assign(static_cast<size_t>(world_size), kElsewhere);
    for (size_t i = 0; i < here.size(); ++i) {
      in_mailbox_[static_cast<size_t>(here[i])] = static_cast<int>(i);
    }
    return mesh_.Accompany(mailbox);
  }
  // Makes Progress store the time of the last progress there, in nanoseconds of the monotonic
  // clock.
  void Note(std::atomic<int64_t>* last_moved) { last_moved_ = last_moved; }

  // If `go_on` is not null, it replaces the constructor's until the next Begin; it must outlive the
  // call.
  void Begin(absl::Duration patience, const std::function<bool()>* go_on = nullptr) {
    patience_ = patience;
    asked_ = go_on != nullptr ? go_on : &go_on_;
    BeginAnew();
  }
  absl::Status Finish() {
    absl::Status status = mesh_.Finish();
    while (GoesOn(status)) status = mesh_.Finish();
    return status;
  }

  void Expect(collectives::Call call) override {
    mesh_.Expect(call);
    if (mailbox_ != nullptr) mailbox_->Expect(call);
  }
  Ticket PostSend(int peer, absl::Span<const std::byte> data) override {
    const int here = InMailbox(peer);
    return here == kElsewhere ? mesh_.PostSend(peer, data) : mailbox_->PostSend(here, data);
  }
  Ticket PostReceive(int peer, const collectives::ReceiveBuffer& buffer) override {
    const int here = InMailbox(peer);
    return here == kElsewhere ? mesh_.PostReceive(peer, buffer)
                              : mailbox_->PostReceive(here, buffer);
  }
  bool SendDone(int peer, Ticket ticket) const override {
    const int here = InMailbox(peer);
    return here == kElsewhere ? mesh_.SendDone(peer, ticket) : mailbox_->SendDone(here, ticket);
  }
  bool ReceiveDone(int peer, Ticket ticket) const override {
    const int here = InMailbox(peer);
    return here == kElsewhere ? mesh_.ReceiveDone(peer, ticket)
                              : mailbox_->ReceiveDone(here, ticket);
  }
  absl::Status Progress() override {
    absl::Status status = mesh_.Progress();
    if (status.ok() && (has_asked_ || last_moved_ != nullptr)) NoteProgress();
    return GoesOn(status) ? absl::OkStatus() : status;
  }

 private:
  static constexpr int kElsewhere = -1;
  // Delay before the query. Healthy ranks usually make progress earlier, and a query costs each
  // rank a few messages.
  static constexpr absl::Duration kMoment = absl::Milliseconds(200);
  static constexpr absl::Duration kGlance = absl::Milliseconds(1);

  int InMailbox(int peer) const {
    return mailbox_ == nullptr ? kElsewhere : in_mailbox_[static_cast<size_t>(peer)];
  }
  // A rail that returns, or is lost again, ends a wait of the mesh, and is not progress.
  void NoteProgress() {
    const uint64_t progress = mesh_.progress();
    if (std::exchange(progress_, progress) == progress) return;
    if (has_asked_) BeginAnew();
    if (last_moved_ == nullptr) return;
    last_moved_->store(absl::ToUnixNanos(MonotonicNow()), std::memory_order_relaxed);
  }
  bool GoesOn(const absl::Status& status) {
    if (!absl::IsDeadlineExceeded(status)) return false;
    if (!has_asked_) {
      has_asked_ = true;
      ask_();
      mesh_.Begin(patience_);
      progress_ = mesh_.progress();
      return true;
    }
    if (!(*asked_)() && !CameMeanwhile()) return false;
    BeginAnew();
    return true;
  }
  // Returns true if something has arrived during the query of all ranks.
  bool CameMeanwhile() {
    progress_ = mesh_.progress();
    mesh_.Begin(kGlance);
    return mesh_.Progress().ok() && mesh_.progress() != progress_;
  }
  void BeginAnew() {
    has_asked_ = false;
    mesh_.Begin(std::min(kMoment, patience_ / 4));
  }

  rails::Mesh& mesh_;
  const std::function<bool()>& go_on_;
  const std::function<void()> ask_;
  const std::function<bool()>* asked_ = &go_on_;
  bool has_asked_ = false;  // since the last progress
  uint64_t progress_ = 0;   // of the mesh, at the last look
  absl::Duration patience_ = absl::InfiniteDuration();
  shm::Mailbox* mailbox_ = nullptr;
  std::vector<int> in_mailbox_;  // by rank: its number in the mailbox
  std::atomic<int64_t>* last_moved_ = nullptr;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_HIERARCHY_PATIENT_H_
