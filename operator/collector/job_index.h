// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_COLLECTOR_JOB_INDEX_H_
#define RAILHEAD_OPERATOR_COLLECTOR_JOB_INDEX_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/verdict/facts.h"

namespace railhead::op {

// To which job a pod belongs: that of its owner, or a job of its own. Another owner of the same
// name is another job.
struct JobName {
  std::string space;
  std::string kind;  // "Pod" for a pod without an owner
  std::string name;
  std::string uid;  // of the owner, or the pod

  // For queues and maps.
  std::string Key() const;
};

JobName JobOf(const verdict::PodFacts& pod);

// Which pods are of which job. A job without pods is none. Not thread-safe.
class JobIndex {
 public:
  void Add(const std::string& pod_key, const verdict::PodFacts& pod);
  void Remove(const std::string& pod_key, const verdict::PodFacts& pod);

  struct Entry {
    JobName name;
    std::set<std::string> pods;  // keys
  };
  // Null when there is none.
  const Entry* Find(const std::string& job) const;
  std::vector<std::string> Jobs() const;

 private:
  std::map<std::string, Entry> jobs_;  // by JobName::Key
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_JOB_INDEX_H_
