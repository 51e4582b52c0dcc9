// SPDX-License-Identifier: Apache-2.0
//
// Gives each job whose pods hold HCAs its own secret, on a separate thread: kubelet is served with
// or without an API server. Used by Agent.
//
//  1. Allocate: the container gets an empty folder (files/secret_folders.h).
//  2. Kubelet's allocation file gives the uid of the pod that got that folder; its PodResources API
//     lists the pods that hold these devices; the API server gives the uid and job of each.
//  3. The key that derives from the master key, namespace and job (grant/job_key.h) goes into the
//     folder, or the reason why the pod belongs to no job.
//
// A folder whose pod is not known for certain stays empty.
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_JOB_SECRETS_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_JOB_SECRETS_H_

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/kubelet_checkpoint.h"
#include "device-plugin/files/secret_folders.h"
#include "kube/client.h"
#include "kube/json.h"

namespace railhead::device_plugin {

// Returns the pods that hold devices which kubelet gave to the pod with this uid. Pure. More than
// one if kubelet still lists a pod whose devices it has given away: only the API server knows.
std::set<PodName> PodsThatMayHave(const std::string& uid,
                                  const std::vector<CheckpointEntry>& checkpoint,
                                  const std::vector<ContainerDevices>& listed);

// Returns the names of the folders of these entries (EntriesInUse). Pure.
std::set<std::string> SecretFoldersOf(const std::vector<CheckpointEntry>& entries);

class JobSecrets {
 public:
  struct Options {
    std::string folder;  // of the agent, beside kubelet's sockets
    std::string kubelet_dir;
    std::string pod_resources_socket;
    std::string master_key_file;
    std::chrono::milliseconds pace{100};    // between looks for the pod of a new folder
    std::chrono::milliseconds soon{30000};  // after that, `later` between looks
    std::chrono::milliseconds later{10000};
  };

  // `api` must outlive it. An unusable master key is logged, not an error.
  JobSecrets(Options options, kube::Api* api);
  // Returns after the call in progress.
  ~JobSecrets();
  JobSecrets(const JobSecrets&) = delete;
  JobSecrets& operator=(const JobSecrets&) = delete;

  // All following methods are thread-safe and do not wait for the server.

  // Returns the host path of a new folder; "" without a usable master key, as no secret would come.
  std::string NewFolder();

  bool HasFoldersUntil(absl::Time limit) const { return folders_.HasFoldersUntil(limit); }
  // Removes the folders that are not `used` and were last changed at or before `limit`.
  absl::Status Collect(const std::set<std::string>& used, absl::Time limit) {
    return folders_.Collect(used, limit);
  }

 private:
  // Logs when what is wrong changes.
  absl::StatusOr<std::string> MasterKey();
  void Run();
  // Fills the folders whose pods are known.
  absl::Status Fill(const std::vector<std::string>& empty);
  absl::Status FillOne(const std::string& name, const std::string& uid,
                       const std::set<PodName>& pods, const std::string& master);
  void Note(const absl::Status& status, std::string& last);

  const Options options_;
  kube::Api* const api_;
  SecretFolders folders_;

  std::mutex mutex_;  // guards all up to the thread's own members
  std::condition_variable changed_;
  std::chrono::steady_clock::time_point last_new_;
  bool stop_ = false;
  bool woken_ = false;
  std::string last_key_error_;

  std::string last_error_;  // used by the thread only

  std::thread thread_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_JOB_SECRETS_H_
