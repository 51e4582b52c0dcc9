// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_SETTINGS_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_SETTINGS_H_

#include <cstdint>

namespace railhead::transport {

// Queue pairs that a connection may have.
inline constexpr uint8_t kMostQpsPerRail = 8;

// How a job's packets travel, as its user asks for it.
struct VerbsSettings {
  // Of the IP header on RoCE and of the global route on InfiniBand: DSCP times 4, plus ECN bits.
  uint8_t traffic_class = 0;
  // InfiniBand: 0 to 15. RoCE: the priority in the VLAN tag, 0 to 7.
  uint8_t service_level = 0;
  // The partition to use, with or without the bit of full members; 0: one that both ports are in.
  uint16_t pkey = 0;
  // Queue pairs of each connection, 1 to kMostQpsPerRail; the two sides use the smaller number.
  // iWARP has one.
  uint8_t qps_per_rail = 1;
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_SETTINGS_H_
