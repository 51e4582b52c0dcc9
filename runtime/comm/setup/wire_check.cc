// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/wire_check.h"

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/halt.h"
#include "runtime/base/now.h"
#include "runtime/net/route.h"

namespace railhead::comm {
namespace {

// Less may be hidden in the traffic of others.
constexpr uint64_t kLeastBytes = uint64_t{16} << 10U;
constexpr absl::Duration kBetweenLooks = absl::Milliseconds(20);

bool IsElsewhere(const net::IpAddress& own, const std::string& partner) {
  const absl::StatusOr<transport::Acceptor::Place> place = transport::Acceptor::ParsePlace(partner);
  if (!place.ok() || place->port == 0) return false;
  const absl::StatusOr<net::Route> route = net::FindRoute(own, place->ip);
  return route.ok() && !route->local;
}

// Returns what the interface has sent since `before`; nullopt if it cannot be read.
std::optional<uint64_t> Counted(const std::string& interface, uint64_t before) {
  const absl::StatusOr<net::Interface> now = net::ReadInterface(interface);
  if (!now.ok() || now->sent_bytes < before) return std::nullopt;
  return now->sent_bytes - before;
}

}  // namespace

bool Carries(uint64_t rail_sent, uint64_t interface_counted) {
  return rail_sent < kLeastBytes || interface_counted >= rail_sent / 2;
}

WireCheck::WireCheck(std::vector<Wire> wires) {
  for (Wire& wire : wires) {
    Entry& entry = entries_[wire.rail.rail];
    entry.wire = std::move(wire);
    const std::shared_ptr<transport::RailInterface> interface = entry.wire.acceptor->interface();
    if (interface == nullptr || !interface->is_nic() ||
        !IsElsewhere(entry.wire.acceptor->own().ip, entry.wire.partner)) {
      continue;
    }
    const absl::StatusOr<net::Interface> before = net::ReadInterface(interface->name());
    if (!before.ok()) continue;
    entry.measured = interface;
    entry.counted = before->sent_bytes;
  }
}

std::vector<std::string> WireCheck::Check(absl::Span<const rails::RailTotals> totals,
                                          absl::Duration patience) {
  std::vector<std::string> warnings;
  const absl::Time deadline = MonotonicNow() + patience;
  for (const rails::RailTotals& rail : totals) {
    const auto found = entries_.find(rail.name.rail);
    if (found == entries_.end() || found->second.measured == nullptr) continue;
    Entry& entry = found->second;
    const transport::RailInterface& interface = *entry.measured;
    std::optional<uint64_t> counted = Counted(interface.name(), entry.counted);
    while (counted.has_value() && interface.leaves_by().empty() &&
           !Carries(rail.transmit_bytes, *counted) && MonotonicNow() < deadline) {
      SleepUntil(MonotonicNow() + kBetweenLooks, nullptr).IgnoreError();
      counted = Counted(interface.name(), entry.counted);
    }
    if (!counted.has_value() || !interface.leaves_by().empty() ||
        Carries(rail.transmit_bytes, *counted)) {
      continue;
    }
    entry.trouble = absl::StrCat(rails::ToString(entry.wire.rail), ": it has sent ",
                                 rail.transmit_bytes, " bytes, but ", interface.name(),
                                 " has counted ", *counted, ": other interfaces carry them");
    warnings.push_back(absl::StrCat(entry.trouble, "; ", interface.Advice()));
  }
  return warnings;
}

std::string WireCheck::TroubleOf(int rail) const {
  const auto found = entries_.find(rail);
  if (found == entries_.end()) return "";
  const std::shared_ptr<transport::RailInterface> now = found->second.wire.acceptor->interface();
  const std::string trouble = now != nullptr ? now->trouble() : "";
  return trouble.empty() ? found->second.trouble : trouble;
}

std::string WireCheck::Trouble() const {
  std::string all;
  for (const auto& [rail, entry] : entries_) {
    const std::string trouble = TroubleOf(rail);
    if (trouble.empty()) continue;
    const std::shared_ptr<transport::RailInterface> now = entry.wire.acceptor->interface();
    absl::StrAppend(&all, all.empty() ? "" : "; ", trouble, "; ",
                    (now != nullptr ? now : entry.measured)->Advice());
  }
  return all;
}

std::string WireCheck::LeavesBy(int rail) const {
  const auto found = entries_.find(rail);
  if (found == entries_.end()) return "";
  const std::shared_ptr<transport::RailInterface> now = found->second.wire.acceptor->interface();
  return now != nullptr ? now->leaves_by() : "";
}

}  // namespace railhead::comm
