// SPDX-License-Identifier: Apache-2.0
//
// Read-only access to the files of a host that is mounted somewhere else: a container's view of its
// node ("/host"), a captured tree in a test, or the machine itself ("/").
//
// The tree may be hostile or half broken. Nothing here follows a link out of the root, blocks on a
// pipe, or reads more than a bound.
#ifndef RAILHEAD_FABRIC_ROOT_FILES_H_
#define RAILHEAD_FABRIC_ROOT_FILES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::fabric {

enum class NodeKind { kMissing, kFile, kCharDevice, kOther };

struct NodeInfo {
  NodeKind kind = NodeKind::kMissing;
  unsigned major = 0;  // of a character device
  unsigned minor = 0;
};

// All paths are the host's own ("/sys/class/infiniband"), whatever the root is. Safe to use from
// several threads.
class RootFiles {
 public:
  // Fails when `root` is not a directory.
  static absl::StatusOr<RootFiles> Open(const std::string& root);

  // The names in a directory, sorted. NotFound when it does not exist; ResourceExhausted when it
  // holds more than 16384 entries.
  absl::StatusOr<std::vector<std::string>> List(absl::string_view path) const;

  // The one line of text that a sysfs attribute holds, without surrounding white space. Refuses
  // anything but a regular file of at most 4096 bytes of printable ASCII.
  absl::StatusOr<std::string> ReadAttribute(absl::string_view path) const;

  // The lines of a small text file, without white space round them. Refuses what ReadAttribute
  // refuses, but for line feeds.
  absl::StatusOr<std::vector<std::string>> ReadLines(absl::string_view path) const;

  // The first bytes of a regular file, at most `most` of them, whatever they are.
  absl::StatusOr<std::string> ReadStart(absl::string_view path, size_t most) const;

  // The path without any link in it, as the host knows it.
  absl::StatusOr<std::string> Resolve(absl::string_view path) const;

  // The text of a symbolic link, whether or not it leads anywhere.
  absl::StatusOr<std::string> ReadLink(absl::string_view path) const;

  // What stands at `path`, links inside the root followed. kMissing when nothing can be reached.
  NodeInfo Stat(absl::string_view path) const;

  bool IsDirectory(absl::string_view path) const;

 private:
  explicit RootFiles(std::string root) : root_(std::move(root)) {}

  // The content of a regular file of at most 4096 bytes of printable ASCII and white space.
  absl::StatusOr<std::string> ReadText(absl::string_view path) const;

  // The real path of `path` on this machine, proven to be inside the root.
  absl::StatusOr<std::string> RealPath(absl::string_view path) const;

  std::string root_;  // canonical, without a trailing slash; "" stands for "/"
};

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_ROOT_FILES_H_
