// SPDX-License-Identifier: Apache-2.0
//
// Which links are up and yet too noisy to give to a pod. Pure: the caller gives the time.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_SYMBOL_RATE_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_SYMBOL_RATE_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "device-plugin/kubelet/registration.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// Not thread-safe.
class SymbolRate {
 public:
  // A sound link has a handful of symbol errors an hour; those that forward error correction has
  // mended do not count. A bad cable has thousands a minute.
  struct Limit {
    uint64_t errors = 100;
    Duration within = std::chrono::minutes(1);
  };

  SymbolRate() : SymbolRate(Limit()) {}
  explicit SymbolRate(const Limit& limit) : limit_(limit) {}

  // Takes the counters that were just read (by DeviceId, where it has one) and marks as unusable,
  // with the reason, what has had too many errors lately.
  void Mark(const std::map<std::string, uint64_t>& counts, TimePoint now,
            fabric::NodeInventory& inventory);

 private:
  Limit limit_;
  // By DeviceId: what was read when, the oldest first, no longer ago than `within`.
  std::map<std::string, std::deque<std::pair<TimePoint, uint64_t>>> readings_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_SYMBOL_RATE_H_
