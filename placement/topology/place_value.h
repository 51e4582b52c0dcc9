// SPDX-License-Identifier: Apache-2.0
//
// Names of switches and nodes as label values that sort like the names. Pure.
#ifndef RAILHEAD_PLACEMENT_TOPOLOGY_PLACE_VALUE_H_
#define RAILHEAD_PLACEMENT_TOPOLOGY_PLACE_VALUE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace railhead::topology {

// Returns a valid, non-empty label value of at most 63 characters. Byte order of values is the
// natural order of names: numbers are padded to at least five digits ("lf7" becomes "lf00007"). The
// value depends on the name only, so adding or removing a switch renumbers nothing.
//
// If a name contains characters that a value cannot hold, these are dropped and eight hexadecimal
// digits of a hash of the name are appended. Such values sort by the remaining characters. If a
// name is too long, all runs of letters between two numbers are cut to the length that fits, so all
// numbers remain. Host names, which differ in numbers, keep their order. Names that differ in
// leading zeros only have the same value.
std::string PlaceValue(absl::string_view name);

// Returns the same as the name of a Kubernetes object: lower-case letters, digits and '-'.
std::string ObjectName(absl::string_view name);

}  // namespace railhead::topology

#endif  // RAILHEAD_PLACEMENT_TOPOLOGY_PLACE_VALUE_H_
