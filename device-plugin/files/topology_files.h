// SPDX-License-Identifier: Apache-2.0
//
// The files with which containers tell NCCL how the machine is built (fabric/nccl_topology.h).
//
// Kubelet remembers their paths as it does those of rails.json (rails_files.h), beside which they
// lie under the hash of their content. But a machine has one, for all of its pods: it goes when no
// pod holds an HCA.
#ifndef RAILHEAD_DEVICE_PLUGIN_FILES_TOPOLOGY_FILES_H_
#define RAILHEAD_DEVICE_PLUGIN_FILES_TOPOLOGY_FILES_H_

#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace railhead::device_plugin {

// Thread-safe.
class TopologyFiles {
 public:
  // `folder` is made (mode 0755) with the first file.
  explicit TopologyFiles(std::string folder) : folder_(std::move(folder)) {}

  // Writes the file (mode 0644), whole or not at all, and returns its path. A file that is there
  // already is made young again.
  absl::StatusOr<std::string> Store(const std::string& xml);

  // Whether there is any file not younger than `limit`, so that Collect could find work.
  bool HasFilesUntil(absl::Time limit) const;

  // Where nothing is `in_use`, removes the files not younger than `limit`, and the folder if
  // nothing is left in it.
  absl::Status Collect(bool in_use, absl::Time limit);

 private:
  const std::string folder_;
  mutable std::mutex mutex_;  // one change of the folder at a time
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_FILES_TOPOLOGY_FILES_H_
