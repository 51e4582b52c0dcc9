// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/communicator/congestion.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace railhead::comm {
namespace {

using fabric::PortCounter;
using fabric::PortCounters;

enum class Kind { kLost, kMarked };

struct Sign {
  PortCounter counter;
  Kind kind;
};

// Ticks without credit are excluded: the length of a tick depends on the adapter, so there is no
// meaningful limit.
constexpr Sign kSigns[] = {
    {&PortCounters::out_of_sequence, Kind::kLost},   {&PortCounters::retries, Kind::kLost},
    {&PortCounters::transmit_discards, Kind::kLost}, {&PortCounters::receive_discards, Kind::kLost},
    {&PortCounters::ecn_marked, Kind::kMarked},      {&PortCounters::cnp_sent, Kind::kMarked},
    {&PortCounters::cnp_handled, Kind::kMarked},
};

// Thresholds, in counts per second. Each loss makes a sender repeat all data in flight, so a few
// are expensive. RoCE uses marks and notifications to control its rate, and some are normal: 1000
// per second are one for every thousand packets of 4 KiB at 32 Gbit/s.
constexpr double kManyLost = 10;
constexpr double kManyMarked = 1000;

constexpr const char* kFixLost =
    "packets are lost in transit: make the rail's traffic class lossless on this NIC and on every "
    "switch port (PFC), or give its QoS class more buffer there";
constexpr const char* kFixMarked =
    "several senders share one queue: give this traffic its own QoS class, check that the "
    "switches' "
    "ECN thresholds and buffers fit its speed, or place the job's pods closer together";

const char* NameOf(PortCounter counter) {
  for (const fabric::PortCounterName& name : fabric::PortCounterNames()) {
    if (name.counter == counter) return name.name;
  }
  return "";
}

// Returns the increase of a counter.
uint64_t Rise(const PortCounters& before, const PortCounters& after, PortCounter counter) {
  const auto from = before.*counter;
  const auto to = after.*counter;
  return from.has_value() && to.has_value() && *to > *from ? *to - *from : 0;
}

// Returns "" if no counter has increased noticeably.
std::string Describe(const metrics::PortSnapshot& port, const PortCounters& before,
                     absl::Duration elapsed) {
  const double seconds = absl::ToDoubleSeconds(elapsed);
  std::vector<std::string> risen;
  bool lost = false;
  for (const Sign& sign : kSigns) {
    const uint64_t rise = Rise(before, port.counters, sign.counter);
    const double many = sign.kind == Kind::kLost ? kManyLost : kManyMarked;
    if (static_cast<double>(rise) < many * seconds) continue;
    lost = lost || sign.kind == Kind::kLost;
    risen.push_back(absl::StrCat(NameOf(sign.counter), " by ", rise));
  }
  if (risen.empty()) return "";
  return absl::StrCat(rails::ToString(port.name), " is congested: ", absl::StrJoin(risen, ", "),
                      absl::StrFormat(" in %.1f s", seconds),
                      " (counted by the port for all its users, also other jobs); ",
                      lost ? kFixLost : kFixMarked);
}

}  // namespace

std::vector<std::string> Congestion::Look(absl::Time now,
                                          absl::Span<const metrics::PortSnapshot> ports) {
  std::vector<std::string> warnings;
  for (const metrics::PortSnapshot& port : ports) {
    const auto [entry, first] = past_.try_emplace(port.name.rail);
    Past& past = entry->second;
    if (!first && now > past.seen && now >= past.told + kQuiet) {
      std::string text = Describe(port, past.counters, now - past.seen);
      if (!text.empty()) {
        past.told = now;
        warnings.push_back(std::move(text));
      }
    }
    past.seen = now;
    past.counters = port.counters;
  }
  return warnings;
}

}  // namespace railhead::comm
