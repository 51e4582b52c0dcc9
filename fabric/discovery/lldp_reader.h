// SPDX-License-Identifier: Apache-2.0
//
// LLDP neighbours as lldpd's lldpcli prints them.
#ifndef RAILHEAD_FABRIC_DISCOVERY_LLDP_READER_H_
#define RAILHEAD_FABRIC_DISCOVERY_LLDP_READER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fabric/discovery/json_text.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// Reads what these print, of one speaker or of many one after the other, in lldpcli's formats json
// and json0 (lldpd 1.0):
//
//   lldpcli -f json show chassis; lldpcli -f json show neighbors details
//
// The first says whose neighbours follow: lldpcli does not say it with them. A speaker may be a
// node or a switch. Neighbours by other protocols (CDP and the like) are left out.
//
// InvalidArgument says source, line and field.
absl::StatusOr<Observations> ReadLldp(const std::vector<JsonValue>& texts,
                                      absl::string_view source);

// Whether a text is one of these.
bool IsLldp(const JsonValue& text);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_LLDP_READER_H_
