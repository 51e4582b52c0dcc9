// SPDX-License-Identifier: Apache-2.0
//
// Reader of LLDP neighbours in lldpcli's format.
#ifndef RAILHEAD_FABRIC_DISCOVERY_LLDP_READER_H_
#define RAILHEAD_FABRIC_DISCOVERY_LLDP_READER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json/json_text.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// Reads the output of these commands, of one speaker or several in sequence, in lldpcli's formats
// json and json0 (lldpd 1.0):
//
//   lldpcli -f json show chassis; lldpcli -f json show neighbors details
//
// The first names the speaker of the neighbours that follow, which their output lacks. A speaker
// may be a node or a switch. Neighbours by other protocols (CDP and the like) are ignored.
//
// InvalidArgument gives source, line and field.
absl::StatusOr<Observations> ReadLldp(const std::vector<JsonValue>& texts,
                                      absl::string_view source);

// Returns true if a text is such output.
bool IsLldp(const JsonValue& text);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_LLDP_READER_H_
