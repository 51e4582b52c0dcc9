// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/environment/gid_index.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/transport/verbs/gid.h"

namespace railhead::nccl {
namespace {

using transport::verbs::GidChoice;
using transport::verbs::GidKind;

constexpr uint32_t kPort = 1;  // of all entries of a table here

bool IsOneOf(absl::Span<const net::IpAddress> addresses, const transport::verbs::Gid& gid) {
  const absl::StatusOr<net::IpAddress> address = net::IpAddress::FromBytes(
      absl::string_view(reinterpret_cast<const char*>(gid.data()), gid.size()));
  return address.ok() && std::find(addresses.begin(), addresses.end(), *address) != addresses.end();
}

// Returns the best entry of a table whose address is in `own`.
std::optional<GidChoice> OwnGid(const std::vector<fabric::GidEntry>& table,
                                absl::Span<const net::IpAddress> own) {
  std::vector<ibv_gid_entry> entries;
  for (const fabric::GidEntry& entry : table) {
    if (entry.type != "RoCE v2") continue;
    ibv_gid_entry& added = entries.emplace_back();
    added.gid_index = static_cast<uint32_t>(entry.index);
    added.port_num = kPort;
    added.gid_type = IBV_GID_TYPE_ROCE_V2;
    if (::inet_pton(AF_INET6, entry.gid.c_str(), added.gid.raw) != 1) entries.pop_back();
  }
  const std::vector<GidChoice> usable =
      transport::verbs::UsableGids(entries, kPort, /*infiniband=*/false, own);
  if (usable.empty() || usable.front().kind == GidKind::kRoceV2LinkLocal ||
      !IsOneOf(own, usable.front().gid)) {
    return std::nullopt;
  }
  return usable.front();
}

}  // namespace

std::optional<int> ChooseGidIndex(absl::Span<const std::vector<fabric::GidEntry>> tables,
                                  absl::Span<const net::IpAddress> own) {
  std::optional<GidChoice> common;
  for (const std::vector<fabric::GidEntry>& table : tables) {
    const std::optional<GidChoice> found = OwnGid(table, own);
    if (!found.has_value()) return std::nullopt;
    if (!common.has_value()) common = found;
    if (found->index != common->index || found->kind != common->kind) return std::nullopt;
  }
  if (!common.has_value()) return std::nullopt;
  return static_cast<int>(common->index);
}

}  // namespace railhead::nccl
