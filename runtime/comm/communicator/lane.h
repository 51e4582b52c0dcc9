// SPDX-License-Identifier: Apache-2.0
//
// Transfer lane: runs the rhIsend and rhIrecv transfers of one communicator on its own thread. Its
// connections and its mailbox are separate from those of collectives, so both run concurrently. The
// communicator's first transfer on this rank starts it. Messages for ranks without a lane wait
// until they start theirs.
//
// Matching and protocol are in transfers/engine.h; this file adds the thread and its waits.
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_H_

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/condition.h"
#include "runtime/base/traffic.h"
#include "runtime/comm/communicator/lane_messenger.h"
#include "runtime/rails/mesh.h"
#include "runtime/recorder/position.h"
#include "runtime/recorder/transfer_stillness.h"
#include "runtime/transfers/engine.h"

namespace railhead::comm {

// One transfer and its result. It may outlive its communicator. Thread-safe, except the fields of
// transfers::Transfer, which belong to the engine and may be read once the transfer is done.
class LaneTransfer final : public transfers::Transfer {
 public:
  bool IsDone() const { return done_.load(std::memory_order_acquire); }
  void Wait();
  // Valid once it is done.
  const absl::Status& status() const { return status_; }
  void End(const absl::Status& status);

  // Returns true in a process forked after the transfer was started; it never completes there.
  bool IsForeign() const;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::atomic<bool> done_{false};
  absl::Status status_;
  const pid_t process_ = ThisProcess();
  static pid_t ThisProcess();
};

class Lane {
 public:
  struct Options {
    int rank = 0;
    int world_size = 1;
    absl::Duration timeout;
    Alarm alarm;
    rails::Reach reach;           // to ranks that do not share memory
    std::byte* memory = nullptr;  // of the mailbox; null without one
    std::vector<int> here;        // ranks of the mailbox
    std::function<std::string(int rank)> name;
    // Returns the name of a rank that has left; nullopt while it is a member.
    std::function<std::optional<std::string>(int rank)> left;
    // Returns ranks with which this one is stuck, by the last query of all.
    std::function<std::vector<int>()> stuck_with;
    // Fails the job on all ranks; returns the error that they get.
    std::function<absl::Status(const absl::Status& failure)> fail;
  };
  static absl::StatusOr<std::unique_ptr<Lane>> Start(Options options);
  // Ends unfinished transfers with an error.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Thread-safe, like the functions below. Returns an error if no more transfers can be started.
  absl::Status Post(std::shared_ptr<LaneTransfer> transfer);
  size_t unfinished() const;
  // Waits until all sent data is known to have arrived or the lane has failed, at most until the
  // deadline.
  void Settle(absl::Time deadline);

  std::vector<rails::RailTotals> Totals() const { return messages_->mesh().Totals(); }
  Traffic InMemory() const { return messages_->InMemory(); }
  // Returns the state of the transfers, for the query of all ranks of that number.
  recorder::StillTransfers Still(absl::Time now, uint32_t query) const;

 private:
  explicit Lane(Options options) : options_(std::move(options)), still_(options_.timeout) {}

  void Run();
  // Whether all that was sent to members is known to have arrived.
  bool IsSettled() const;
  absl::Status Work();
  // Called at short intervals. Returns an error if a transfer cannot complete, or makes no progress
  // for the timeout although both ranks have posted it. (That a rank does not answer is noticed by
  // the hang reporter.)
  absl::Status LookAround(absl::Time now);
  void NoteProgress(absl::Time now);
  // Returns why a transfer with that peer cannot complete, because ranks have left; OK while it
  // may.
  absl::Status WhyInVain(int peer) const;
  absl::Status Late(const std::vector<int>& peers) const;
  std::string DescribeOldest(const std::vector<int>& peers) const;
  void TakePosted();
  void End(const absl::Status& status);

  const Options options_;
  std::unique_ptr<LaneMessenger> messages_;
  std::unique_ptr<transfers::Engine> engine_;
  absl::Time looked_ = absl::InfinitePast();  // the last LookAround

  mutable std::mutex mutex_;  // guards the members below
  Condition changed_;
  recorder::TransferStillness still_;
  std::vector<std::shared_ptr<LaneTransfer>> posted_;  // not seen by the thread yet
  size_t unfinished_ = 0;
  bool ending_ = false;
  bool settling_ = false;
  bool settled_ = false;
  std::optional<absl::Status> ended_;  // why it ended
  std::thread thread_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_H_
