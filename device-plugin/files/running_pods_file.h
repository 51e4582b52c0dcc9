// SPDX-License-Identifier: Apache-2.0
//
// Which pods have a cgroup, and a file with those that have had one: a pod that had a cgroup since
// the node's boot and has none now has ended. Kubelet lists no devices of a pod that has them in
// ordinary init containers only, so this is how the agent knows that such a pod is gone.
#ifndef RAILHEAD_DEVICE_PLUGIN_FILES_RUNNING_PODS_FILE_H_
#define RAILHEAD_DEVICE_PLUGIN_FILES_RUNNING_PODS_FILE_H_

#include <set>
#include <string>

#include "device-plugin/holdings/holdings.h"

namespace railhead::device_plugin {

// Reads the uids from kubelet's cgroups in /sys/fs/cgroup of the host (either cgroup driver and
// version). `root`: of the host's /sys. Nullopt if kubelet has no cgroups there.
RunningPods ReadRunningPods(const std::string& root);

// Not thread-safe.
class RunningPodsFile {
 public:
  // `boot`: identifies the node's boot, as a pod's cgroup is missing for some time after it; "" if
  // unknown, then nothing is stored.
  RunningPodsFile(std::string folder, std::string boot)
      : folder_(std::move(folder)), boot_(std::move(boot)) {}

  // Returns pods of this boot (KnownPod::has_run) in the file; none if it cannot be read.
  PodsByUid Load();

  // Stores those that have run. An error is logged once: without the file, devices of such pods
  // stay held until kubelet's next allocation.
  void Save(const PodsByUid& pods);

 private:
  std::string Path() const { return folder_ + "/running-pods"; }

  const std::string folder_;
  const std::string boot_;
  std::set<std::string> saved_;
  std::string last_error_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_FILES_RUNNING_PODS_FILE_H_
