// SPDX-License-Identifier: Apache-2.0
//
// A simulated cluster as a value, for random histories: nodes, job controllers, a scheduler that
// binds, and a failing API server. The gang machine may see it with delay.
#ifndef RAILHEAD_OPERATOR_GANGS_TESTING_GANG_WORLD_H_
#define RAILHEAD_OPERATOR_GANGS_TESTING_GANG_WORLD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/cluster/stored_pod.h"
#include "operator/gangs/cluster_room.h"
#include "operator/gangs/gang_machine.h"
#include "operator/gangs/node_tree.h"

namespace railhead::op::gangs::testing {

class GangWorld {
 public:
  explicit GangWorld(uint32_t seed);

  // Performs one random event, one round of the leader, and one of controllers and scheduler.
  void Step();
  // Stops faults; gangs that run completely end soon.
  void CalmDown();
  bool AllDone() const { return jobs_.empty(); }

  // Returns a violated invariant; empty if there is none.
  const std::string& wrong() const { return wrong_; }
  std::string Describe() const;

  // Counts of events, so that a test can verify its coverage.
  struct Tally {
    int released = 0, whole = 0, evicted = 0, refused = 0, lost_answers = 0, restarts = 0,
        ended = 0;
  };
  const Tally& tally() const { return tally_; }

 private:
  struct Job {
    std::string kind;
    int size = 0;
    int hcas = 8;
    int priority = 0;
    bool evictable = false;
    int failures_left = 0;            // of a Job; more failures end it
    std::map<int, std::string> pods;  // names of live pods, by index
    std::map<int, int> made_at;       // by index: step in which a missing pod is created
    std::set<int> succeeded;
    int whole_for = 0;  // steps
  };
  enum class Fault { kNone, kRefused, kError, kAway };

  int Draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  void Wrong(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }
  void SomethingHappens();
  void Arrive();
  void MakePod(const std::string& name, Job& job, int index);
  void PodIsGone(const std::string& name, bool counts, bool by_us);
  void GoOn();  // job controllers
  void Bind();  // scheduler
  void Lead();  // gang machine
  Result Do(const Work& work, const Action& action);
  bool Apply(const Action& action);
  void Look();  // checks invariants
  int UsedOn(const std::string& node, bool sent) const;
  std::string NodeOf(const StoredPod& pod) const;
  void BuildRoom();

  std::mt19937 random_;
  absl::Time now_ = absl::UnixEpoch();
  int step_ = 0;
  int serial_ = 0;
  bool calm_ = false;
  std::vector<NodeValue> all_nodes_;
  std::set<std::string> gone_, cordoned_;
  std::map<std::string, StoredPod> pods_;  // by name
  std::map<std::string, Job> jobs_;
  std::map<std::string, int> outsiders_;  // names of other pods, and the step of their end
  std::vector<PodValue> seen_;            // what the watches show
  std::set<std::string> denied_;          // owners whose pods a webhook rejects
  int away_until_ = 0;                    // step until which the server is away
  NodeTree tree_;
  std::unique_ptr<ClusterRoom> room_;
  std::unique_ptr<GangMachine> machine_;
  Tally tally_;
  std::string wrong_;
};

}  // namespace railhead::op::gangs::testing

#endif  // RAILHEAD_OPERATOR_GANGS_TESTING_GANG_WORLD_H_
