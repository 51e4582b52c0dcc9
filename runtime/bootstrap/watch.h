// SPDX-License-Identifier: Apache-2.0
//
// Keeps an eye on the job once it runs. A thread of its own holds the tree's connections: when a
// rank dies or announces that it cannot go on, its neighbours in the tree tell rank 0, and that
// tells everybody; the first such news is the job's verdict, the same on all ranks (node.h).
//
// While nobody has died, a witness may look after this rank from time to time; where it stands
// still, everybody is asked what they are doing (inquiry.h).
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_WATCH_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_WATCH_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/condition.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/links.h"
#include "runtime/bootstrap/node.h"
#include "runtime/bootstrap/witness.h"
#include "runtime/net/fd.h"

namespace railhead::bootstrap {

// Thread-safe.
class Watch {
 public:
  // Takes the connections of `bootstrap` over and starts to watch them.
  static absl::StatusOr<std::unique_ptr<Watch>> Start(Bootstrap bootstrap);

  // Ends the watch; the connections close, which the other ranks take for this rank's death unless
  // everybody has said goodbye.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Becomes true when the job has failed, for busy loops.
  const std::atomic<bool>& failed() const { return failed_; }

  // Why the job has failed; OK while it has not.
  absl::Status verdict() const;

  // Readable from the moment the job has failed. Never read from it.
  int event_fd() const { return event_.get(); }

  // Tells everybody that this rank cannot go on, and waits a moment for the job's verdict: this
  // very text, or an earlier one of another rank (which is then probably its cause). Returns it.
  absl::Status Announce(const absl::Status& failure);

  // From now on this one is asked; null: none. Not from two threads at once. When it returns, the
  // one before is not asked any more.
  void Attend(Witness* witness);

  // Asks what everybody is doing, as soon as that is not known from a moment ago; the witness will
  // hear.
  void Ask();

  // Where a rank can be reached, as it says itself (Bootstrap::SetPlace); nothing while that is not
  // known yet. It is asked then, and located_fd stirs when any answer has come.
  std::optional<std::string> Locate(int rank);
  // Readable when places have become known, until ClearLocated.
  int located_fd() const { return located_event_.get(); }
  void ClearLocated();

  // Says that this rank needs nobody any more, and waits until all have said so or the job has
  // failed (true), or the deadline has passed (false). Whatever the deadline, what it says is on
  // its way when it returns. May be called again.
  bool Goodbye(absl::Time deadline);

  // Ranks that are known to be gone, be it in peace, and after the job has failed as well; the
  // first to be known first.
  std::vector<Gone> gone() const;

 private:
  Watch(Node node, Links links, net::Fd event, net::Fd wake, net::Fd located);

  void Run();
  // Looks for those that are looked for. Returns when to do so again, for an answer may get lost
  // where a rank has left on its way.
  absl::Time Search(absl::Time now);
  // Does what the time has come for in an inquiry. Returns when that is to be done again.
  absl::Time Inquire(absl::Time now);
  // Tells the witness what has been reported.
  void Hear(absl::Time now);
  // Hands what the owner has asked for to the node.
  void TakeWishes();
  // Makes known on this rank what has come of it.
  void Publish();
  void Wake();

  net::Fd event_;
  net::Fd wake_;
  net::Fd located_event_;

  // The thread's own.
  Node node_;
  Links links_;
  absl::Time next_look_ = absl::InfinitePast();
  bool wanted_ = false;                         // an inquiry
  absl::Time called_ = absl::InfiniteFuture();  // for a report
  absl::Time gather_until_ = absl::InfiniteFuture();
  absl::Time told_ = absl::InfinitePast();  // a report

  std::mutex witness_mutex_;  // held while it is asked
  Witness* witness_ = nullptr;

  std::atomic<bool> failed_{false};
  std::atomic<bool> stop_{false};

  mutable std::mutex mutex_;
  Condition changed_;
  absl::Status failure_;              // what this rank announces
  bool leaving_ = false;              // whether it says goodbye
  bool asking_ = false;               // whether it asks what everybody is doing
  std::map<int, absl::Time> sought_;  // ranks, and when to ask them (again)
  std::map<int, std::string> located_;
  absl::Status verdict_;
  std::vector<Gone> gone_;
  bool said_goodbye_ = false;
  bool everybody_left_ = false;

  std::thread thread_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_WATCH_H_
