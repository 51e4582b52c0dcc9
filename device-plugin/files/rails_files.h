// SPDX-License-Identifier: Apache-2.0
//
// Files rails.json that containers mount.
//
// Kubelet stores an Allocate response and reuses it when the container, kubelet or the node
// restarts. So a file's path must stay valid without the agent: its name is the hash of its
// content, it never changes, and it is in a directory of the agent next to kubelet's sockets, which
// kubelet's cleanup at start does not touch. It is removed when no pod holds any of its devices.
#ifndef RAILHEAD_DEVICE_PLUGIN_FILES_RAILS_FILES_H_
#define RAILHEAD_DEVICE_PLUGIN_FILES_RAILS_FILES_H_

#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "fabric/pod_rails.h"

namespace railhead::device_plugin {

// Thread-safe. Used by PluginService, AllocationStore and Agent.
class RailsFiles {
 public:
  // `folder` is created (mode 0755) with the first file.
  explicit RailsFiles(std::string folder) : folder_(std::move(folder)) {}

  // Writes the file (mode 0644) atomically and returns its path. Resets the age of an existing
  // file.
  absl::StatusOr<std::string> Store(const fabric::PodRails& rails);

  // Returns the content of the file with these digits in its name (rails_file_name.h); nullopt if
  // there is none that can be read.
  std::optional<fabric::PodRails> Read(const std::string& digits) const;

  // Returns true if a file is at least as old as `limit`, so that Collect may find work.
  bool HasFilesUntil(absl::Time limit) const;

  // Removes files at least as old as `limit` whose devices (DeviceId) are all absent from `in_use`,
  // and the directory if it is then empty. Files that cannot be read now stay, and so do other
  // files in the directory.
  absl::Status Collect(const std::set<std::string>& in_use, absl::Time limit);

 private:
  const std::string folder_;
  mutable std::mutex mutex_;  // serializes changes of the directory
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_FILES_RAILS_FILES_H_
