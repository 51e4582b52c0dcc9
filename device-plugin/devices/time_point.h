// SPDX-License-Identifier: Apache-2.0
//
// Monotonic time of the agent's decisions. Their callers pass it in: none of them reads a clock.
#ifndef RAILHEAD_DEVICE_PLUGIN_DEVICES_TIME_POINT_H_
#define RAILHEAD_DEVICE_PLUGIN_DEVICES_TIME_POINT_H_

#include <chrono>

namespace railhead::device_plugin {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_DEVICES_TIME_POINT_H_
