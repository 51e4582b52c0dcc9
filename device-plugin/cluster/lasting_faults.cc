// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/lasting_faults.h"

#include <string>
#include <utility>
#include <vector>

namespace railhead::device_plugin {

void LastingFaults::Begin(const std::string& fault, kube::Event event, Clock::time_point now) {
  faults_[fault] = {std::move(event), now + interval_};
}

std::vector<kube::Event> LastingFaults::TakeDue(Clock::time_point now) {
  std::vector<kube::Event> due;
  for (auto& [name, fault] : faults_) {
    if (now < fault.due) continue;
    fault.due = now + interval_;
    due.push_back(fault.event);
  }
  return due;
}

}  // namespace railhead::device_plugin
