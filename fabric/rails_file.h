// SPDX-License-Identifier: Apache-2.0
//
// Reads the rails.json of a container. Used by librailhead, and by NCCL's environment plugin.
#ifndef RAILHEAD_FABRIC_RAILS_FILE_H_
#define RAILHEAD_FABRIC_RAILS_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "fabric/pod_rails.h"

namespace railhead::fabric {

// `root`: directory in which `file` is looked up. Returns NotFound if there is no such file, and
// otherwise an error that names it.
absl::StatusOr<PodRails> ReadRailsFile(const std::string& root, const std::string& file);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_RAILS_FILE_H_
