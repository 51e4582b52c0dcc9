// SPDX-License-Identifier: Apache-2.0
//
// Names of switches and nodes as label values that sort as the names do.
#ifndef RAILHEAD_PLACEMENT_TOPOLOGY_PLACE_VALUE_H_
#define RAILHEAD_PLACEMENT_TOPOLOGY_PLACE_VALUE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace railhead::topology {

// A valid, non-empty label value of at most 63 characters. Bytes of values compare as names do in
// natural order, where numbers count as numbers: each has five digits at least ("lf7" is
// "lf00007"). It depends on the name alone, so that nothing is numbered anew when something is
// added or taken away.
//
// What a value cannot hold is left out, and eight hexadecimal digits of a hash of the name are
// added: such values still sort by what is left. Of a name that is too long, all letters between
// two numbers are cut to as many as there is room for, so that all numbers stay: names of hosts,
// which differ in their numbers, sort as before. Names that differ in leading zeros alone have the
// same value.
std::string PlaceValue(absl::string_view name);

// The same as a name of a Kubernetes object: small letters, digits and '-'.
std::string ObjectName(absl::string_view name);

}  // namespace railhead::topology

#endif  // RAILHEAD_PLACEMENT_TOPOLOGY_PLACE_VALUE_H_
