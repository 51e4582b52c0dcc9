// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/job_secrets.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/printable_text.h"
#include "device-plugin/devices/kubelet_checkpoint.h"
#include "device-plugin/grant/job_key.h"
#include "device-plugin/kubelet/pod_resources.h"
#include "jobs/job.h"
#include "kube/client.h"
#include "kube/json.h"

namespace railhead::device_plugin {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMasterLimit = size_t{1} << 16;
constexpr size_t kReasonLimit = 600;

bool HoldsSome(const ContainerDevices& container, const CheckpointEntry& entry) {
  const auto held = container.devices.find(entry.resource);
  return held != container.devices.end() &&
         std::any_of(held->second.begin(), held->second.end(),
                     [&](const std::string& id) { return entry.ids.contains(id); });
}

}  // namespace

std::set<PodName> PodsThatMayHave(const std::string& uid,
                                  const std::vector<CheckpointEntry>& checkpoint,
                                  const std::vector<ContainerDevices>& listed) {
  std::set<PodName> pods;
  for (const CheckpointEntry& entry : checkpoint) {
    if (entry.pod_uid != uid) continue;
    for (const ContainerDevices& container : listed) {
      if (HoldsSome(container, entry)) pods.emplace(container.pod_namespace, container.pod);
    }
  }
  return pods;
}

std::set<std::string> SecretFoldersOf(const std::vector<CheckpointEntry>& entries) {
  std::set<std::string> folders;
  for (const CheckpointEntry& entry : entries) {
    if (!entry.secret_folder.empty()) folders.insert(entry.secret_folder);
  }
  return folders;
}

JobSecrets::JobSecrets(Options options, kube::Api* api)
    : options_(std::move(options)), api_(api), folders_(options_.folder) {
  MasterKey().IgnoreError();
  thread_ = std::thread([this] { Run(); });
}

JobSecrets::~JobSecrets() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void JobSecrets::Note(const absl::Status& status, std::string& last) {
  std::string text = PrintableText(status.message());
  if (text == last) return;
  if (status.ok()) {
    spdlog::info("jobs get secrets");
  } else {
    spdlog::error("jobs get no secrets, so any pod that knows a job's name can join it: {}", text);
  }
  last = std::move(text);
}

absl::StatusOr<std::string> JobSecrets::MasterKey() {
  absl::StatusOr<std::string> key = ReadWholeFile(options_.master_key_file, kMasterLimit);
  if (key.ok()) {
    key = ParseMasterKey(*key);
    if (!key.ok()) {
      key = absl::InvalidArgumentError(
          absl::StrCat("master key ", options_.master_key_file, " ", key.status().message()));
    }
  } else {
    key = absl::Status(
        key.status().code(),
        absl::StrCat("cannot read the master key: ", key.status().message(),
                     "; mount the Secret with it there (devicePlugin.jobSecrets in the chart)"));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  Note(key.status(), last_key_error_);
  return key;
}

std::string JobSecrets::NewFolder() {
  if (!MasterKey().ok()) return "";
  absl::StatusOr<std::string> path = folders_.Make();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!path.ok()) {
    spdlog::error("a container gets no secret of its job: {}",
                  std::string(path.status().message()));
    return "";
  }
  last_new_ = Clock::now();
  woken_ = true;
  changed_.notify_all();
  return *std::move(path);
}

void JobSecrets::Run() {
  // First fill folders that an earlier agent left empty.
  bool fresh = true;
  while (true) {
    const std::vector<std::string> empty = folders_.Empty();
    if (!empty.empty()) Note(Fill(empty), last_error_);
    std::unique_lock<std::mutex> lock(mutex_);
    if (fresh) last_new_ = Clock::now();
    fresh = false;
    const bool soon = !empty.empty() && Clock::now() - last_new_ < options_.soon;
    changed_.wait_for(lock, soon ? options_.pace : options_.later,
                      [this] { return stop_ || woken_; });
    woken_ = false;
    if (stop_) return;
  }
}

absl::Status JobSecrets::Fill(const std::vector<std::string>& empty) {
  const absl::StatusOr<std::string> master = MasterKey();
  if (!master.ok()) return absl::OkStatus();  // MasterKey() reports it
  const std::optional<std::vector<CheckpointEntry>> checkpoint =
      ReadKubeletCheckpoint(options_.kubelet_dir);
  // Kubelet writes it after its first allocation.
  if (!checkpoint.has_value()) return absl::OkStatus();
  const absl::StatusOr<std::vector<ContainerDevices>> listed =
      ListContainerDevices(options_.pod_resources_socket, kPodResourcesDeadline);
  if (!listed.ok()) return listed.status();
  const std::set<std::string> wanted(empty.begin(), empty.end());
  absl::Status status;
  for (const CheckpointEntry& entry : *checkpoint) {
    if (!wanted.contains(entry.secret_folder)) continue;
    status.Update(FillOne(entry.secret_folder, entry.pod_uid,
                          PodsThatMayHave(entry.pod_uid, *checkpoint, *listed), *master));
  }
  return status;
}

absl::Status JobSecrets::FillOne(const std::string& name, const std::string& uid,
                                 const std::set<PodName>& pods, const std::string& master) {
  for (const auto& [pod_namespace, pod_name] : pods) {
    const absl::StatusOr<kube::Json> pod =
        kube::Get(*api_, {"v1", "pods", pod_namespace, pod_name});
    if (absl::IsNotFound(pod.status())) continue;
    if (absl::IsPermissionDenied(pod.status())) {
      return absl::PermissionDeniedError(
          absl::StrCat(pod.status().message(),
                       "; grant the agent's account permission to get pods "
                       "(devicePlugin.jobSecrets in the chart does)"));
    }
    if (!pod.ok()) return pod.status();
    // Another pod with this name and these devices: kubelet's list is from another time.
    if (uid.empty() || kube::StringAt(*pod, {"metadata", "uid"}) != uid) continue;
    const absl::StatusOr<std::string> job = jobs::IdentityOf(*pod);
    if (!job.ok()) {
      return folders_.PutNone(name, PrintableText(job.status().message(), kReasonLimit));
    }
    const absl::StatusOr<std::string> key = JobKey(master, pod_namespace, *job);
    if (!key.ok()) return key.status();
    return folders_.PutKey(name, *key);
  }
  return absl::OkStatus();
}

}  // namespace railhead::device_plugin
