// SPDX-License-Identifier: Apache-2.0
//
// Reads port counters without waiting for a NIC whose firmware hangs: reading a file of it blocks.
// Used by MetricsPage.
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_COUNTER_READER_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_COUNTER_READER_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/port_counters.h"

namespace railhead::device_plugin {

// Name of an HCA, and number of one of its ports.
using Port = std::pair<std::string, int>;

class CounterReader {
 public:
  using ReadPort = std::function<fabric::PortCounters(const Port& port)>;

  // `read` is called on other threads, even after the end of this object. It must not throw.
  CounterReader(ReadPort read, std::chrono::milliseconds patience);

  // Returns the counters of these ports. Omits an HCA if reading one of its ports takes longer than
  // the constructor's limit, until that reading ends; such a reading occupies one thread. One call
  // at a time.
  std::map<Port, fabric::PortCounters> Read(std::vector<Port> ports);

 private:
  struct Shared;

  const std::chrono::milliseconds patience_;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_COUNTER_READER_H_
