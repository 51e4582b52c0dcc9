// SPDX-License-Identifier: Apache-2.0
//
// A pod of a gang of two Jobs of a JobSet, as the controllers make it, as far as tests need it.
#ifndef RAILHEAD_JOBS_TESTING_JOB_SET_POD_H_
#define RAILHEAD_JOBS_TESTING_JOB_SET_POD_H_

#include "absl/strings/str_cat.h"
#include "jobs/labels.h"
#include "kube/json.h"

namespace railhead::jobs {

// The pod `index` of the Job `job`; the gang has `size` pods.
inline kube::Json JobSetPod(int job, int index, int size = 8) {
  return {
      {"metadata",
       {{"namespace", "train"},
        {"name", absl::StrCat("js-workers-", job, "-", index)},
        {"uid", absl::StrCat("u-", job, "-", index)},
        {"labels",
         {{kGangLabel, "true"},
          {"jobset.sigs.k8s.io/jobset-name", "js"},
          {"jobset.sigs.k8s.io/jobset-uid", "1234"},
          {"jobset.sigs.k8s.io/replicatedjob-name", "workers"},
          {"jobset.sigs.k8s.io/replicatedjob-replicas", "2"},
          {"jobset.sigs.k8s.io/job-index", absl::StrCat(job)}}},
        {"annotations", {{kCompletionIndex, absl::StrCat(index)}, {kGangSize, absl::StrCat(size)}}},
        {"ownerReferences",
         {{{"kind", "Job"}, {"uid", absl::StrCat("job-", job)}, {"controller", true}}}}}},
      {"spec", kube::Json::object()}};
}

}  // namespace railhead::jobs

#endif  // RAILHEAD_JOBS_TESTING_JOB_SET_POD_H_
