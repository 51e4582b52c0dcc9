// SPDX-License-Identifier: Apache-2.0
//
// File of the node's rail map (rail_map.h). Used by Agent.
#ifndef RAILHEAD_DEVICE_PLUGIN_FILES_RAIL_MAP_FILE_H_
#define RAILHEAD_DEVICE_PLUGIN_FILES_RAIL_MAP_FILE_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device-plugin/offer/rail_map.h"

namespace railhead::device_plugin {

// Not thread-safe.
class RailMapFile {
 public:
  // `folder` is created with the file.
  RailMapFile(std::string folder, Machine machine)
      : folder_(std::move(folder)), machine_(std::move(machine)) {}

  // Returns an empty map if there is no file. Fails, naming the path, for a file that is not this
  // machine's map.
  absl::StatusOr<RailMap> Load();

  // Writes the map atomically if it differs from the one last loaded or saved.
  absl::Status Save(const RailMap& map);

 private:
  std::string Path() const { return folder_ + "/rail-map.json"; }

  const std::string folder_;
  const Machine machine_;
  std::string saved_;  // content on disk
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_FILES_RAIL_MAP_FILE_H_
