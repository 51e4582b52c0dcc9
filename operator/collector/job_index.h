// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_COLLECTOR_JOB_INDEX_H_
#define RAILHEAD_OPERATOR_COLLECTOR_JOB_INDEX_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/verdict/facts.h"

namespace railhead::op {

// To which job a pod belongs. Another owner of the same name is another job.
struct JobName {
  std::string space;
  std::string kind;  // of the owner; "Pod" for a pod without one, "PodGroup" for a gang
  std::string name;
  std::string uid;           // of the owner; of the pod where it is judged alone; empty for a gang
  std::string api = "";      // of the owner
  bool together = false;     // its pods work together, or may
  bool one_program = false;  // they surely do, and can be compared with each other

  // For queues and maps.
  std::string Key() const;
};

// The pods of an owner whose pods are ranks (an Indexed Job, a training operator's kind) are a job;
// else those of a gang are. Those of a StatefulSet may be ranks, or servers that know nothing of
// each other: their reports tell. What a DaemonSet, a Deployment or anybody else makes, and a Job
// without an index, has nothing to do with each other: such a pod is judged alone, under its
// owner's name.
JobName JobOf(const verdict::PodFacts& pod);

// Which pods are of which job. A job without pods is none. Not thread-safe.
class JobIndex {
 public:
  // The time is monotonic.
  void Add(const std::string& pod_key, const verdict::PodFacts& pod, absl::Time now);
  void Remove(const std::string& pod_key, const verdict::PodFacts& pod);

  struct Entry {
    JobName name;
    std::set<std::string> pods;  // keys
    absl::Time grown;            // when the last of them was added
  };
  // Null when there is none.
  const Entry* Find(const std::string& job) const;
  std::vector<std::string> Jobs() const;

 private:
  std::map<std::string, Entry> jobs_;  // by JobName::Key
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_JOB_INDEX_H_
