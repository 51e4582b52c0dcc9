// SPDX-License-Identifier: Apache-2.0
//
// Reads the struct by which a program sets how a communicator works. Its header may be an older or
// a newer one than this library's.
#ifndef RAILHEAD_RUNTIME_COMM_API_CONFIG_H_
#define RAILHEAD_RUNTIME_COMM_API_CONFIG_H_

#include <optional>

#include "absl/status/statusor.h"
#include "railhead/railhead.h"
#include "runtime/config/env.h"

namespace railhead::comm {

struct Config {
  std::optional<bool> blocking;
  config::Fields fields;  // those that are set, besides
};

// Null: nothing is set. InvalidArgument where the initializer has not made it, and where it sets
// what this library does not have; values are checked by config::Configure.
absl::StatusOr<Config> ReadConfig(const rhConfig_t* config);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_API_CONFIG_H_
