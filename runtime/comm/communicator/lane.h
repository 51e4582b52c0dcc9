// SPDX-License-Identifier: Apache-2.0
//
// Transfer lane: runs the rhIsend and rhIrecv transfers of one communicator. Its connections and
// its mailbox are separate from those of collectives, so both run concurrently. The communicator's
// first transfer on this rank starts it, or a message of another rank (Communicator::Tend).
//
// It has no thread. The thread that starts, tests or waits for a transfer does the work, also of
// all others (WorkLock). While there is none, the process's progress thread does it
// (net::WatchThread): a few milliseconds after the last visit, so that frequent callers neither
// wake it nor have to arm descriptors, and from then on when a descriptor is ready.
//
// Matching and protocol are in transfers/engine.h.
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_H_

#include <atomic>
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
#include "runtime/base/traffic.h"
#include "runtime/base/work_lock.h"
#include "runtime/comm/communicator/lane_messenger.h"
#include "runtime/comm/communicator/lane_transfer.h"
#include "runtime/net/watch_thread.h"
#include "runtime/rails/mesh.h"
#include "runtime/recorder/position.h"
#include "runtime/recorder/transfer_stillness.h"
#include "runtime/transfers/engine.h"

namespace railhead::comm {

// Its communicator's, until Close; afterwards of those that still have transfers. Thread-safe.
class Lane final : public std::enable_shared_from_this<Lane>, private net::WatchThread::Client {
 public:
  struct Options {
    int rank = 0;
    int world_size = 1;
    absl::Duration timeout;
    Alarm alarm;
    rails::Reach reach;           // to ranks that do not share memory
    std::byte* memory = nullptr;  // of the mailbox; null without one
    std::vector<int> here;        // ranks of the mailbox
    bool crowded = false;         // some of them share a core
    std::function<std::string(int rank)> name;
    // Returns the name of a rank that has left; nullopt while it is a member.
    std::function<std::optional<std::string>(int rank)> left;
    // Returns ranks with which this one is stuck, by the last query of all.
    std::function<std::vector<int>()> stuck_with;
    // Fails the job on all ranks; returns the error that they get.
    std::function<absl::Status(const absl::Status& failure)> fail;
  };
  static absl::StatusOr<std::shared_ptr<Lane>> Start(Options options);
  ~Lane() override = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Ends unfinished transfers with an error, and with them waits of other threads. Call nothing but
  // WaitFor and Help afterwards.
  void Close();

  // The transfer must live until it is done. Returns an error if no more can be started.
  absl::Status Post(LaneTransfer& transfer);
  // Works until the transfer is done.
  void WaitFor(const LaneTransfer& transfer);
  // Does what is possible without waiting.
  void Help();
  size_t unfinished() const;
  // Works until all sent data is known to have arrived or the lane has failed, at most until the
  // deadline.
  void Settle(absl::Time deadline);

  absl::Time LastSign(int rank) const { return messages_->mesh().LastSign(rank); }
  std::vector<rails::RailTotals> Totals() const { return messages_->mesh().Totals(); }
  Traffic InMemory() const { return messages_->InMemory(); }
  // Returns the state of the transfers, for the query of all ranks of that number.
  recorder::StillTransfers Still(absl::Time now, uint32_t query) const;

 private:
  explicit Lane(Options options);

  // The functions below are called by who has the lock, except Turn.
  //
  // Works until `done`, the deadline or the end of the lane, and unlocks.
  template <class Done>
  void Drive(Done done, absl::Time deadline = absl::InfiniteFuture());
  // Does what is possible without waiting, except to look for what has come.
  absl::Status Advance();
  // The same, after a look.
  absl::Status AdvanceOnce();
  // Waits until something has moved, or for a short time, at most until the deadline.
  absl::Status Work(absl::Time deadline);
  // Unlocks; the progress thread attends to the lane.
  void Leave();
  // Returns true if all that was sent to members is known to have arrived.
  bool IsSettled() const;

  // The progress thread's turn.
  std::optional<absl::Time> Turn() override;
  // Its work; returns when it has to look again.
  absl::StatusOr<absl::Time> Attend(absl::Time now);
  // Prepares to sleep until a descriptor is ready; returns when to look again in any case.
  absl::StatusOr<absl::Time> Sleep(absl::Time now);
  // Watches the lane's descriptors until one is ready.
  absl::Status WatchOnce(int operation);
  // Ends the lane on a separate thread, and unlocks: an error is first reported to other ranks, and
  // the progress thread has other lanes to attend to.
  void EndAside(const absl::Status& status);
  // Returns true if a transfer that waits for its peer can do so without a poll for what has come:
  // small messages need no answer, and a poll costs as much as they do.
  bool IsQuick(const LaneTransfer& transfer) const;
  // Wakes other threads whose transfers are done. Unlocking does so, too.
  void TellDone();

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
  // Only who has the lock writes it.
  void CountGoing(ptrdiff_t more) {
    going_.store(going_.load(std::memory_order_relaxed) + static_cast<size_t>(more),
                 std::memory_order_relaxed);
  }
  void End(const absl::Status& status);

  const Options options_;
  const absl::Duration look_pause_;  // maximum time between two calls of LookAround
  std::shared_ptr<net::WatchThread> thread_;
  WorkLock lock_;

  // Used by the thread that has the lock.
  std::unique_ptr<LaneMessenger> messages_;  // null after Close
  std::unique_ptr<transfers::Engine> engine_;
  absl::Time looked_ = absl::InfinitePast();  // the last LookAround
  bool any_done_ = false;  // waiting threads do not know yet that a transfer is done
  uint32_t at_once_ = 0;   // waits that were short, since the clock was last read
  uint64_t visits_ = 0;    // of other threads than the progress thread
  uint64_t seen_visits_ = 0;
  std::thread aside_;

  // Time after a visit until the progress thread checks if there were more.
  static constexpr absl::Duration kPause = absl::Milliseconds(2);
  // As kPause, if it finds the lane in use. Its user wakes it, unless both miss each other.
  static constexpr absl::Duration kLongestPause = absl::Milliseconds(100);

  enum class Attention {
    kSoon,    // the progress thread attends to the lane within kPause
    kAsleep,  // it sleeps until a descriptor is ready
    kMissed   // it found the lane visited
  };
  std::atomic<Attention> attention_{Attention::kSoon};
  std::atomic<size_t> going_{0};  // unfinished transfers that the engine has
  std::atomic<bool> closing_{false};
  std::atomic<bool> any_posted_{false};  // whether posted_ has any

  mutable std::mutex mutex_;  // guards the members below
  recorder::TransferStillness still_;
  std::vector<LaneTransfer*> posted_;  // that the engine does not have yet
  std::optional<absl::Status> ended_;  // why it ended; written by who has lock_
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_H_
