// SPDX-License-Identifier: Apache-2.0
//
// Jobs for diagnosis: which pods work together, and an index of pods by job. Used by Collector.
#ifndef RAILHEAD_OPERATOR_COLLECTOR_JOB_INDEX_H_
#define RAILHEAD_OPERATOR_COLLECTOR_JOB_INDEX_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/verdict/facts.h"

namespace railhead::op {

inline constexpr char kGangKind[] = "PodGroup";

// The job of a pod. Another owner of the same name is another job.
struct JobName {
  std::string space;
  std::string kind;  // of the owner; "Pod": no owner; kGangKind: a gang
  std::string name;
  // Uid of the owner; of the pod if diagnosed alone; of the JobSet, if known, for several Jobs;
  // empty for a gang.
  std::string uid;
  std::string api = "";      // of the owner; empty: the pods have several owners, or none
  bool together = false;     // its pods work together, or may
  bool one_program = false;  // its pods certainly run one program and can be compared

  // Returns the key for queues and maps.
  std::string Key() const;
};

// Determines the job of a pod. The pods of an owner whose pods are ranks (an Indexed Job, a kind of
// the training operator) are one job, as are those of all Jobs of a JobSet's replicatedJob, unless
// each Job has separate ranks; else the pods of a gang are. Pods of a StatefulSet may be ranks or
// independent servers; their reports show which. Pods of a DaemonSet, a Deployment, any other
// owner, or a Job without index are independent: each is diagnosed alone, under its owner's name.
JobName JobOf(const verdict::PodFacts& pod);

// Index of pods by job. Contains only jobs with pods. Not thread-safe.
class JobIndex {
 public:
  // `now` is monotonic.
  void Add(const std::string& pod_key, const verdict::PodFacts& pod, absl::Time now);
  void Remove(const std::string& pod_key, const verdict::PodFacts& pod);

  struct Entry {
    JobName name;
    std::set<std::string> pods;  // keys
    absl::Time grown;            // last time a pod was added
  };
  // Null if absent.
  const Entry* Find(const std::string& job) const;
  std::vector<std::string> Jobs() const;

 private:
  std::map<std::string, Entry> jobs_;  // by JobName::Key
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_JOB_INDEX_H_
