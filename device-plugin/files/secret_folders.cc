// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/files/secret_folders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file_descriptor.h"
#include "device-plugin/devices/secret_folder_name.h"
#include "device-plugin/files/atomic_file.h"

namespace railhead::device_plugin {
namespace {

constexpr char kKey[] = "/key";
constexpr char kNone[] = "/none";

std::string NewName() {
  std::random_device random;
  std::string name;
  while (name.size() < 32) {
    absl::StrAppend(&name, absl::Hex(uint32_t{random()}, absl::kZeroPad8));
  }
  return name;
}

bool Exists(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0;
}

}  // namespace

std::string SecretFolders::All() const { return above_ + "/secrets"; }

std::string SecretFolders::PathOf(const std::string& name) const {
  return absl::StrCat(All(), "/", name);
}

absl::Status SecretFolders::Close() const {
  const FileDescriptor folder(open(All().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid() && errno == ENOENT) return absl::OkStatus();
  if (!folder.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", All()));
  struct stat info = {};
  if (fstat(folder.get(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read the owner of ", All()));
  }
  if (info.st_uid != owner_) {
    return absl::PermissionDeniedError(absl::StrCat(All(), " belongs to user ", info.st_uid,
                                                    ", not to user ", owner_, "; remove it"));
  }
  constexpr mode_t kModeBits = 07777;
  if ((info.st_mode & kModeBits) == S_IRWXU || fchmod(folder.get(), S_IRWXU) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot set the mode of ", All(), " to 0700"));
}

absl::StatusOr<std::string> SecretFolders::Make() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (absl::Status made = MakeFolder(above_); !made.ok()) return made;
  if (mkdir(All().c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make folder ", All()));
  }
  if (absl::Status closed = Close(); !closed.ok()) return closed;
  std::string path = PathOf(NewName());
  if (absl::Status made = MakeFolder(path); !made.ok()) return made;
  return path;
}

std::vector<std::string> SecretFolders::Names() const {
  std::vector<std::string> names;
  for (const std::string& path : ListFiles(All(), "", "")) {
    std::string name = path.substr(path.rfind('/') + 1);
    if (IsSecretFolderName(name)) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> SecretFolders::Empty() const {
  std::vector<std::string> empty;
  for (std::string& name : Names()) {
    const std::string path = PathOf(name);
    if (!Exists(path + kKey) && !Exists(path + kNone)) empty.push_back(std::move(name));
  }
  return empty;
}

absl::Status SecretFolders::Put(const std::string& name, const std::string& file,
                                const std::string& content) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (absl::Status closed = Close(); !closed.ok()) return closed;
  return WriteFile(PathOf(name) + file, content);
}

absl::Status SecretFolders::PutKey(const std::string& name, const std::string& key) {
  return Put(name, kKey, key);
}

absl::Status SecretFolders::PutNone(const std::string& name, const std::string& reason) {
  return Put(name, kNone, reason + "\n");
}

bool SecretFolders::HasFoldersUntil(absl::Time limit) const {
  std::vector<std::string> paths;
  for (const std::string& name : Names()) paths.push_back(PathOf(name));
  return AnyNotYoungerThan(paths, limit);
}

absl::Status SecretFolders::Collect(const std::set<std::string>& keep, absl::Time limit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  absl::Status status = Close();
  if (!status.ok()) return status;
  for (const std::string& name : Names()) {
    const std::string path = PathOf(name);
    if (keep.contains(name) || !NotYoungerThan(path, limit)) continue;
    for (const char* start : {kKey, kNone}) {
      for (const std::string& file : ListFiles(path, start + 1, "")) {
        status.Update(RemoveFile(file));
      }
    }
    status.Update(RemoveEmptyFolder(path));
  }
  status.Update(RemoveEmptyFolder(All()));
  return status;
}

}  // namespace railhead::device_plugin
