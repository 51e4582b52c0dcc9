// SPDX-License-Identifier: Apache-2.0
#include "fabric/root_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/file_descriptor.h"

namespace railhead::fabric {
namespace {

constexpr size_t kMaxEntries = 16384;   // a node with many virtual functions has thousands
constexpr size_t kMaxAttribute = 4096;  // sysfs never writes more than a page

struct FolderCloser {
  void operator()(DIR* dir) const { closedir(dir); }
};

struct TextFreer {
  void operator()(char* text) const { free(text); }  // NOLINT: realpath allocates with malloc
};
using CText = std::unique_ptr<char, TextFreer>;

// Returns whether openat2 may have failed for a reason other than the path: an older kernel, or a
// seccomp filter without this call; a link out of the root, which realpath can resolve; a path that
// changes at the same time.
bool MayBeFoundOtherwise(int error) {
  return error == ENOSYS || error == EPERM || error == EXDEV || error == EAGAIN;
}

// Returns the path of an open file as this process sees it; empty if /proc does not show it.
std::string PathOf(int file) {
  std::array<char, PATH_MAX> buffer;
  const std::string link = absl::StrCat("/proc/self/fd/", file);
  const ssize_t size = readlink(link.c_str(), buffer.data(), buffer.size());
  std::string path(buffer.data(), static_cast<size_t>(std::max<ssize_t>(0, size)));
  return absl::EndsWith(path, " (deleted)") ? "" : path;
}

}  // namespace

absl::StatusOr<RootFiles> RootFiles::Open(const std::string& root) {
  const CText real(realpath(root.c_str(), nullptr));
  struct stat info = {};
  if (real == nullptr || stat(real.get(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return absl::ErrnoToStatus(
        real == nullptr ? errno : ENOTDIR,
        absl::StrCat("root ", root,
                     " cannot be read; it must be the directory where the host's / is mounted"));
  }
  FileDescriptor folder(open(real.get(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return absl::ErrnoToStatus(errno, absl::StrCat("root ", root));
  std::string path = real.get();
  if (path == "/") path.clear();
  return RootFiles(std::move(path), std::move(folder));
}

FileDescriptor RootFiles::OpenBeneath(absl::string_view path, int flags) const {
  const std::string inside = absl::StrCat(".", path);
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.resolve = root_.empty() ? 0 : RESOLVE_BENEATH;
  const auto opened = syscall(SYS_openat2, folder_->get(), inside.c_str(), &how, sizeof how);
  return FileDescriptor(static_cast<int>(opened));
}

absl::StatusOr<FileDescriptor> RootFiles::OpenInside(absl::string_view path, int flags) const {
  FileDescriptor opened = OpenBeneath(path, flags);
  if (opened.get() >= 0) return opened;
  if (!MayBeFoundOtherwise(errno)) return absl::ErrnoToStatus(errno, std::string(path));
  const absl::StatusOr<std::string> real = RealPath(path);
  if (!real.ok()) return real.status();
  FileDescriptor file(open(real->c_str(), flags | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0) return absl::ErrnoToStatus(errno, std::string(path));
  return file;
}

bool RootFiles::IsInside(absl::string_view real) const {
  return real == root_ || absl::StartsWith(real, absl::StrCat(root_, "/"));
}

absl::StatusOr<std::string> RootFiles::RealPath(absl::string_view path) const {
  // realpath reads each part of the path as a link: a dozen calls for a device, every second.
  const FileDescriptor opened = OpenBeneath(path, O_PATH);
  if (opened.get() >= 0) {
    if (std::string found = PathOf(opened.get()); IsInside(found)) return found;
  } else if (!MayBeFoundOtherwise(errno)) {
    return absl::ErrnoToStatus(errno, std::string(path));
  }
  const std::string full = absl::StrCat(root_, path);
  const CText real(realpath(full.c_str(), nullptr));
  if (real == nullptr) return absl::ErrnoToStatus(errno, std::string(path));
  if (!IsInside(real.get())) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, " is a link to ", real.get(), ", outside of the root"));
  }
  return std::string(real.get());
}

absl::StatusOr<std::vector<std::string>> RootFiles::List(absl::string_view path) const {
  absl::StatusOr<FileDescriptor> folder = OpenInside(path, O_RDONLY | O_DIRECTORY);
  if (!folder.ok()) return folder.status();
  const std::unique_ptr<DIR, FolderCloser> dir(fdopendir(folder->get()));
  if (dir == nullptr) return absl::ErrnoToStatus(errno, std::string(path));
  folder->Release();  // closedir closes it
  std::vector<std::string> names;
  while (const dirent* entry = readdir(dir.get())) {
    const absl::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (names.size() == kMaxEntries) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path, " contains more than ", kMaxEntries, " entries"));
    }
    names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::string> RootFiles::ReadAttribute(absl::string_view path) const {
  absl::StatusOr<std::string> text = ReadText(path);
  if (!text.ok()) return text.status();
  const absl::string_view line = absl::StripAsciiWhitespace(*text);
  if (line.find_first_of("\n\v\f\r") != absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not one line of text"));
  }
  return std::string(line);
}

absl::StatusOr<std::vector<std::string>> RootFiles::ReadLines(absl::string_view path) const {
  absl::StatusOr<std::string> text = ReadText(path);
  if (!text.ok()) return text.status();
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    lines.emplace_back(absl::StripAsciiWhitespace(line));
  }
  return lines;
}

absl::StatusOr<std::string> RootFiles::ReadStart(absl::string_view path, size_t most) const {
  // O_NONBLOCK: a pipe in the tree must not block before fstat has shown its type.
  const absl::StatusOr<FileDescriptor> file = OpenInside(path, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return file.status();
  struct stat info = {};
  if (fstat(file->get(), &info) != 0) return absl::ErrnoToStatus(errno, std::string(path));
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  }
  std::string bytes(most, '\0');
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = read(file->get(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, std::string(path));
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

absl::StatusOr<std::string> RootFiles::ReadText(absl::string_view path) const {
  absl::StatusOr<std::string> text = ReadStart(path, kMaxAttribute + 1);
  if (!text.ok()) return text.status();
  if (text->size() > kMaxAttribute) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " contains more than ", kMaxAttribute, " bytes"));
  }
  const bool printable = std::all_of(text->begin(), text->end(), [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c)) ||
           absl::ascii_isspace(static_cast<unsigned char>(c));
  });
  if (!printable) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not printable text"));
  }
  return text;
}

