// SPDX-License-Identifier: Apache-2.0
#include "cli/sizing.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace railhead::cli {
namespace {

constexpr double kMostParameters = 1e15;
// Rounding error of a double that should be an integer.
constexpr double kRounding = 1e-9;

double FactorOf(int replicas) { return 2.0 * (replicas - 1) / replicas; }

// A larger number of nodes counts as this one, and does not fit.
constexpr int kMostNodes = 1'000'000'000;

int RoundedUp(double number) {
  return static_cast<int>(std::min<double>(std::ceil(number - kRounding), kMostNodes));
}

// Computes all fields except the number of replicas.
Sizing WithFactor(const SizingRequest& request, double factor) {
  Sizing sizing;
  sizing.gradient_bytes = request.parameters * request.bytes_each;
  sizing.factor = factor;
  sizing.traffic_bytes = factor * sizing.gradient_bytes;
  sizing.needed_bytes_per_second = sizing.traffic_bytes / request.seconds;
  const double rail = request.rail_gbps * 1e9 / 8 * request.efficiency;
  sizing.node_bytes_per_second = rail * request.rails;
  sizing.nodes_per_replica =
      std::max(1, RoundedUp(sizing.needed_bytes_per_second / sizing.node_bytes_per_second));
  sizing.fits = sizing.nodes_per_replica < kMostNodes;
  sizing.rails_per_node =
      std::clamp(RoundedUp(sizing.needed_bytes_per_second / sizing.nodes_per_replica / rail), 1,
                 request.rails);
  sizing.seconds = sizing.traffic_bytes / sizing.nodes_per_replica / sizing.node_bytes_per_second;
  return sizing;
}

Sizing WithReplicas(const SizingRequest& request, int replicas) {
  Sizing sizing = WithFactor(request, FactorOf(replicas));
  sizing.replicas = replicas;
  const int64_t nodes = int64_t{replicas} * sizing.nodes_per_replica;
  sizing.fits = nodes < kMostNodes;
  sizing.nodes = static_cast<int>(std::min<int64_t>(nodes, kMostNodes));
  return sizing;
}

}  // namespace

Sizing Size(const SizingRequest& request) {
  if (request.replicas.has_value()) return WithReplicas(request, *request.replicas);
  if (!request.nodes.has_value()) return WithFactor(request, 2);
  // More replicas have more traffic, so the first that fits is the most that do.
  for (int replicas = *request.nodes; replicas >= 2; --replicas) {
    const Sizing sizing = WithReplicas(request, replicas);
    if (sizing.fits && *sizing.nodes <= *request.nodes) return sizing;
  }
  Sizing sizing = WithReplicas(request, 2);
  sizing.fits = false;
  return sizing;
}

absl::StatusOr<double> ParseParameters(absl::string_view text) {
  const absl::string_view given = text;
  double scale = 1;
  if (!text.empty()) {
    switch (text.back()) {
      case 'M':
        scale = 1e6;
        break;
      case 'B':
        scale = 1e9;
        break;
      case 'T':
        scale = 1e12;
        break;
      default:
        break;
    }
  }
  if (scale > 1) text.remove_suffix(1);
  double number = 0;
  if (!absl::SimpleAtod(text, &number) || !(number * scale >= 1) ||
      number * scale > kMostParameters) {
    return absl::InvalidArgumentError(
        absl::StrCat("--parameters ", given,
                     ": give a number from 1 to 1e15, such as 70B, 1.5T or "
                     "7e9"));
  }
  return number * scale;
}

}  // namespace railhead::cli
