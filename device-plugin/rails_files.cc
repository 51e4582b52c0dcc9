// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/rails_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "device-plugin/content_hash.h"
#include "device-plugin/device_list.h"
#include "fabric/pod_rails.h"

namespace railhead::device_plugin {
namespace {

constexpr char kPrefix[] = "rails-";
constexpr char kSuffix[] = ".json";
constexpr char kUnfinished[] = ".unfinished";
constexpr size_t kMaxFile = size_t{1} << 20;

struct FolderCloser {
  void operator()(DIR* dir) const { closedir(dir); }
};

// Our files in the folder, finished or not.
std::vector<std::string> ListOurs(const std::string& folder) {
  std::vector<std::string> paths;
  const std::unique_ptr<DIR, FolderCloser> dir(opendir(folder.c_str()));
  if (dir == nullptr) return paths;
  while (const dirent* entry = readdir(dir.get())) {
    const absl::string_view name = entry->d_name;
    if (absl::StartsWith(name, kPrefix) &&
        (absl::EndsWith(name, kSuffix) || absl::EndsWith(name, kUnfinished))) {
      paths.push_back(absl::StrCat(folder, "/", name));
    }
  }
  return paths;
}

std::optional<std::string> ReadWhole(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  std::string content;
  std::array<char, 4096> buffer;
  ssize_t got = 0;
  while (content.size() <= kMaxFile && (got = read(file, buffer.data(), buffer.size())) > 0) {
    content.append(buffer.data(), static_cast<size_t>(got));
  }
  close(file);
  if (got != 0) return std::nullopt;
  return content;
}

// Makes `path` hold `content` on disk. The caller removes it when that fails.
absl::Status WriteWhole(const std::string& path, const std::string& content) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", path));
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t put = write(file, content.data() + done, content.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) break;
    done += static_cast<size_t>(put);
  }
  // The pod may run under any user. fsync: after a power cut kubelet mounts this name again.
  const bool ok = done == content.size() && fchmod(file, 0644) == 0 && fsync(file) == 0;
  const int error = errno;
  close(file);
  if (ok) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", path, "; is the disk full?"));
}

bool HoldsUsedDevice(const std::string& path, const std::set<std::string>& in_use) {
  const absl::StatusOr<fabric::PodRails> rails =
      fabric::ParsePodRails(ReadWhole(path).value_or(""));
  if (!rails.ok()) return false;  // no container can use it
  return std::any_of(rails->rails.begin(), rails->rails.end(), [&](const fabric::PodRail& rail) {
    return in_use.contains(DeviceId(rail.device, rail.pci_address));
  });
}

bool NotYoungerThan(const std::string& path, absl::Time limit) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) return false;
  return absl::TimeFromTimespec(info.st_mtim) <= limit;
}

}  // namespace

absl::StatusOr<std::string> RailsFiles::Store(const fabric::PodRails& rails) {
  const std::string content = fabric::ToJson(rails);
  const std::string stem = absl::StrCat(folder_, "/", kPrefix, ContentHash(content).substr(0, 32));
  std::string path = stem + kSuffix;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (mkdir(folder_.c_str(), 0755) == 0) {
    chmod(folder_.c_str(), 0755);  // whatever the umask
  } else if (errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make folder ", folder_));
  }
  if (ReadWhole(path) == content) {
    utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
    return path;
  }
  // A container runtime makes a folder where a file it should mount is missing.
  rmdir(path.c_str());
  const std::string unfinished = stem + kUnfinished;
  absl::Status status = WriteWhole(unfinished, content);
  if (status.ok() && rename(unfinished.c_str(), path.c_str()) != 0) {
    status = absl::ErrnoToStatus(errno, absl::StrCat("cannot put ", path, " in its place"));
  }
  if (!status.ok()) {
    unlink(unfinished.c_str());
    return status;
  }
  return path;
}

bool RailsFiles::HasFilesUntil(absl::Time limit) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::vector<std::string> paths = ListOurs(folder_);
  return std::any_of(paths.begin(), paths.end(),
                     [limit](const std::string& path) { return NotYoungerThan(path, limit); });
}

absl::Status RailsFiles::Collect(const std::set<std::string>& in_use, absl::Time limit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  absl::Status status;
  for (const std::string& path : ListOurs(folder_)) {
    if (!NotYoungerThan(path, limit) || HoldsUsedDevice(path, in_use)) continue;
    if (unlink(path.c_str()) != 0 && rmdir(path.c_str()) != 0) {
      status.Update(absl::ErrnoToStatus(errno, absl::StrCat("cannot remove ", path)));
    }
  }
  if (rmdir(folder_.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT) {
    status.Update(absl::ErrnoToStatus(errno, absl::StrCat("cannot remove folder ", folder_)));
  }
  return status;
}

}  // namespace railhead::device_plugin