absl::StatusOr<std::string> RootFiles::Resolve(absl::string_view path) const {
  absl::StatusOr<std::string> real = RealPath(path);
  if (!real.ok()) return real.status();
  return real->substr(root_.size());
}

absl::StatusOr<std::string> RootFiles::ReadLink(absl::string_view path) const {
  std::array<char, PATH_MAX> buffer;
  const FileDescriptor link = OpenBeneath(path, O_PATH | O_NOFOLLOW);
  if (link.get() >= 0) {
    const ssize_t size = readlinkat(link.get(), "", buffer.data(), buffer.size());
    if (size < 0) return absl::InvalidArgumentError(absl::StrCat(path, " is not a link"));
    return std::string(buffer.data(), static_cast<size_t>(size));
  }
  if (!MayBeFoundOtherwise(errno)) return absl::ErrnoToStatus(errno, std::string(path));
  // Links in the directory part are followed, so they are checked; the last part is only read.
  const size_t slash = path.rfind('/');
  absl::StatusOr<std::string> parent = RealPath(path.substr(0, slash));
  if (!parent.ok()) return parent.status();
  const std::string full = absl::StrCat(*parent, path.substr(slash));
  const ssize_t size = readlink(full.c_str(), buffer.data(), buffer.size());
  if (size < 0) return absl::ErrnoToStatus(errno, std::string(path));
  return std::string(buffer.data(), static_cast<size_t>(size));
}

NodeInfo RootFiles::Stat(absl::string_view path) const {
  const absl::StatusOr<FileDescriptor> file = OpenInside(path, O_PATH);
  struct stat info = {};
  if (!file.ok() || fstat(file->get(), &info) != 0) return NodeInfo{};
  switch (info.st_mode & S_IFMT) {
    case S_IFCHR:
      return NodeInfo{NodeKind::kCharDevice, major(info.st_rdev), minor(info.st_rdev)};
    case S_IFREG:
      return NodeInfo{NodeKind::kFile, 0, 0};
    default:
      return NodeInfo{NodeKind::kOther, 0, 0};
  }
}

bool RootFiles::IsDirectory(absl::string_view path) const {
  return OpenInside(path, O_PATH | O_DIRECTORY).ok();
}

}  // namespace railhead::fabric
