// SPDX-License-Identifier: Apache-2.0
//
// Folders that containers mount, each for the secret of one container's job.
//
// Kubelet allocates devices before the agent can know for which pod, so each container gets its
// own empty folder. Later one complete file is added: `key`, or `none` with the reason why no key
// comes (runtime/bootstrap/job_secret.h reads them). Users of the host other than root cannot
// enter the folder above; its mode and owner are checked at each use.
#ifndef RAILHEAD_DEVICE_PLUGIN_FILES_SECRET_FOLDERS_H_
#define RAILHEAD_DEVICE_PLUGIN_FILES_SECRET_FOLDERS_H_

#include <sys/types.h>
#include <unistd.h>

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
  // `folder`: of the agent, beside kubelet's sockets; created with the first. `owner`: user that
  // the folders belong to.
  explicit SecretFolders(std::string folder, uid_t owner = geteuid())
      : above_(std::move(folder)), owner_(owner) {}

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
  // Checks the owner of the folder with all, and sets its mode to 0700 again: a container runtime
  // creates it with 0755 if it is missing when a container starts. OK if there is none.
  absl::Status Close() const;
  std::string PathOf(const std::string& name) const;
  absl::Status Put(const std::string& name, const std::string& file, const std::string& content);

  const std::string above_;
  const uid_t owner_;
  mutable std::mutex mutex_;  // serializes changes of the directory
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_FILES_SECRET_FOLDERS_H_
