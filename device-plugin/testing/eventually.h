// SPDX-License-Identifier: Apache-2.0
//
// For tests of the agent: waits for what its threads do.
#ifndef RAILHEAD_DEVICE_PLUGIN_TESTING_EVENTUALLY_H_
#define RAILHEAD_DEVICE_PLUGIN_TESTING_EVENTUALLY_H_

#include <chrono>
#include <functional>
#include <thread>

namespace railhead::device_plugin::testing {

// Whether the condition holds within a minute, which is long for a busy machine, too.
inline bool Eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace railhead::device_plugin::testing

#endif  // RAILHEAD_DEVICE_PLUGIN_TESTING_EVENTUALLY_H_
