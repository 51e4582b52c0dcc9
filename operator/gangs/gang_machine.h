// SPDX-License-Identifier: Apache-2.0
//
// What is to be done for all gangs, and what is remembered of them from one round to the next, as
// a value: no I/O, no clock, no threads. Whoever leads calls Next(), carries out what it says, and
// tells Happened() what came of it. Not thread-safe.
#ifndef RAILHEAD_OPERATOR_GANGS_GANG_MACHINE_H_
#define RAILHEAD_OPERATOR_GANGS_GANG_MACHINE_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/gangs/attempts.h"
#include "operator/gangs/cluster_room.h"
#include "operator/gangs/gang.h"
#include "operator/gangs/planner.h"
#include "operator/gangs/refusals.h"
#include "operator/gangs/seats.h"

namespace railhead::op::gangs {

// One call of the API, about one pod.
struct Action {
  enum class Kind {
    kRelease,   // sends it to its node (ReleasePatch)
    kUngate,    // takes its gate away, and says nothing of a node (UngatePatch)
    kTellRank,  // tells its rank a pod that the scheduler has placed by itself (RankPatch)
    kFail,      // makes it fail (FailurePatch)
    kEvict,     // has it made again
    kLook,      // finds out whether it was released: nobody answered
  };
  Kind kind = Kind::kRelease;
  // The pod; its node, but for kUngate and kFail; its rank, if that is known; the master.
  Assignment assignment;
  std::string placement;  // of kRelease and kLook: the decision's name
  std::string why;        // of kFail: for people
};

// What is to be done for one gang: the first action, and if that works the others. A server that
// refuses all of them so refuses a whole gang, and not a half.
struct Work {
  std::string gang;  // its key
  std::vector<Action> actions;
  bool again = false;  // the last time it failed
};

struct Result {
  enum class Outcome {
    kDone,
    kNotDone,  // the server says so, in these words; kLook: the pod still waits
    kUnknown,  // nobody has answered, and nobody says what came of it
    kNotSent,
  };
  Outcome outcome = Outcome::kNotSent;
  std::string words;
};

// What people are to be told of a gang's pod.
struct Notice {
  enum class Kind {
    kBlocked,   // something is in the way that the gang cannot settle
    kEvicted,   // it is made again, and placed anew
    kOrdered,   // its gang's pods are made one after the other, so they do not wait
    kTimedOut,  // its gang does not wait any more
  };
  Kind kind = Kind::kBlocked;
  std::string gang;  // its key
  PodValue pod;
  std::string text;
};

class GangMachine {
 public:
  struct Options {
    absl::Duration reserve_after = absl::InfiniteDuration();  // planner.h
    std::function<bool(const Gang&)> explain;                 // planner.h
  };
  struct Step {
    std::vector<Decision> decisions;
    std::vector<Work> works;  // gangs that have not failed come first
    std::vector<Notice> notices;
    absl::Time look_again;  // when time alone changes something; InfiniteFuture: never
  };

  // An owner that makes its pods at once has made them within this time.
  static constexpr absl::Duration kUntilOrdered = absl::Seconds(30);
  // The longest time for which releases wait while kube-scheduler may be placing new pods of a
  // PodGroup. Otherwise both could choose the same nodes, and one gang would be half placed.
  static constexpr absl::Duration kUntilScheduled = absl::Seconds(10);
  // What depends on the time alone is looked at so often while there are gangs that do not run.
  static constexpr absl::Duration kLookAgain = absl::Seconds(10);
  // So many gangs that failed are tried again in one round: each may take as long as a call may.
  static constexpr size_t kTriesAgain = 8;

  explicit GangMachine(Options options) : options_(std::move(options)) {}

  // All pods and nodes as they are now. `room` is of the nodes, and up to date afterwards.
  Step Next(const std::vector<PodValue>& pods, ClusterRoom& room, absl::Time now);
  // What came of the work, an action a result; and what is to be told of it.
  std::vector<Notice> Happened(const Work& work, const std::vector<Result>& results,
                               absl::Time now);
  // When what has failed is tried again; InfiniteFuture: nothing has.
  absl::Time NextTry() const { return attempts_.NextDue(); }
  // This replica does not lead: what it knows others find in the pods, or do not need.
  void Forget();

 private:
  // A pod that was sent to a node, while the watches do not show it.
  struct Sent {
    Promise promise;
    std::string gang;
    bool known = true;  // else nobody knows whether the server has done it
  };

  void ForgetWhatIsShown(const std::vector<PodValue>& pods);
  Promises PromisesMade() const;
  void EndStuckPods(const std::vector<PodValue>& pods, const ClusterRoom& room, absl::Time now,
                    Step& step);
  void LookForLostAnswers(const std::vector<PodValue>& pods, absl::Time now, Step& step);
  void EndOrdered(const std::vector<Decision>& decisions, absl::Time now, Step& step);
  Work EndWait(const Decision& decision) const;
  void LeaveToScheduler(const Decision& decision, const ClusterRoom& room, Step& step) const;
  absl::Time HeldUntil(absl::Time scheduling_until, absl::Time now);
  void KeepBounds(size_t tries_again, std::vector<Work>& works) const;

  const Options options_;
  std::map<std::string, Sent> sent_;                // by the pod's uid
  std::set<std::string> given_up_;                  // uids of pods whose wait has been ended
  std::set<std::string> ranked_;                    // and of those that were told their ranks
  std::map<std::string, absl::Time> alone_;         // uids, since when nothing is there beside them
  absl::Time held_since_ = absl::InfiniteFuture();  // releases, for kube-scheduler
  Refusals refusals_;
  Attempts attempts_;
  Seats seats_;
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_GANG_MACHINE_H_
