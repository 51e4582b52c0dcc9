// SPDX-License-Identifier: Apache-2.0
//
// Facts about the start of a communicator, for metrics.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_START_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_START_H_

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/comm/setup/setup.h"
#include "runtime/metrics/start.h"

namespace railhead::comm {

// Returns what the metrics page reports about a rank's start.
metrics::Start DescribeStart(const SetupOptions& options, const Fabric& fabric, int world_size);

// Returns the size in bytes of the file system at ROOT/dev/shm; nullopt if there is none.
std::optional<uint64_t> SharedMemorySize(const std::string& root);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_START_H_
