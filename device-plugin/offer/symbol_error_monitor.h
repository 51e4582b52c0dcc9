// SPDX-License-Identifier: Apache-2.0
//
// Detects links that are up but have too many symbol errors. Pure: the caller passes the time.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_SYMBOL_ERROR_MONITOR_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_SYMBOL_ERROR_MONITOR_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "device-plugin/devices/time_point.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// Not thread-safe. Used by NextState after each scan.
class SymbolErrorMonitor {
 public:
  // A healthy link has a few symbol errors per hour, without those corrected by FEC; a bad cable
  // has thousands per minute.
  struct Limit {
    uint64_t errors = 100;
    Duration within = std::chrono::minutes(1);
  };

  SymbolErrorMonitor() : SymbolErrorMonitor(Limit()) {}
  explicit SymbolErrorMonitor(const Limit& limit) : limit_(limit) {}

  // Takes the counters just read (by DeviceId, if there is one) and sets the fault of each HCA:
  // whether it is above the limit.
  void Mark(const std::map<std::string, uint64_t>& counts, TimePoint now,
            fabric::NodeInventory& inventory);

 private:
  Limit limit_;
  // By DeviceId: time and value of readings within `within`, oldest first.
  std::map<std::string, std::deque<std::pair<TimePoint, uint64_t>>> readings_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_SYMBOL_ERROR_MONITOR_H_
