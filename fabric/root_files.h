// SPDX-License-Identifier: Apache-2.0
//
// Read-only access to the files of a host mounted elsewhere: a container's view of its node
// ("/host"), a captured tree in a test, or the machine itself ("/").
//
// The tree may be hostile or broken. No function follows a link out of the root, blocks on a pipe,
// or reads without a limit. Links are resolved by the kernel (openat2, Linux 5.6), or by realpath
// where it cannot.
#ifndef RAILHEAD_FABRIC_ROOT_FILES_H_
#define RAILHEAD_FABRIC_ROOT_FILES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file_descriptor.h"

namespace railhead::fabric {

enum class NodeKind { kMissing, kFile, kCharDevice, kOther };

struct NodeInfo {
  NodeKind kind = NodeKind::kMissing;
  unsigned major = 0;  // of a character device
  unsigned minor = 0;
};

// All paths are the host's ("/sys/class/infiniband"), whatever the root. Thread-safe.
class RootFiles {
 public:
  // Fails if `root` is not a directory.
  static absl::StatusOr<RootFiles> Open(const std::string& root);

  // Returns the names in a directory, sorted. NotFound if it does not exist; ResourceExhausted for
  // more than 16384 entries.
  absl::StatusOr<std::vector<std::string>> List(absl::string_view path) const;

  // Returns the one line of a sysfs attribute, without surrounding white space. Rejects anything
  // but a regular file of at most 4096 bytes of printable ASCII.
  absl::StatusOr<std::string> ReadAttribute(absl::string_view path) const;

  // Returns the lines of a small text file, without surrounding white space. Rejects like
  // ReadAttribute, except for line feeds.
  absl::StatusOr<std::vector<std::string>> ReadLines(absl::string_view path) const;

  // Returns at most the first `most` bytes of a regular file, of any content.
  absl::StatusOr<std::string> ReadStart(absl::string_view path, size_t most) const;

  // Returns the host's path without links.
  absl::StatusOr<std::string> Resolve(absl::string_view path) const;

  // Returns the text of a symbolic link, even of a dangling one.
  absl::StatusOr<std::string> ReadLink(absl::string_view path) const;

  // Returns the kind of file at `path`, following links inside the root. kMissing if unreachable.
  NodeInfo Stat(absl::string_view path) const;

  bool IsDirectory(absl::string_view path) const;

 private:
  RootFiles(std::string root, FileDescriptor folder)
      : root_(std::move(root)),
        folder_(std::make_shared<const FileDescriptor>(std::move(folder))) {}

  // Opens what is at `path` by openat2, with the flags of open(2) besides O_CLOEXEC. Negative with
  // errno if it fails.
  FileDescriptor OpenBeneath(absl::string_view path, int flags) const;

  // Likewise; by realpath where openat2 cannot.
  absl::StatusOr<FileDescriptor> OpenInside(absl::string_view path, int flags) const;

  // Returns the content of a regular file of at most 4096 bytes of printable ASCII and white space.
  absl::StatusOr<std::string> ReadText(absl::string_view path) const;

  // Returns the real path of `path` on this machine, verified to be inside the root.
  absl::StatusOr<std::string> RealPath(absl::string_view path) const;

  // Returns true if `real`, a path on this machine without links, is in the root.
  bool IsInside(absl::string_view real) const;

  std::string root_;                              // canonical, without trailing slash; "" means "/"
  std::shared_ptr<const FileDescriptor> folder_;  // of the root
};

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_ROOT_FILES_H_
