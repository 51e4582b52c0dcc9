// SPDX-License-Identifier: Apache-2.0
//
// Files that describe the machine to NCCL in containers (fabric/nccl_topology.h).
//
// Stored like rails.json (rails_files.h), under the hash of the content. A machine has one file for
// all its pods; it is removed when no pod holds an HCA.
#ifndef RAILHEAD_DEVICE_PLUGIN_FILES_TOPOLOGY_FILES_H_
#define RAILHEAD_DEVICE_PLUGIN_FILES_TOPOLOGY_FILES_H_

#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// Thread-safe. Used by Agent.
class TopologyFiles {
 public:
  // `folder` is created (mode 0755) with the first file. `root`: of the host's /sys.
  TopologyFiles(std::string folder, std::string root)
      : folder_(std::move(folder)), root_(std::move(root)) {}

  // Writes the file (mode 0644) of this machine atomically and returns its path. Resets the age of
  // an existing file.
  absl::StatusOr<std::string> Store(const fabric::NodeInventory& inventory);

  // Returns true if a file is at least as old as `limit`, so that Collect may find work.
  bool HasFilesUntil(absl::Time limit) const;

  // Unless `in_use`, removes files at least as old as `limit`, and the directory if it is then
  // empty.
  absl::Status Collect(bool in_use, absl::Time limit);

 private:
  const std::string folder_;
  const std::string root_;
  mutable std::mutex mutex_;  // one change of the folder at a time
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_FILES_TOPOLOGY_FILES_H_
