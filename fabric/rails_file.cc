// SPDX-License-Identifier: Apache-2.0
#include "fabric/rails_file.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"

namespace railhead::fabric {
namespace {

constexpr size_t kRailsFileLimit = size_t{1} << 20;

}  // namespace

absl::StatusOr<PodRails> ReadRailsFile(const std::string& root, const std::string& file) {
  const absl::StatusOr<std::string> text = ReadWholeFile(
      absl::StrCat(absl::StripSuffix(root, "/"), absl::StartsWith(file, "/") ? "" : "/", file),
      kRailsFileLimit);
  if (!text.ok()) return text.status();
  absl::StatusOr<PodRails> rails = ParsePodRails(*text);
  if (rails.ok()) return rails;
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", rails.status().message()));
}

}  // namespace railhead::fabric
