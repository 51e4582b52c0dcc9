// SPDX-License-Identifier: Apache-2.0
//
// Where the node's rail map (rail_map.h) is kept.
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
  // `folder` is made with the file.
  RailMapFile(std::string folder, Machine machine)
      : folder_(std::move(folder)), machine_(std::move(machine)) {}

  // An empty map where there is no file. Fails, with the path, for a file that is not this
  // machine's map.
  absl::StatusOr<RailMap> Load();

  // Writes the map, whole or not at all, where it differs from what was loaded or saved last.
  absl::Status Save(const RailMap& map);

 private:
  std::string Path() const { return folder_ + "/rail-map.json"; }

  const std::string folder_;
  const Machine machine_;
  std::string saved_;  // as it is on disk
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_FILES_RAIL_MAP_FILE_H_
