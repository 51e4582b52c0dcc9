// SPDX-License-Identifier: Apache-2.0
//
// Wait primitive of the agent's loop.
#ifndef RAILHEAD_DEVICE_PLUGIN_KUBELET_WAKE_UP_H_
#define RAILHEAD_DEVICE_PLUGIN_KUBELET_WAKE_UP_H_

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace railhead::device_plugin {

// Sleeps until a file is created or deleted in a directory, another thread calls Wake, a file
// descriptor becomes readable, or a timeout. Spurious wake-ups are possible.
class WakeUp {
 public:
  // Fails if the directory cannot be read. If the kernel's limit of watches is reached, the
  // directory is not watched: see watches_folder().
  static absl::StatusOr<std::unique_ptr<WakeUp>> Make(const std::string& folder);

  bool watches_folder() const { return inotify_.valid(); }

  // Ends the current or next Sleep. Thread-safe.
  void Wake() const;

  // Returns true if `stop_fd` is readable. Call on one thread only.
  bool Sleep(int stop_fd, std::chrono::milliseconds at_most) const;

 private:
  WakeUp(FileDescriptor event, FileDescriptor inotify)
      : event_(std::move(event)), inotify_(std::move(inotify)) {}

  const FileDescriptor event_;
  const FileDescriptor inotify_;  // empty without a watch
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_KUBELET_WAKE_UP_H_
