// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/devices/kubelet_checkpoint.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "device-plugin/devices/rails_file_name.h"
#include "device-plugin/devices/secret_folder_name.h"

namespace railhead::device_plugin {
namespace {

constexpr size_t kMaxCheckpointBytes = size_t{64} << 20;

// Returns the member, or null if there is none.
const nlohmann::json& Member(const nlohmann::json& object, const char* name) {
  static const nlohmann::json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

std::string Text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : "";
}

}  // namespace

std::optional<std::vector<CheckpointEntry>> ParseKubeletCheckpoint(absl::string_view json) {
  const nlohmann::json document =
      nlohmann::json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (!Member(document, "Data").is_object()) return std::nullopt;
  std::vector<CheckpointEntry> entries;
  for (const nlohmann::json& item : Member(Member(document, "Data"), "PodDeviceEntries")) {
    CheckpointEntry entry{Text(Member(item, "PodUID")), Text(Member(item, "ResourceName")), {}};
    // The bytes of an AllocateResponse, which contain the paths unchanged.
    if (std::string response; absl::Base64Unescape(Text(Member(item, "AllocResp")), &response)) {
      entry.secret_folder = SecretFolderIn(response);
      entry.rails_file = RailsFileIn(response);
    }
    entry.container = Text(Member(item, "ContainerName"));
    for (const nlohmann::json& of_numa_node : Member(item, "DeviceIDs")) {
      for (const nlohmann::json& id : of_numa_node) entry.ids.insert(Text(id));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::optional<std::vector<CheckpointEntry>> ReadKubeletCheckpoint(const std::string& kubelet_dir) {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(absl::StrCat(kubelet_dir, "/kubelet_internal_checkpoint"), kMaxCheckpointBytes);
  return ParseKubeletCheckpoint(text.value_or(""));
}

}  // namespace railhead::device_plugin
