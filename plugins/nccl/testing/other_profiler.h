// SPDX-License-Identifier: Apache-2.0
//
// What the profiler plugin of other_profiler.cc has counted, and how it shall behave.
#ifndef RAILHEAD_PLUGINS_NCCL_TESTING_OTHER_PROFILER_H_
#define RAILHEAD_PLUGINS_NCCL_TESTING_OTHER_PROFILER_H_

#include <cstdint>
#include <map>

namespace railhead::nccl {

struct OtherProfilerCounts {
  int mask = 0x1f | 0xf00;  // group, calls, steps; the API's events and launches
  bool fails = false;       // its start
  int opened = 0;
  int closed = 0;
  std::map<uint64_t, int> started;  // by type
  std::map<uint64_t, int> stopped;
  int states = 0;
  int errors = 0;  // handles and parents that are not its own, and stops that are repeated
};

// The library's function "otherProfilerCounts".
using OtherProfilerFunction = OtherProfilerCounts* (*)();

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_TESTING_OTHER_PROFILER_H_
