// SPDX-License-Identifier: Apache-2.0
//
// Parser of rhConfig_t, with which a program configures a communicator. The program's header may be
// older or newer than the library.
#ifndef RAILHEAD_RUNTIME_COMM_API_CONFIG_H_
#define RAILHEAD_RUNTIME_COMM_API_CONFIG_H_

#include <optional>

#include "absl/status/statusor.h"
#include "railhead/railhead.h"
#include "runtime/config/env.h"

namespace railhead::comm {

struct Config {
  std::optional<bool> blocking;
  config::Fields fields;  // the other fields that are set
};

// Null sets nothing. Returns InvalidArgument if the struct was not initialized with
// RH_CONFIG_INITIALIZER, or sets a field that this library does not have. config::Configure checks
// the values.
absl::StatusOr<Config> ReadConfig(const rhConfig_t* config);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_API_CONFIG_H_
