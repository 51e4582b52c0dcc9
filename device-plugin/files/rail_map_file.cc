// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/files/rail_map_file.h"

#include <sys/stat.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "device-plugin/files/atomic_file.h"
#include "device-plugin/offer/rail_map.h"

namespace railhead::device_plugin {

absl::StatusOr<RailMap> RailMapFile::Load() {
  struct stat info = {};
  if (lstat(Path().c_str(), &info) != 0) return RailMap();
  const std::optional<std::string> text = ReadFile(Path());
  absl::StatusOr<RailMap> map = ParseRailMap(text.value_or(""), machine_);
  if (!map.ok()) {
    return absl::Status(map.status().code(), absl::StrCat(Path(), ": ", map.status().message()));
  }
  saved_ = *text;
  return map;
}

absl::Status RailMapFile::Save(const RailMap& map) {
  if (saved_.empty() && map.hcas.empty()) return absl::OkStatus();
  std::string text = ToJson(map, machine_);
  if (text == saved_) return absl::OkStatus();
  if (absl::Status status = MakeFolder(folder_); !status.ok()) return status;
  if (absl::Status status = WriteFile(Path(), text); !status.ok()) return status;
  saved_ = std::move(text);
  return absl::OkStatus();
}

}  // namespace railhead::device_plugin
