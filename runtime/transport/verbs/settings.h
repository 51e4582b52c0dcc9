// SPDX-License-Identifier: Apache-2.0
//
// Packet settings of a job's RDMA rails, from its user's variables.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_SETTINGS_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_SETTINGS_H_

#include <cstdint>

namespace railhead::transport {

// Maximum queue pairs of a connection.
inline constexpr uint8_t kMostQpsPerRail = 8;

struct VerbsSettings {
  // In the IP header (RoCE) and global route (InfiniBand): DSCP times 4, plus ECN bits.
  uint8_t traffic_class = 0;
  // InfiniBand: 0 to 15. RoCE: the priority in the VLAN tag, 0 to 7.
  uint8_t service_level = 0;
  // Partition to use, with or without the full-member bit; 0: any common one.
  uint16_t pkey = 0;
  // Queue pairs per connection, 1 to kMostQpsPerRail; the smaller of both sides' values. iWARP:
  // always one.
  uint8_t qps_per_rail = 1;
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_SETTINGS_H_
