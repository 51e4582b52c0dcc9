// SPDX-License-Identifier: Apache-2.0
//
// Which partition a queue pair is in. A port has a table of P_Keys, which the subnet manager fills:
// 15 bits name a partition, and the highest bit says whether the port is a full member of it.
// Packets cross only between ports of one partition of which at least one is a full member
// (InfiniBand Architecture Specification, volume 1, 10.9). Everything else is lost without a
// word, so both sides look at their tables and agree, as they do about GIDs.
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
// The partition that every port is in, unless the subnet manager is told otherwise, as a full
// member; all that RoCE has.
inline constexpr uint16_t kDefaultPkey = 0xffff;
// So many of a port are told to the peer; a port with more partitions names one (VerbsSettings).
inline constexpr size_t kMostPkeys = 32;

struct PkeyChoice {
  uint16_t index = 0;  // in the port's table
  uint16_t pkey = 0;
};

// "0x8001", and of several "0x8001, 0x7fff".
std::string PkeyText(uint16_t pkey);
std::string PkeyText(absl::Span<const uint16_t> pkeys);

// Whether it names a partition: empty entries of a table do not.
bool NamesPartition(uint16_t pkey);

// What a port with this table offers, best first, each partition once: those that it is a full
// member of, and then the others, by their index. With `wanted`, no other partition than this one;
// 0: all.
std::vector<PkeyChoice> UsablePkeys(absl::Span<const uint16_t> table, uint16_t wanted);

// What travels of them: a peer has no use for the indices.
std::vector<uint16_t> WithoutIndices(absl::Span<const PkeyChoice> choices);

// This side's entry for the partition that both offers like best, by the sum of its two places; of
// several, the one with the lowest number. So both sides find the same partition. Nothing when they
// have none in common, or are both but limited members of what they have.
std::optional<PkeyChoice> CommonPkey(absl::Span<const PkeyChoice> local,
                                     absl::Span<const uint16_t> peer);

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_PKEY_H_
