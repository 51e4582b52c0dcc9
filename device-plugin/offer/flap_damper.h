// SPDX-License-Identifier: Apache-2.0
//
// Flap damping: decides when an HCA that failed is offered to kubelet again.
//
// Failure takes effect at once; recovery after 10 healthy seconds, or 2 minutes if the HCA failed 3
// times within 10 minutes. The link_downed counter reveals failures between scans. Pure: the caller
// passes the time.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_FLAP_DAMPER_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_FLAP_DAMPER_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "device-plugin/devices/time_point.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// Not thread-safe. Used by NextState after each scan.
class FlapDamper {
 public:
  struct Timing {
    Duration recover = std::chrono::seconds(10);  // healthy time before it is offered again
    Duration memory = std::chrono::minutes(10);   // failures older than this are forgotten
    int flaps = 3;  // number of failures within `memory` that is flapping
    Duration recover_flapping = std::chrono::minutes(2);
  };

  FlapDamper() : FlapDamper(Timing()) {}
  explicit FlapDamper(const Timing& timing) : timing_(timing) {}

  // Takes the state just read and sets the fault of each HCA: whether it flaps, or has not
  // recovered for long enough. A new HCA is taken as it is. `link_downs`: counter of lost links by
  // DeviceId, if any; an increase is a failure, even if the link is up again. `away`: DeviceIds of
  // HCAs whose link goes down because a CNI plugin moves their interface into a pod, or back;
  // increases until the first reading after that do not count.
  void Settle(const std::map<std::string, uint64_t>& link_downs, const std::set<std::string>& away,
              TimePoint now, fabric::NodeInventory& inventory);

 private:
  struct History {
    std::deque<TimePoint> troubles;  // start of each recent failure
    TimePoint last_bad;
    bool well = true;     // last read
    bool offered = true;  // result of the last Settle
    uint64_t link_downs = 0;
    bool has_link_downs = false;
  };

  Timing timing_;
  std::map<std::string, History> histories_;  // by DeviceId
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_FLAP_DAMPER_H_
