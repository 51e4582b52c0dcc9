// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/files/running_pods_file.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "device-plugin/files/atomic_file.h"
#include "device-plugin/holdings/holdings.h"
#include "fabric/root_files.h"

namespace railhead::device_plugin {
namespace {

constexpr char kCgroups[] = "/sys/fs/cgroup";
// With cgroup v1, each controller has its own tree.
constexpr const char* kTrees[] = {"", "/pids", "/memory", "/systemd"};
// Of kubelet: below its --cgroup-root, kubepods, then the class of service, then the pod.
constexpr int kMaxDepth = 4;
constexpr size_t kMaxPods = 4096;
constexpr size_t kUid = 36;        // with dashes
constexpr size_t kStaticUid = 32;  // of a static pod: a hash

// Returns the uid in a name such as "pod<uid>" or "kubepods-burstable-pod<uid>.slice", where
// systemd has underscores for dashes; "" if there is none.
std::string UidIn(absl::string_view name) {
  absl::ConsumeSuffix(&name, ".slice");
  const size_t start = name.rfind("pod");
  if (start == absl::string_view::npos) return "";
  std::string uid = absl::StrReplaceAll(name.substr(start + 3), {{"_", "-"}});
  const bool is_uid = (uid.size() == kUid || uid.size() == kStaticUid) &&
                      std::all_of(uid.begin(), uid.end(), [](unsigned char c) {
                        return std::isxdigit(c) != 0 || c == '-';
                      });
  return is_uid ? uid : "";
}

void CollectUids(const fabric::RootFiles& files, const std::string& folder, int depth,
                 std::set<std::string>& uids) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok() || uids.size() > kMaxPods) return;
  for (const std::string& name : *names) {
    if (std::string uid = UidIn(name); !uid.empty()) {
      uids.insert(std::move(uid));
    } else if (depth < kMaxDepth &&
               (absl::StrContains(name, "kube") || name == "burstable" || name == "besteffort")) {
      CollectUids(files, absl::StrCat(folder, "/", name), depth + 1, uids);
    }
  }
}

}  // namespace

RunningPods ReadRunningPods(const std::string& root) {
  const absl::StatusOr<fabric::RootFiles> files = fabric::RootFiles::Open(root);
  if (!files.ok()) return std::nullopt;
  for (const char* tree : kTrees) {
    std::set<std::string> uids;
    CollectUids(*files, absl::StrCat(kCgroups, tree), 0, uids);
    if (uids.size() > kMaxPods) return std::nullopt;
    if (!uids.empty()) return uids;
  }
  return std::nullopt;
}

PodsByUid RunningPodsFile::Load() {
  PodsByUid pods;
  const std::optional<std::string> text = ReadFile(Path());
  if (boot_.empty() || !text.has_value()) return pods;
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n', absl::SkipEmpty());
  if (lines.empty() || lines.front() != boot_) return pods;
  for (size_t i = 1; i < lines.size(); ++i) {
    pods[lines[i]].has_run = true;
    saved_.insert(lines[i]);
  }
  return pods;
}

void RunningPodsFile::Save(const PodsByUid& pods) {
  std::set<std::string> uids;
  for (const auto& [uid, pod] : pods) {
    if (pod.has_run) uids.insert(uid);
  }
  if (boot_.empty() || uids == saved_) return;
  absl::Status status = MakeFolder(folder_);
  if (status.ok()) {
    status = uids.empty()
                 ? RemoveFile(Path())
                 : WriteFile(Path(), absl::StrCat(boot_, "\n", absl::StrJoin(uids, "\n"), "\n"));
  }
  if (status.ok()) saved_ = std::move(uids);
  if (status.message() == last_error_) return;
  last_error_ = std::string(status.message());
  if (!status.ok()) spdlog::error("cannot store which pods run: {}", last_error_);
}

}  // namespace railhead::device_plugin
