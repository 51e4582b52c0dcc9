// SPDX-License-Identifier: Apache-2.0
//
// Short lists of names for the findings of topology discovery.
#ifndef RAILHEAD_FABRIC_DISCOVERY_LISTED_H_
#define RAILHEAD_FABRIC_DISCOVERY_LISTED_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace railhead::fabric {

// Formats a bounded list of names for a message: "a, b, c, d and 7 more".
inline std::string Listed(const std::vector<std::string>& names) {
  constexpr size_t kMaxNamed = 4;
  const size_t shown = std::min(names.size(), kMaxNamed);
  return absl::StrCat(
      absl::StrJoin(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      shown == names.size() ? "" : absl::StrCat(" and ", names.size() - shown, " more"));
}

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_LISTED_H_
