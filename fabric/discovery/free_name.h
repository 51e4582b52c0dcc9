// SPDX-License-Identifier: Apache-2.0
//
// Unique names of domains that are discovered from cables or labels.
#ifndef RAILHEAD_FABRIC_DISCOVERY_FREE_NAME_H_
#define RAILHEAD_FABRIC_DISCOVERY_FREE_NAME_H_

#include <set>
#include <string>

#include "absl/strings/str_cat.h"

namespace railhead::fabric {

// Returns the name, with a counter if it is taken, and adds it to `taken`.
inline std::string FreeName(const std::string& name, std::set<std::string>& taken) {
  std::string free = name;
  for (int i = 2; !taken.insert(free).second; ++i) free = absl::StrCat(name, "-", i);
  return free;
}

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_FREE_NAME_H_
