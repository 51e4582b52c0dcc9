// SPDX-License-Identifier: Apache-2.0
//
// State machine of all gangs: computes the actions of each round from pods, nodes and its own
// memory. A value: no I/O, no clock, no threads. The leader calls Next(), executes the actions, and
// passes the results to Happened(). `now` is from a clock that never jumps. Not thread-safe.
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

// One API call for one pod.
struct Action {
  enum class Kind {
    kRelease,   // sends the pod to its node (ReleasePatch)
    kUngate,    // removes the gate without choosing a node (UngatePatch)
    kTellRank,  // gives the rank to a pod that the scheduler placed (RankPatch)
    kFail,      // makes the pod fail (FailurePatch)
    kEvict,     // evicts the pod, so that it is recreated
    kLook,      // after a lost response: checks whether the pod was released
  };
  Kind kind = Kind::kRelease;
  // The pod, its rank if known, the master, and its node except for kUngate and kFail.
  Assignment assignment;
  std::string placement;  // of kRelease and kLook: name of the decision
  std::string why;        // of kFail: message for users
};

// Actions for one gang: the first one and, if it succeeds, the others. If the server rejects them
// all, the whole gang is rejected, not half of it.
struct Work {
  std::string gang;  // its key
  std::vector<Action> actions;
  bool again = false;  // failed last time
};

struct Result {
  enum class Outcome {
    kDone,
    kNotDone,  // rejected, with the server's message; kLook: the pod is gated
    kUnknown,  // no response, and the result is unknown
    kNotSent,
  };
  Outcome outcome = Outcome::kNotSent;
  std::string words;
};

// Notice to users about a gang's pod.
struct Notice {
  enum class Kind {
    kBlocked,   // an obstacle that the gang machine cannot resolve
    kEvicted,   // it is recreated and placed again
    kOrdered,   // the gang's pods are created one after the other, so they do not wait
    kTimedOut,  // its gang no longer waits
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
    std::vector<Work> works;  // gangs that did not fail come first
    std::vector<Notice> notices;
    absl::Time look_again;  // when time changes something; InfiniteFuture: never
  };

  // Time in which an owner that creates its pods at once has created them.
  static constexpr absl::Duration kUntilOrdered = absl::Seconds(30);
  // Maximum delay of releases while kube-scheduler may be placing new pods of a PodGroup. Otherwise
  // both could choose the same nodes, and one gang would be half placed.
  static constexpr absl::Duration kUntilScheduled = absl::Seconds(10);
  // Interval of rounds for time-dependent decisions while some gangs do not run.
  static constexpr absl::Duration kLookAgain = absl::Seconds(10);
  // Maximum number of failed gangs retried per round, since each may take as long as an API call.
  static constexpr size_t kTriesAgain = 8;

  explicit GangMachine(Options options) : options_(std::move(options)) {}

  // Computes the next step from all current pods and nodes. `room`: of these nodes; updated.
  // `stamps_ahead`: how far the clock that stamps objects with times is ahead of `now`; it may
  // change.
  Step Next(const std::vector<PodValue>& pods, ClusterRoom& room, absl::Time now,
            absl::Duration stamps_ahead = absl::ZeroDuration());
  // Records the results of the work, one per action, and returns notices.
  std::vector<Notice> Happened(const Work& work, const std::vector<Result>& results,
                               absl::Time now);
  // Returns the time of the next retry; InfiniteFuture if nothing failed.
  absl::Time NextTry() const { return attempts_.NextDue(); }
  // Call after losing leadership: the next leader finds all it needs in the pods.
  void Forget();

 private:
  // A pod that was sent to a node, until the watches show it.
  struct Sent {
    Promise promise;
    std::string gang;
    bool known = true;  // false: it is unknown whether the server did it
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
  std::map<std::string, Sent> sent_;         // by the pod's uid
  std::set<std::string> given_up_;           // uids of pods whose wait was ended
  std::set<std::string> ranked_;             // uids of pods that were given their ranks
  std::map<std::string, absl::Time> alone_;  // by uid: time since which nothing is beside them
  std::string reserves_;  // key of the gang for which nodes are reserved; empty: none
  absl::Time held_since_ = absl::InfiniteFuture();  // releases, for kube-scheduler
  Refusals refusals_;
  Attempts attempts_;
  Seats seats_;
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_GANG_MACHINE_H_
