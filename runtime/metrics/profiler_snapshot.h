// SPDX-License-Identifier: Apache-2.0
//
// What the profiler of another library (plugins/nccl) has counted in this process, as values for
// the metrics page. Empty for Railhead's own communicators.
#ifndef RAILHEAD_RUNTIME_METRICS_PROFILER_SNAPSHOT_H_
#define RAILHEAD_RUNTIME_METRICS_PROFILER_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace railhead::metrics {

// Operations whose duration is unknown, because they did not use the network.
struct UntimedOperations {
  std::string collective;
  uint64_t operations = 0;
};

// Time that the transfers of collectives waited for the same cause, summed over channels and peers.
struct WaitTime {
  std::string collective;  // "other_process": transfers for another process of the node
  size_t size_class = 0;   // of kSizeClasses
  std::string direction;   // "send" or "receive"
  std::string cause;
  double seconds = 0;
};

struct ProfilerEvents {
  std::string event;  // "collective"
  uint64_t started = 0;
  uint64_t stopped = 0;
};

// A rank that sends nothing while this rank waits for its data.
struct SilentPeer {
  std::string comm;  // name of the communicator; "" if none
  int peer = 0;      // rank in the communicator
  double seconds = 0;
};

struct ProfilerSnapshot {
  std::vector<UntimedOperations> untimed;
  std::vector<WaitTime> waits;
  std::vector<ProfilerEvents> events;
  uint64_t dropped = 0;            // events without room
  std::vector<SilentPeer> silent;  // the first ones only
  uint64_t silent_peers = 0;       // all
};

// Adds the counts of another communicator's profiler.
void Add(const ProfilerSnapshot& other, ProfilerSnapshot& sum);

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_PROFILER_SNAPSHOT_H_
