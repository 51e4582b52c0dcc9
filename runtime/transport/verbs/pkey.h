// SPDX-License-Identifier: Apache-2.0
//
// Choice of the partition of a queue pair. The subnet manager fills a port's table of P_Keys: 15
// bits identify a partition, the highest bit marks full members. Packets cross only between ports
// of one partition of which at least one is a full member (InfiniBand Architecture Specification,
// volume 1, 10.9); others are dropped silently. So both sides examine their tables and agree, as
// for GIDs.
//
// Pure: no device, no system call.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_PKEY_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_PKEY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace railhead::transport::verbs {

inline constexpr uint16_t kFullMember = 0x8000;
// Default partition: every port is a full member, unless the subnet manager is configured
// otherwise; the only one of RoCE.
inline constexpr uint16_t kDefaultPkey = 0xffff;
// Maximum number sent to the peer; a port with more partitions must name one (VerbsSettings).
inline constexpr size_t kMostPkeys = 32;

struct PkeyChoice {
  uint16_t index = 0;  // in the port's table
  uint16_t pkey = 0;
};

// Returns "0x8001"; for several, "0x8001, 0x7fff".
std::string PkeyText(uint16_t pkey);
std::string PkeyText(absl::Span<const uint16_t> pkeys);

// Returns true unless the entry is empty.
bool NamesPartition(uint16_t pkey);

// Returns the partitions of this table, best first, each once: full memberships, then others, by
// index. `wanted` restricts them to one partition; 0: all.
std::vector<PkeyChoice> UsablePkeys(absl::Span<const uint16_t> table, uint16_t wanted);

// Returns the part that is sent: the peer does not need indices.
std::vector<uint16_t> WithoutIndices(absl::Span<const PkeyChoice> choices);

// Returns this side's entry for the best common partition, by the sum of its positions in both
// lists, then by the lowest number; so both sides choose the same. Nullopt if there is none, or
// both are only limited members.
std::optional<PkeyChoice> CommonPkey(absl::Span<const PkeyChoice> local,
                                     absl::Span<const uint16_t> peer);

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_PKEY_H_
