// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/files/atomic_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/file_descriptor.h"
#include "device-plugin/devices/content_hash.h"

namespace railhead::device_plugin {
namespace {

constexpr char kUnfinished[] = ".unfinished";
constexpr size_t kMaxFile = size_t{1} << 20;

struct FolderCloser {
  void operator()(DIR* dir) const { closedir(dir); }
};

// If it fails, the caller removes the file.
absl::Status WriteWhole(const std::string& path, const std::string& content) {
  const FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", path));
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t put = write(file.get(), content.data() + done, content.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) break;
    done += static_cast<size_t>(put);
  }
  // Its reader may run as any user. fsync: after a power failure kubelet uses this name again.
  if (done == content.size() && fchmod(file.get(), 0644) == 0 && fsync(file.get()) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(
      errno, absl::StrCat("cannot write ", path, "; check that the disk is not full"));
}

}  // namespace

absl::Status MakeFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0755) == 0) {
    chmod(folder.c_str(), 0755);
  } else if (errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot create folder ", folder));
  }
  return absl::OkStatus();
}

absl::Status RemoveEmptyFolder(const std::string& folder) {
  if (rmdir(folder.c_str()) == 0 || errno == ENOTEMPTY || errno == EEXIST || errno == ENOENT) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot remove folder ", folder));
}

absl::Status WriteFile(const std::string& path, const std::string& content) {
  // A container runtime creates a directory in place of a missing file that it should mount.
  rmdir(path.c_str());
  const std::string unfinished = path + kUnfinished;
  absl::Status status = WriteWhole(unfinished, content);
  if (status.ok() && rename(unfinished.c_str(), path.c_str()) != 0) {
    status = absl::ErrnoToStatus(errno, absl::StrCat("cannot rename the new file to ", path));
  }
  if (!status.ok()) unlink(unfinished.c_str());
  return status;
}

std::optional<std::string> ReadFile(const std::string& path) {
  absl::StatusOr<std::string> content = ReadWholeFile(path, kMaxFile, Links::kRefuse);
  if (!content.ok()) return std::nullopt;
  return *std::move(content);
}

bool MayBeReadable(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) return errno != ENOENT;
  return S_ISREG(info.st_mode) && static_cast<size_t>(info.st_size) <= kMaxFile;
}

absl::StatusOr<std::string> StoreByContent(const std::string& folder, absl::string_view prefix,
                                           absl::string_view suffix, const std::string& content) {
  std::string path = absl::StrCat(folder, "/", prefix, ContentHash(content).substr(0, 32), suffix);
  if (absl::Status status = MakeFolder(folder); !status.ok()) return status;
  if (ReadFile(path) == content) {
    utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
    return path;
  }
  if (absl::Status status = WriteFile(path, content); !status.ok()) return status;
  return path;
}

std::vector<std::string> ListFiles(const std::string& folder, absl::string_view prefix,
                                   absl::string_view suffix) {
  std::vector<std::string> paths;
  const std::unique_ptr<DIR, FolderCloser> dir(opendir(folder.c_str()));
  if (dir == nullptr) return paths;
  while (const dirent* entry = readdir(dir.get())) {
    const absl::string_view name = entry->d_name;
    if (absl::StartsWith(name, prefix) &&
        (absl::EndsWith(name, suffix) || absl::EndsWith(name, kUnfinished))) {
      paths.push_back(absl::StrCat(folder, "/", name));
    }
  }
  return paths;
}

bool AnyNotYoungerThan(const std::vector<std::string>& paths, absl::Time limit) {
  return std::any_of(paths.begin(), paths.end(),
                     [limit](const std::string& path) { return NotYoungerThan(path, limit); });
}

bool NotYoungerThan(const std::string& path, absl::Time limit) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) return false;
  return absl::TimeFromTimespec(info.st_mtim) <= limit;
}

absl::Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT || rmdir(path.c_str()) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot remove ", path));
}

}  // namespace railhead::device_plugin
