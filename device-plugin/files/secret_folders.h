// SPDX-License-Identifier: Apache-2.0
//
// Folders that containers mount, each for the secret of one container's job.
//
// Kubelet asks for devices before the agent can know for which pod, so a container gets an empty
// folder of its own. Later one file comes into it, whole: `key`, or `none` with the reason why no
// key comes (runtime/bootstrap/job_secret.h reads them). Users of the host other than root cannot
// enter the folder above.
#ifndef RAILHEAD_DEVICE_PLUGIN_FILES_SECRET_FOLDERS_H_
#define RAILHEAD_DEVICE_PLUGIN_FILES_SECRET_FOLDERS_H_

#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace railhead::device_plugin {

// Thread-safe. Used by JobSecrets.
class SecretFolders {
 public:
  // `folder`: of the agent, beside kubelet's sockets; created with the first.
  explicit SecretFolders(std::string folder) : above_(std::move(folder)) {}

  // Makes an empty folder and returns its path.
  absl::StatusOr<std::string> Make();

  // Returns the names of all.
  std::vector<std::string> Names() const;
  // Returns the names of those that are still empty.
  std::vector<std::string> Empty() const;

  // Puts the file into the folder. Does not bring a removed folder back.
  absl::Status PutKey(const std::string& name, const std::string& key);
  absl::Status PutNone(const std::string& name, const std::string& reason);

  // Returns true if a folder is at least as old as `limit`.
  bool HasFoldersUntil(absl::Time limit) const;

  // Removes folders whose last change is at least as old as `limit`, except `keep`, with what is in
  // them.
  absl::Status Collect(const std::set<std::string>& keep, absl::Time limit);

 private:
  std::string All() const;
  std::string PathOf(const std::string& name) const;
  absl::Status Put(const std::string& name, const std::string& file, const std::string& content);

  const std::string above_;
  mutable std::mutex mutex_;  // serializes changes of the directory
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_FILES_SECRET_FOLDERS_H_
