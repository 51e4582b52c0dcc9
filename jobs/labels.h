// SPDX-License-Identifier: Apache-2.0
//
// Labels and annotations of pods about jobs that Railhead defines, and the completion index, which
// several kinds have.
#ifndef RAILHEAD_JOBS_LABELS_H_
#define RAILHEAD_JOBS_LABELS_H_

namespace railhead::jobs {

// Annotation, set by users: pods of one namespace with the same value have one secret.
inline constexpr char kJob[] = "railhead.io/job";
// Annotation of a Job's template: number of its pods, which becomes WORLD_SIZE.
inline constexpr char kWorldSize[] = "railhead.io/world-size";
// Annotation of a pod or a Job's template: which Jobs of a JobSet's replicatedJob form one job.
// "replicatedjob" (the default): all of them; "job": each on its own.
inline constexpr char kRankGroup[] = "railhead.io/rank-group";
// Annotation of a launcher's template: "openmpi", or "hydra" (MPICH, Intel MPI).
inline constexpr char kLauncher[] = "railhead.io/launcher";
inline constexpr char kGangLabel[] = "railhead.io/gang";      // a name, or "true": all of one owner
inline constexpr char kGangSize[] = "railhead.io/gang-size";  // annotation: in pods
inline constexpr int kMostPods = 100'000;                     // of a gang

inline constexpr char kCompletionIndex[] = "batch.kubernetes.io/job-completion-index";

}  // namespace railhead::jobs

#endif  // RAILHEAD_JOBS_LABELS_H_
