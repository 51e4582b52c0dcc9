// SPDX-License-Identifier: Apache-2.0
//
// Inputs of the diagnosis: requests of pods, devices of nodes, meaning of profiles, reports of
// runtimes. Values only. Unknown values are empty, and never lead to a finding.
#ifndef RAILHEAD_OPERATOR_VERDICT_FACTS_H_
#define RAILHEAD_OPERATOR_VERDICT_FACTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/shared_list.h"
#include "base/shared_value.h"
#include "fabric/node_facts/seen_rail.h"
#include "jobs/owner.h"
#include "operator/objects/not_done.h"
#include "operator/profiles/profile.h"
#include "operator/verdict/runtime_report.h"

namespace railhead::op::verdict {

// Default size of /dev/shm in containers, in bytes: containerd, Docker and CRI-O. With no more,
// NCCL's shared memory between GPUs fails with a bus error.
inline constexpr double kUsualSharedMemory = 64 << 20;

// A container that requests RDMA.
struct ContainerFacts {
  std::string name;
  std::map<std::string, int64_t> devices;  // number of each RDMA resource
  int64_t gpus = 0;
  // Watched variables with a literal value in the pod.
  std::map<std::string, std::string> environment;
  // Certainly subject to RLIMIT_MEMLOCK: lacks IPC_LOCK, or cannot use it as non-root.
  bool memlock_applies = false;
  bool non_root = false;  // certainly
  bool init = false;      // an init container that ends before the next starts: no sidecar
  // Bytes of /dev/shm by the pod's spec; nullopt if unknown or unlimited.
  std::optional<double> shared_memory;
  bool shared_memory_assumed = false;  // the container runtime's default

  bool operator==(const ContainerFacts&) const = default;
  // Arbitrary order, to find equal values.
  auto Key() const {
    return std::tie(name, devices, gpus, environment, memlock_applies, non_root, init,
                    shared_memory, shared_memory_assumed);
  }
  bool operator<(const ContainerFacts& other) const { return Key() < other.Key(); }
};

// Fields that the pods of a job mostly share.
struct PodTerms {
  std::optional<jobs::Owner> owner;  // nullopt for a pod created by hand
  std::string gang;                  // label of pods scheduled together; mostly empty
  // If its Job forms one job with the other Jobs of its JobSet's replicatedJob: the name of that
  // job, as in RAILHEAD_JOB, and the JobSet's uid, if known.
  std::string replicated_job;
  std::string job_set_uid;
  std::string revision;               // of the template, if there are several
  std::string profile;                // from its annotation; empty: none
  int64_t generation = 0;             // of the profile at admission
  std::set<std::string> kept;         // variables that a container sets itself
  std::vector<NotDoneNote> not_done;  // from admission
  // Its network interfaces, if known.
  std::optional<std::set<std::string>> interfaces;
  SharedList<ContainerFacts> containers;

  bool operator==(const PodTerms&) const = default;
  // Arbitrary order, to find equal values.
  auto Key() const {
    return std::tie(owner, gang, replicated_job, job_set_uid, revision, profile, generation, kept,
                    not_done, interfaces, containers);
  }
  bool operator<(const PodTerms& other) const { return Key() < other.Key(); }
};

struct PodFacts {
  std::string space;
  std::string name;
  std::string uid;
  SharedValue<PodTerms> terms;
  absl::Time created = absl::InfiniteFuture();  // API server's clock; future: unknown
  std::string node;                             // empty until scheduled
  std::string address;
  bool finished = false;                              // or being deleted
  std::string unschedulable;                          // scheduler's message while it finds no node
  absl::Time running_since = absl::InfiniteFuture();  // all its containers with RDMA

  bool admitted = false;     // has passed admission
  std::optional<int> rank;   // in its job: completion index, or counted over a replicatedJob
  std::optional<int> world;  // pods of its job, from the annotation

  bool host_network = false;
  int metrics_port = 0;  // 0: none

  bool operator==(const PodFacts&) const = default;
};

// Facts of a node: published by the agent, and devices as kubelet reports them.
struct NodeFacts {
  std::map<std::string, int64_t> allocatable;  // per RDMA resource
  std::map<std::string, int64_t> capacity;     // healthy or not
  bool announced = false;                      // the agent's facts exist and are readable
  std::string fault;                           // why they are not readable
  SharedList<fabric::SeenRail> rails;
  int gpus = 0;                    // as the agent sees them
  std::string gpu_direct_trouble;  // why HCAs cannot access GPU memory
  std::string link_layer;          // "InfiniBand", "Ethernet" or "mixed"
  std::string gpu_direct;          // "dmabuf", "peermem" or "none"
  std::optional<double> memlock;   // bytes; may be infinite
  // The node belongs to a pool, which may grow on demand.
  bool of_a_pool = false;

  bool operator==(const NodeFacts&) const = default;
};

struct ProfileFacts {
  int64_t generation = 0;
  Fabric fabric = Fabric::kInfiniBand;
  RequireRdma require_rdma = RequireRdma::kWarn;

  bool operator==(const ProfileFacts&) const = default;
};

struct JudgedPod {
  std::shared_ptr<const PodFacts> pod;  // never null
  // Current report; null if there is none or it has no rank.
  std::shared_ptr<const RuntimeReport> report;
  // Latest report of each rank's start; null if none. Kept when a runtime has ended and its pod
  // continues, since devices and limits of the pod are unchanged.
  std::shared_ptr<const RuntimeReport> learned;
  bool heard = false;  // has reported before
  // Scraped since its start, so no report was missed.
  bool from_start = true;
  // Without a report: how long scrapes have failed.
  absl::Duration silence = absl::ZeroDuration();
  // If the scheduler finds no node: how long that has been known.
  absl::Duration waiting = absl::ZeroDuration();
  // With a report: how long it has been unchanged, and its age.
  absl::Duration unchanged = absl::ZeroDuration();
  absl::Duration age = absl::ZeroDuration();
};

// The pods of a job, or one pod that is diagnosed alone.
struct JobFacts {
  std::vector<JudgedPod> pods;  // by name
  // They work together and all exist, so differences between them are faults. False while a job is
  // being created.
  bool comparable = true;
  // Its owner implies that they are ranks of one program; else only their reports show it.
  bool one_program = true;
  // HCAs that failed recently and may recover at once: node and device.
  std::set<std::pair<std::string, std::string>> just_lost = {};
};

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_FACTS_H_
