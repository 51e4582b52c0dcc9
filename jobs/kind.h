// SPDX-License-Identifier: Apache-2.0
//
// A kind of job: everything that depends on which controller created a pod. Each kind is a file,
// which reads what its controller writes into pods; kinds.h lists them, and job.h has the functions
// that use the list. Pure.
#ifndef RAILHEAD_JOBS_KIND_H_
#define RAILHEAD_JOBS_KIND_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "jobs/owner.h"
#include "kube/json.h"

namespace railhead::jobs {

struct Kind;

// Name of a job in the labels of its pods.
struct Identity {
  std::string name;
  std::optional<std::string> uid = std::nullopt;  // nullopt: the controller does not write it
  // Its pods have different controllers, which it owns: follow the owners upwards to the job.
  bool above_controllers = false;
};

// A job that its pods identify, and the part of it whose pods work together. Size and index count
// pods of the part.
struct Job {
  const Kind* kind = nullptr;  // never null
  std::string name;            // for users
  std::string whole;           // key of the job in its namespace
  std::string part;            // key of the part
  // Attempt of the part that a pod belongs to; pods of earlier attempts are being removed. Empty:
  // the controller does not number them.
  std::string attempt;
  std::optional<int> size;  // nullopt: not in the pods
  std::optional<int> index;
};

// A cause of a missing rank, as the annotation railhead.io/not-done contains it: REASON/WORD, and
// arguments. $0, $1, ... in the texts: arguments.
struct Cause {
  absl::string_view reason;  // "KindHasNoRanks" (operator/objects/not_done.h)
  absl::string_view word;    // stable
  size_t arguments;
  absl::string_view what;
  absl::string_view fix;
};

struct NoRank {
  const Cause* cause = nullptr;  // never null
  std::vector<std::string> arguments = {};
};

// A pod's place among the ranks of its job. Unknown values are absent or empty.
struct Rank {
  std::string job = {};                     // RAILHEAD_JOB: equal in all pods of the job
  std::optional<int> rank = std::nullopt;   // of the pod, from 0
  std::optional<int> world = std::nullopt;  // number of pods of the job
  std::string master = {};                  // host name of the pod with rank 0
  std::optional<int> index = std::nullopt;  // of the pod in its own Job
  std::optional<std::string> set_uid = {};  // if ranks count over several Jobs: of their owner
  // If the pod's containers read the number of pods from another object: the valueFrom of that
  // variable. Else null.
  kube::Json world_source = nullptr;
  std::vector<NoRank> missing = {};  // expected but unknown values, with causes
};

// A pod, and what all kinds read of it.
struct Pod {
  const kube::Json& json;
  Owner owner;  // OwnerOf
  std::optional<Job> job;
};

struct Kind {
  // Relation of the pods of one controller, from the least to the most alike.
  enum class Pods {
    kNoJob,                // independent, or replicas of a service
    kUnknown,              // may be parts of one program
    kPerhapsOneProgram,    // ranks, or independent servers; their reports show which
    kOneProgramIfIndexed,  // ranks, if they have a completion index
    kOneProgram,           // ranks
  };
  // Consequence of evicting a pod before it has run.
  enum class Eviction {
    kMadeAgain,  // it is recreated, without other effects
    // It counts as a failure, or ends pods beside it, unless the owner declares otherwise
    // (railhead.io/evictable).
    kMayCost,
    kIsTheEnd,  // it is not recreated
  };

  absl::string_view name;            // of the controller's kind
  absl::string_view api_group = "";  // of the controller, with a slash behind it; empty: any

  // Returns the job that the pod, or its template, names; nullopt if it is of another kind.
  std::optional<Identity> (*identity)(const kube::Json& pod) = nullptr;
  // Completes a Job whose part is the whole. Returns false if the pod does not identify its part.
  bool (*part)(const kube::Json& pod, Job& job) = nullptr;
  // Returns the pod's rank, or why it has none; nullopt if it is of another kind. Only for pods of
  // a Job of this kind, if it has an identity.
  std::optional<Rank> (*rank)(const Pod& pod) = nullptr;
  absl::Span<const Cause* const> causes = {};  // all that `rank` returns

  Pods pods = Pods::kUnknown;
  // False if another kind's controller creates the pods.
  bool creates_pods = true;
  // All pods of a part have one template, so none of them lacks RDMA if another has it.
  bool one_template = false;
  // mpirun starts the ranks of all its pods; of other kinds, see mpirun.h.
  bool by_mpirun = false;
  // Suffix of the first pod in which a launcher starts ranks, after the job's name.
  // Empty: the kind has no launchers.
  absl::string_view first_worker = "";

  Eviction eviction = Eviction::kMayCost;
  absl::string_view evictable = "";  // fix that makes evictions free of cost
  // Fix, if a pod may be created only once the previous one runs: then a gang never completes while
  // its first pod is gated. Empty: all pods are created at once.
  absl::string_view at_once = "";
  // When the parts of a job may be created one after the other. Empty: never.
  absl::string_view parts_in_order = "";
  // Annotations by which the controller itself keeps some pods in one domain, and creates the
  // others only once the first has a node.
  absl::Span<const absl::string_view> exclusive_topology = {};
  // Labels by which schedulers know the pods that are placed together.
  absl::Span<const absl::string_view> group_labels = {};
};

}  // namespace railhead::jobs

#endif  // RAILHEAD_JOBS_KIND_H_
