// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/files/rails_files.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "device-plugin/devices/rails_file_name.h"
#include "device-plugin/files/atomic_file.h"
#include "device-plugin/holdings/holdings.h"
#include "fabric/pod_rails.h"

namespace railhead::device_plugin {
namespace {

// True as well for a file that cannot be read now, as a container may have mounted it.
bool MayHoldUsedDevice(const std::string& path, const std::set<std::string>& in_use) {
  const std::optional<std::string> text = ReadFile(path);
  if (!text.has_value() && MayBeReadable(path)) return true;
  const absl::StatusOr<fabric::PodRails> rails = fabric::ParsePodRails(text.value_or(""));
  if (!rails.ok()) return false;  // no container can use it
  return std::any_of(rails->rails.begin(), rails->rails.end(), [&](const fabric::PodRail& rail) {
    return MayBeAmong(in_use, rail.device, rail.pci_address);
  });
}

}  // namespace

absl::StatusOr<std::string> RailsFiles::Store(const fabric::PodRails& rails) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return StoreByContent(folder_, kRailsPrefix, kRailsSuffix, fabric::ToJson(rails));
}

std::optional<fabric::PodRails> RailsFiles::Read(const std::string& digits) const {
  const std::optional<std::string> text =
      ReadFile(absl::StrCat(folder_, "/", kRailsPrefix, digits, kRailsSuffix));
  if (!text.has_value()) return std::nullopt;
  absl::StatusOr<fabric::PodRails> rails = fabric::ParsePodRails(*text);
  if (!rails.ok()) return std::nullopt;
  return *std::move(rails);
}

bool RailsFiles::HasFilesUntil(absl::Time limit) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return AnyNotYoungerThan(ListFiles(folder_, kRailsPrefix, kRailsSuffix), limit);
}

absl::Status RailsFiles::Collect(const std::set<std::string>& in_use, absl::Time limit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  absl::Status status;
  for (const std::string& path : ListFiles(folder_, kRailsPrefix, kRailsSuffix)) {
    if (!NotYoungerThan(path, limit) || MayHoldUsedDevice(path, in_use)) continue;
    status.Update(RemoveFile(path));
  }
  status.Update(RemoveEmptyFolder(folder_));
  return status;
}

}  // namespace railhead::device_plugin
