// SPDX-License-Identifier: Apache-2.0
//
// What does the transfers of rhIsend and rhIrecv of one communicator: a thread, with connections
// and messages in memory that are apart from those of collectives, so that both go on beside each
// other. It begins with the communicator's first transfer on this rank. Other ranks need not have
// begun theirs: what is for them waits until they do.
//
// The matching and the messages are transfers/engine.h; here are the thread and its waiting.
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_H_

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
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
#include "runtime/transfers/engine.h"

namespace railhead::comm {

// One transfer, and what became of it. It may outlive its communicator. Thread-safe but for what is
// the engine's (transfers::Transfer), which may be read once it is done.
class LaneTransfer final : public transfers::Transfer {
 public:
  bool IsDone() const { return done_.load(std::memory_order_acquire); }
  void Wait();
  // Once it is done.
  const absl::Status& status() const { return status_; }
  void End(const absl::Status& status);

  // Whether this process was forked after the transfer was begun: it will never be done here.
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
    rails::Reach reach;           // to ranks elsewhere
    std::byte* memory = nullptr;  // of a mailbox, if there is one
    std::vector<int> here;        // the mailbox's ranks
    std::function<std::string(int rank)> name;
    // How a rank that has left in peace is called; nothing while it is there.
    std::function<std::optional<std::string>(int rank)> left;
    // Whether all ranks answer; asks them.
    std::function<bool()> all_answer;
    // Ends the job for all ranks with this failure, and returns what they are told.
    std::function<absl::Status(const absl::Status& failure)> fail;
  };
  static absl::StatusOr<std::unique_ptr<Lane>> Start(Options options);
  // Ends what is not done with an error.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Any thread, as what follows. Why nothing can be begun any more.
  absl::Status Post(std::shared_ptr<LaneTransfer> transfer);
  size_t unfinished() const;
  // Waits until all that was sent is known to have arrived, or the lane has failed; at the longest
  // until the deadline.
  void Settle(absl::Time deadline);

  std::vector<rails::RailTotals> Totals() const { return messages_->mesh().Totals(); }
  Traffic InMemory() const { return messages_->InMemory(); }

 private:
  explicit Lane(Options options) : options_(std::move(options)) {}

  void Run();
  absl::Status Work();
  // Nothing has moved for a moment.
  absl::Status LookAround(absl::Time now);
  // Why a transfer with that peer waits in vain, as its peers have left; OK while it may be done.
  absl::Status WhyInVain(int peer) const;
  absl::Status Late(const std::vector<int>& ranks) const;
  std::string DescribeOldest() const;
  void TakePosted();
  void End(const absl::Status& status);

  const Options options_;
  std::unique_ptr<LaneMessenger> messages_;
  std::unique_ptr<transfers::Engine> engine_;
  absl::Time last_moved_;

  mutable std::mutex mutex_;  // guards what follows
  Condition changed_;
  std::vector<std::shared_ptr<LaneTransfer>> posted_;  // that the thread has not seen
  size_t unfinished_ = 0;
  bool ending_ = false;
  bool settling_ = false;
  bool settled_ = false;
  std::optional<absl::Status> ended_;  // why
  std::thread thread_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_H_
