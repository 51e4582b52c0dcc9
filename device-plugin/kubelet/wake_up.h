// SPDX-License-Identifier: Apache-2.0
//
// What the agent's loop sleeps on.
#ifndef RAILHEAD_DEVICE_PLUGIN_KUBELET_WAKE_UP_H_
#define RAILHEAD_DEVICE_PLUGIN_KUBELET_WAKE_UP_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace railhead::device_plugin {

// Sleeps until something is made or deleted in a folder, another thread calls Wake, a file
// descriptor becomes readable, or time is up. A wake-up says only that it is worth a look.
class WakeUp {
 public:
  // Fails when the folder cannot be read. Where the kernel refuses a watch (its number is limited)
  // the folder is not watched: `watches_folder` tells.
  static absl::StatusOr<std::unique_ptr<WakeUp>> Make(const std::string& folder);
  ~WakeUp();
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  bool watches_folder() const { return inotify_ >= 0; }

  // Ends the current or the next Sleep. Thread-safe.
  void Wake() const;

  // Returns true when `stop_fd` is readable. One thread only.
  bool Sleep(int stop_fd, std::chrono::milliseconds at_most) const;

 private:
  WakeUp(int event, int inotify) : event_(event), inotify_(inotify) {}

  const int event_;
  const int inotify_;  // -1 without a watch
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_KUBELET_WAKE_UP_H_
