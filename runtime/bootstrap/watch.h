// SPDX-License-Identifier: Apache-2.0
//
// Watchdog of a running job. A thread (watch_thread.h) watches the tree's connections: if a rank
// dies or reports a failure, its tree peers notify rank 0, which notifies all; the first report is
// the job's verdict, the same on all ranks (node.h).
//
// A HangObserver may check this rank regularly; if it makes no progress, all ranks are queried
// (inquiry.h).
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_WATCH_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_WATCH_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/condition.h"
#include "runtime/bootstrap/absence.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/hang_observer.h"
#include "runtime/bootstrap/node.h"
#include "runtime/bootstrap/tree_connections.h"
#include "runtime/net/watch_thread.h"

namespace railhead::bootstrap {

// Thread-safe. Used by Communicator.
class Watch final : private net::WatchThread::Client {
 public:
  // Takes over the connections of `bootstrap` and starts to watch them.
  static absl::StatusOr<std::unique_ptr<Watch>> Start(Bootstrap bootstrap,
                                                      const SilenceLimits& limits = {});

  // Stops; connections close, which the other ranks take for this rank's death unless it has left.
  // The last one of a process waits until the others have what was sent, at most
  // SilenceLimits::farewell.
  ~Watch() override;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Becomes true when the job has failed; cheap to poll.
  const std::atomic<bool>& failed() const { return failed_; }

  // Why the job failed; OK if it has not.
  absl::Status verdict() const;

  // Calls `wake` from now on when the job has failed, or the address of a rank has arrived; at once
  // if the job has failed. It must not block or call this object.
  void OnNews(std::function<void()> wake);

  // Reports that this rank cannot continue, and waits briefly for the job's verdict: this text, or
  // an earlier one of another rank (probably the cause). Returns it.
  absl::Status Announce(const absl::Status& failure);

  // Uses this observer from now on; null: none. Do not call concurrently. When it returns, the
  // previous one is no longer called.
  void Attend(HangObserver* observer);

  // Queries all ranks, unless that happened just before; the observer gets the report.
  void Ask();

  // Returns the address a rank gave for itself (Bootstrap::SetPlace); nullopt while unknown: then
  // it is requested (see OnNews).
  std::optional<std::string> Locate(int rank);

  // Reports that this rank is leaving, and waits until all have left or the job has failed (true),
  // or the deadline (false). The report is sent in any case. May be called again.
  bool Goodbye(absl::Time deadline);

  // Ranks known to have ended, normally or not, including after the job failed; in order of
  // detection.
  std::vector<Gone> gone() const;

 private:
  Watch(Node node, TreeChannels channels)
      : node_(std::move(node)), channels_(std::move(channels)) {}

  std::optional<absl::Time> Turn() override;
  // See HangObserver.
  absl::Time LastSign(int rank);
  void TellWhoIsAway();
  // Requests missing addresses. Returns the time to repeat, because an answer is lost if a rank on
  // its path leaves.
  absl::Time Search(absl::Time now);
  // Performs due actions of an inquiry. Returns the time of the next.
  absl::Time Inquire(absl::Time now);
  // Passes a report to the observer.
  void Hear(absl::Time now);
  // Reports the observer's verdict, if there is one.
  void TakeVerdict();
  // Passes the owner's requests to the node.
  void TakeWishes();
  // Sends what there is to be sent. If this rank is about to learn something, waits until the
  // others can read it, too.
  void Flush(bool stopping);
  // Publishes the node's results on this rank.
  void Publish();
  void Wake() { channels_.thread().Wake(*this); }

  // Used by the thread only.
  Node node_;
  TreeChannels channels_;
  absl::Time patience_ = absl::InfiniteFuture();  // for the verdict on what was reported
  absl::Time next_look_ = absl::InfinitePast();
  bool wanted_ = false;                         // an inquiry
  absl::Time called_ = absl::InfiniteFuture();  // for a report
  absl::Time asked_ = absl::InfinitePast();     // when this rank's own query was requested
  absl::Time gather_until_ = absl::InfiniteFuture();
  absl::Time told_ = absl::InfinitePast();  // a report

  std::mutex observer_mutex_;  // held while it is called
  HangObserver* observer_ = nullptr;

  std::atomic<bool> failed_{false};
  std::atomic<bool> stop_{false};

  mutable std::mutex mutex_;
  Condition changed_;
  std::vector<std::function<void()>> wakes_;
  absl::Status failure_;              // to be reported
  bool leaving_ = false;              // to be reported
  bool asking_ = false;               // an inquiry is requested
  std::map<int, absl::Time> sought_;  // ranks, and when to request them (again)
  std::map<int, std::string> located_;
  absl::Status verdict_;
  std::vector<Gone> gone_;
  bool said_goodbye_ = false;
  bool everybody_left_ = false;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_WATCH_H_
