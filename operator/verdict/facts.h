// SPDX-License-Identifier: Apache-2.0
//
// What the verdict knows: of pods what they ask for, of nodes what they have, of profiles what they
// mean, and what runtimes report. Values only; what is not known is empty, and is no reason to
// blame anybody.
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
#include "fabric/discovery/observations.h"
#include "operator/not_done.h"
#include "operator/owner.h"
#include "operator/profiles/profile.h"
#include "operator/shared_value.h"
#include "operator/verdict/runtime_report.h"
#include "operator/verdict/shared_list.h"

namespace railhead::op::verdict {

// /dev/shm of a container by default: of containerd, Docker and CRI-O. With no more, NCCL's shared
// memory between GPUs ends with a bus error.
inline constexpr double kUsualSharedMemory = 64 << 20;

// A container that asks for RDMA.
struct ContainerFacts {
  std::string name;
  std::map<std::string, int64_t> devices;  // how many of each RDMA resource
  int64_t gpus = 0;
  // Variables with a value that is written out in the pod, for those that the verdict looks at.
  std::map<std::string, std::string> environment;
  // Surely subject to RLIMIT_MEMLOCK: it has no capability IPC_LOCK, or no use of it as non-root.
  bool memlock_applies = false;
  bool non_root = false;  // surely
  bool init = false;      // an init container; also one that stays as a sidecar
  // Bytes of /dev/shm by the pod's spec; nothing where it does not tell, or sets no limit.
  std::optional<double> shared_memory;
  bool shared_memory_assumed = false;  // it is what container runtimes give to who says nothing

  bool operator==(const ContainerFacts&) const = default;
  // Any order will do, to find those that are alike.
  auto Key() const {
    return std::tie(name, devices, gpus, environment, memlock_applies, non_root, init,
                    shared_memory, shared_memory_assumed);
  }
  bool operator<(const ContainerFacts& other) const { return Key() < other.Key(); }
};

struct PodFacts {
  std::string space;
  std::string name;
  std::string uid;
  std::optional<Owner> owner;  // nothing for a pod that somebody made by hand
  std::string gang;            // of pods that are scheduled together, by a label; mostly empty
  std::string revision;        // of the template that it was made from, where there are several
  absl::Time created = absl::InfiniteFuture();  // by the API server's clock; future: unknown
  std::string node;                             // empty until it is scheduled
  std::string address;
  bool finished = false;      // or about to go
  std::string unschedulable;  // the scheduler's message, while it finds no node
  absl::Time running_since = absl::InfiniteFuture();  // all containers of it

  bool admitted = false;              // has been through our admission
  std::string profile;                // by its stamp; empty for none
  int64_t generation = 0;             // of the profile then
  std::set<std::string> kept;         // variables that some container sets itself
  std::vector<NotDoneNote> not_done;  // by admission
  std::optional<int> rank;            // its completion index
  std::optional<int> world;           // pods of its Job, by the stamp

  bool host_network = false;
  // Its network interfaces, where they are known.
  std::optional<SharedValue<std::set<std::string>>> interfaces;
  int metrics_port = 0;  // 0: none
  SharedList<ContainerFacts> containers;

  bool operator==(const PodFacts&) const = default;
};

// What the agent publishes of a node, and the kubelet of its devices.
struct NodeFacts {
  std::map<std::string, int64_t> allocatable;  // of each RDMA resource
  std::map<std::string, int64_t> capacity;     // healthy or not
  bool announced = false;                      // its agent has written facts, and they can be read
  std::string fault;                           // why they cannot
  SharedList<fabric::SeenRail> rails;
  int gpus = 0;                    // that its agent sees
  std::string gpu_direct_trouble;  // why HCAs do not reach the GPUs' memory
  std::string link_layer;          // "InfiniBand", "Ethernet" or "mixed"
  std::string gpu_direct;          // "dmabuf", "peermem" or "none"
  std::optional<double> memlock;   // bytes; may be infinite
  // It belongs to somebody's pool of machines, of which there may be more when they are needed.
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
  // What it says now; null when there is none, or it is of no rank.
  std::shared_ptr<const RuntimeReport> report;
  // What its ranks have said of their start, of each the latest; null when none has. It stays when
  // a runtime has ended and its pod goes on: the pod's devices and limits are as they were.
  std::shared_ptr<const RuntimeReport> learned;
  bool heard = false;  // it has reported before, if not now
  // It has been asked since it started, so that what it has said was heard.
  bool from_start = true;
  // Without a report: for how long it has been asked for one in vain.
  absl::Duration silence = absl::ZeroDuration();
  // Where the scheduler finds no node for it: for how long that has been known.
  absl::Duration waiting = absl::ZeroDuration();
  // With one: for how long it has said the same, and how old it is.
  absl::Duration unchanged = absl::ZeroDuration();
  absl::Duration age = absl::ZeroDuration();
};

// The pods of a job, or one pod that is judged alone.
struct JobFacts {
  std::vector<JudgedPod> pods;  // by name
  // They work together and are all there, so that what differs between them is wrong. Not so while
  // a job is still being created.
  bool comparable = true;
  // That they are ranks of one program follows from what made them; else only from their reports.
  bool one_program = true;
  // HCAs that are in trouble since a moment ago, and may be back the next: node and device.
  std::set<std::pair<std::string, std::string>> just_lost = {};
};

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_FACTS_H_
