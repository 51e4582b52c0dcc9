// SPDX-License-Identifier: Apache-2.0
//
// When an HCA that was in trouble is offered again. Pure: the caller gives the time.
//
// Trouble counts at once. The end of trouble counts when it has lasted, so that a link that comes
// and goes is not given to one pod after the other; the longer, the more often it came.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_STEADINESS_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_STEADINESS_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "device-plugin/kubelet/registration.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// Not thread-safe.
class Steadiness {
 public:
  struct Timing {
    Duration recover = std::chrono::seconds(10);  // well for so long: offered again
    Duration memory = std::chrono::minutes(10);   // how long a trouble is remembered
    int flaps = 3;                                // so many troubles in that time: it flaps
    Duration recover_flapping = std::chrono::minutes(2);
  };

  Steadiness() : Steadiness(Timing()) {}
  explicit Steadiness(const Timing& timing) : timing_(timing) {}

  // Takes what was just read, at `now`, and marks as unusable, with the reason, what has not been
  // well for long enough. An HCA that is seen for the first time is taken as it is. `link_downs`:
  // for each HCA by DeviceId its counter of lost links, where it has one; when it has grown, the
  // link was lost, even if it is back already.
  void Settle(const std::map<std::string, uint64_t>& link_downs, TimePoint now,
              fabric::NodeInventory& inventory);

 private:
  struct History {
    std::deque<TimePoint> troubles;  // when each of the latest began
    TimePoint last_bad;
    bool well = true;     // as it was read last
    bool offered = true;  // as Settle said last
    uint64_t link_downs = 0;
    bool has_link_downs = false;
  };

  Timing timing_;
  std::map<std::string, History> histories_;  // by DeviceId
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_STEADINESS_H_
