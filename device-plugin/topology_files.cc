// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/topology_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device-plugin/content_hash.h"
#include "device-plugin/small_files.h"

namespace railhead::device_plugin {
namespace {

constexpr char kPrefix[] = "nccl-topology-";
constexpr char kSuffix[] = ".xml";

}  // namespace

absl::StatusOr<std::string> TopologyFiles::Store(const std::string& xml) {
  std::string path = absl::StrCat(folder_, "/", kPrefix, ContentHash(xml).substr(0, 32), kSuffix);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (absl::Status status = MakeFolder(folder_); !status.ok()) return status;
  if (ReadFile(path) == xml) {
    utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
    return path;
  }
  if (absl::Status status = WriteFile(path, xml); !status.ok()) return status;
  return path;
}

bool TopologyFiles::HasFilesUntil(absl::Time limit) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::vector<std::string> paths = ListFiles(folder_, kPrefix, kSuffix);
  return std::any_of(paths.begin(), paths.end(),
                     [limit](const std::string& path) { return NotYoungerThan(path, limit); });
}

absl::Status TopologyFiles::Collect(bool in_use, absl::Time limit) {
  absl::Status status;
  if (in_use) return status;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::string& path : ListFiles(folder_, kPrefix, kSuffix)) {
    if (NotYoungerThan(path, limit)) status.Update(RemoveFile(path));
  }
  status.Update(RemoveEmptyFolder(folder_));
  return status;
}

}  // namespace railhead::device_plugin
