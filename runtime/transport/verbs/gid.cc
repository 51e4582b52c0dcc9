// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/gid.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace railhead::transport::verbs {
namespace {

// An address vector has eight bits for the index; tables may be longer.
constexpr uint32_t kMaxGidIndex = 255;

enum class Family { kNone, kIpv4, kIpv6, kLinkLocal };

constexpr std::array<uint8_t, 12> kIpv4Mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

Gid GidOf(const net::IpAddress& address) {
  Gid gid = {};
  const std::string bytes = address.Bytes();
  if (address.is_v4()) std::copy(kIpv4Mapped.begin(), kIpv4Mapped.end(), gid.begin());
  std::copy(bytes.rbegin(), bytes.rend(), gid.rbegin());
  return gid;
}

Family FamilyOf(const Gid& gid) {
  if (std::equal(kIpv4Mapped.begin(), kIpv4Mapped.end(), gid.begin())) {
    const bool any = std::any_of(gid.begin() + 12, gid.end(), [](uint8_t b) { return b != 0; });
    return any ? Family::kIpv4 : Family::kNone;
  }
  // The interface half decides: InfiniBand shows fe80:: with a zero GUID for an unset entry.
  if (std::all_of(gid.begin() + 8, gid.end(), [](uint8_t b) { return b == 0; })) {
    return Family::kNone;
  }
  if (gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80) return Family::kLinkLocal;
  return Family::kIpv6;
}

std::optional<GidKind> KindOf(const Gid& gid, uint32_t type, bool infiniband) {
  const Family family = FamilyOf(gid);
  if (family == Family::kNone) return std::nullopt;
  if (infiniband) {
    if (type != IBV_GID_TYPE_IB) return std::nullopt;
    return GidKind::kInfiniband;
  }
  if (type == IBV_GID_TYPE_ROCE_V2) {
    if (family == Family::kIpv4) return GidKind::kRoceV2Ipv4;
    return family == Family::kIpv6 ? GidKind::kRoceV2Ipv6 : GidKind::kRoceV2LinkLocal;
  }
  if (type == IBV_GID_TYPE_ROCE_V1) {
    if (family == Family::kIpv4) return GidKind::kRoceV1Ipv4;
    return family == Family::kIpv6 ? GidKind::kRoceV1Ipv6 : GidKind::kRoceV1LinkLocal;
  }
  return std::nullopt;
}

}  // namespace

absl::string_view GidKindName(GidKind kind) {
  switch (kind) {
    case GidKind::kInfiniband:
      return "InfiniBand";
    case GidKind::kRoceV2Ipv4:
      return "RoCE v2 over IPv4";
    case GidKind::kRoceV2Ipv6:
      return "RoCE v2 over IPv6";
    case GidKind::kRoceV2LinkLocal:
      return "RoCE v2 over link-local IPv6";
    case GidKind::kRoceV1Ipv4:
      return "RoCE v1 (IPv4)";
    case GidKind::kRoceV1Ipv6:
      return "RoCE v1 (IPv6)";
    case GidKind::kRoceV1LinkLocal:
      return "RoCE v1 (link-local)";
  }
  return "unknown";
}

std::string GidText(const Gid& gid) {
  char text[INET6_ADDRSTRLEN] = {};
  if (FamilyOf(gid) == Family::kIpv4) {
    inet_ntop(AF_INET, gid.data() + 12, text, sizeof(text));
  } else {
    inet_ntop(AF_INET6, gid.data(), text, sizeof(text));
  }
  return text;
}

bool GidFitsKind(const Gid& gid, GidKind kind) {
  const Family family = FamilyOf(gid);
  switch (kind) {
    case GidKind::kInfiniband:
      return family != Family::kNone;
    case GidKind::kRoceV2Ipv4:
    case GidKind::kRoceV1Ipv4:
      return family == Family::kIpv4;
    case GidKind::kRoceV2Ipv6:
    case GidKind::kRoceV1Ipv6:
      return family == Family::kIpv6;
    case GidKind::kRoceV2LinkLocal:
    case GidKind::kRoceV1LinkLocal:
      return family == Family::kLinkLocal;
  }
  return false;
}

std::vector<GidChoice> UsableGids(absl::Span<const ibv_gid_entry> table, uint32_t port,
                                  bool infiniband, absl::Span<const net::IpAddress> own,
                                  const std::set<uint32_t>& node) {
  std::vector<GidChoice> usable;
  for (const ibv_gid_entry& entry : table) {
    if (entry.port_num != port || entry.gid_index > kMaxGidIndex) continue;
    Gid gid;
    std::memcpy(gid.data(), entry.gid.raw, gid.size());
    const std::optional<GidKind> kind = KindOf(gid, entry.gid_type, infiniband);
    if (kind.has_value()) usable.push_back({*kind, entry.gid_index, gid});
  }
  const auto is_own = [own](const GidChoice& choice) {
    return std::any_of(own.begin(), own.end(), [&choice](const net::IpAddress& address) {
      return GidOf(address) == choice.gid;
    });
  };
  const auto is_routable_of_node = [&node](const GidChoice& choice) {
    const Family family = FamilyOf(choice.gid);
    return node.contains(choice.index) && (family == Family::kIpv4 || family == Family::kIpv6);
  };
  if (!infiniband && std::any_of(usable.begin(), usable.end(), is_own)) {
    std::erase_if(usable, [&](const GidChoice& choice) { return !is_own(choice); });
  } else if (!infiniband && std::any_of(usable.begin(), usable.end(), is_routable_of_node)) {
    std::erase_if(usable, [&](const GidChoice& choice) { return !node.contains(choice.index); });
  }
  std::array<std::optional<GidChoice>, kGidKinds + 1> best;
  for (const GidChoice& choice : usable) {
    std::optional<GidChoice>& slot = best[static_cast<size_t>(choice.kind)];
    if (!slot.has_value() || choice.index < slot->index) slot = choice;
  }
  std::vector<GidChoice> choices;
  for (const std::optional<GidChoice>& choice : best) {
    if (choice.has_value()) choices.push_back(*choice);
  }
  return choices;
}

std::optional<GidPair> CommonGids(absl::Span<const GidChoice> local,
                                  absl::Span<const GidChoice> peer) {
  std::optional<GidPair> best;
  for (const GidChoice& mine : local) {
    for (const GidChoice& theirs : peer) {
      if (mine.kind != theirs.kind) continue;
      if (!best.has_value() || mine.kind < best->local.kind) best = GidPair{mine, theirs};
    }
  }
  return best;
}

}  // namespace railhead::transport::verbs
