// SPDX-License-Identifier: Apache-2.0
//
// RAILHEAD_NCCL_TUNER: the rates of a node's rails, as they are and as NCCL was told. Pure.
//
// The value is a setting of the job, not a measurement of this process: every rank of a
// communicator must choose the same algorithm, NCCL lets each rank choose alone, and ranks measure
// different rates at different times.
#ifndef RAILHEAD_PLUGINS_NCCL_TUNER_NETWORK_RATES_H_
#define RAILHEAD_PLUGINS_NCCL_TUNER_NETWORK_RATES_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::nccl {

inline constexpr char kTunerVariable[] = "RAILHEAD_NCCL_TUNER";

// Sums over a node's rails, one direction, in Gbit/s. 0 < real <= told.
struct NetworkRates {
  double real = 0;
  double told = 0;

  bool operator==(const NetworkRates&) const = default;
};

// Returns whether the value requests the tuner: it is neither empty nor "off".
bool RequestsTuner(absl::string_view value);

// Parses "400/400,100/400": for each rail its rate, 0 for a lost one, and its speed. Returns
// InvalidArgument with the value and what is allowed.
absl::StatusOr<NetworkRates> ParseNetworkRates(absl::string_view value);

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_TUNER_NETWORK_RATES_H_
