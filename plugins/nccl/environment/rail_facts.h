// SPDX-License-Identifier: Apache-2.0
//
// Reads what the environment plugin knows of this process's rails: files only, no device is opened
// and no thread started, because NCCL asks before anything else, also in programs that never make a
// communicator.
#ifndef RAILHEAD_PLUGINS_NCCL_ENVIRONMENT_RAIL_FACTS_H_
#define RAILHEAD_PLUGINS_NCCL_ENVIRONMENT_RAIL_FACTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "plugins/nccl/environment/variables.h"
#include "runtime/config/env.h"
#include "runtime/net/address.h"

namespace railhead::nccl {

// `root`: directory in which the rails file and /sys are looked up. `own`: addresses of this
// network namespace. NotFound without a rails file; InvalidArgument names it and what is wrong.
absl::StatusOr<RailFacts> ReadRailFacts(const std::string& root, const config::Settings& settings,
                                        absl::Span<const net::IpAddress> own);

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_ENVIRONMENT_RAIL_FACTS_H_
