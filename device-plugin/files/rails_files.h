// SPDX-License-Identifier: Apache-2.0
//
// The rails.json files that containers mount.
//
// Kubelet remembers the answer of an Allocate call and uses it again when the container, kubelet or
// the node starts anew. So a file's path must stay good without us: its name is the hash of its
// content, it is never changed, and it lives beside kubelet's sockets, in a folder of our own
// (which kubelet's clean-up at its start leaves alone). It goes when no pod holds any of its
// devices.
#ifndef RAILHEAD_DEVICE_PLUGIN_FILES_RAILS_FILES_H_
#define RAILHEAD_DEVICE_PLUGIN_FILES_RAILS_FILES_H_

#include <mutex>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "fabric/pod_rails.h"

namespace railhead::device_plugin {

// Thread-safe.
class RailsFiles {
 public:
  // `folder` is made (mode 0755) with the first file.
  explicit RailsFiles(std::string folder) : folder_(std::move(folder)) {}

  // Writes the file (mode 0644), whole or not at all, and returns its path. A file that is there
  // already is made young again.
  absl::StatusOr<std::string> Store(const fabric::PodRails& rails);

  // Whether there is any file not younger than `limit`, so that Collect could find work.
  bool HasFilesUntil(absl::Time limit) const;

  // Removes the files not younger than `limit` whose devices (DeviceId) are all absent from
  // `in_use`, and the folder when that leaves it empty. What is not ours in the folder stays.
  absl::Status Collect(const std::set<std::string>& in_use, absl::Time limit);

 private:
  const std::string folder_;
  mutable std::mutex mutex_;  // one change of the folder at a time
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_FILES_RAILS_FILES_H_
