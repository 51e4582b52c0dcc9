// SPDX-License-Identifier: Apache-2.0
#include "runtime/perf/layout.h"

namespace railhead::perf {

Parts PartsOf(const Movement& movement, int ranks, int owner, size_t count) {
  // The last of an odd number of ranks has no partner.
  const auto has_partner = [ranks](int rank) { return (rank ^ 1) < ranks; };
  const bool both = movement.send == Shape::kPerRank && movement.receive == Shape::kPerRank;
  const size_t moved = movement.uneven && (!both || has_partner(owner)) ? (count + 1) / 2 : 0;
  const int flip = both ? owner % 2 : 0;
  Parts parts;
  size_t begin = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    size_t size = count;
    if (has_partner(rank)) size = rank % 2 == flip ? count - moved : count + moved;
    parts.counts.push_back(size);
    parts.begins.push_back(begin);
    begin += size;
  }
  return parts;
}

size_t Values(Shape shape, const Movement& movement, const Parts& parts, int rank, size_t count) {
  switch (shape) {
    case Shape::kNothing:
      return 0;
    case Shape::kOne:
      return movement.divides() ? parts.counts[static_cast<size_t>(rank)] : count;
    case Shape::kPerRank:
      return parts.total();
  }
  return 0;
}

size_t InPlaceOffset(const Movement& movement, const Parts& parts, int rank) {
  return movement.send == movement.receive ? 0 : parts.begins[static_cast<size_t>(rank)];
}

std::vector<Piece> Received(const Movement& movement, int ranks, int rank, int root, size_t count) {
  if (movement.receive == Shape::kNothing || (movement.to_root_only && rank != root)) return {};
  const auto source_of = [&](int part) {
    switch (movement.source) {
      case Source::kReduced:
        return kAllRanks;
      case Source::kRoot:
        return root;
      case Source::kPrevious:
        return (rank + ranks - 1) % ranks;
      case Source::kEach:
        return part;
    }
    return part;
  };
  const auto from_of = [&](int source) {
    if (movement.send != Shape::kPerRank) return size_t{0};
    const int owner = source == kAllRanks ? rank : source;
    return PartsOf(movement, ranks, owner, count).begins[static_cast<size_t>(rank)];
  };
  const Parts parts = PartsOf(movement, ranks, rank, count);
  if (movement.receive == Shape::kOne) {
    const int source = source_of(rank);
    return {{source, from_of(source), 0, Values(Shape::kOne, movement, parts, rank, count)}};
  }
  std::vector<Piece> pieces;
  for (int part = 0; part < ranks; ++part) {
    const auto index = static_cast<size_t>(part);
    const int source = source_of(part);
    pieces.push_back({source, from_of(source), parts.begins[index], parts.counts[index]});
  }
  return pieces;
}

}  // namespace railhead::perf
