// SPDX-License-Identifier: Apache-2.0
//
// Prometheus' families of the ranks of several processes, as bytes and as one page. Pure.
#ifndef RAILHEAD_RUNTIME_METRICS_FAMILIES_H_
#define RAILHEAD_RUNTIME_METRICS_FAMILIES_H_

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::metrics {

// Counters, gauges and histograms. Each series begins with the labels job and rank.
using Families = std::vector<prometheus::MetricFamily>;

std::string Encode(const Families& families);

// InvalidArgument for bytes that are not the result of Encode.
absl::StatusOr<Families> ParseFamilies(absl::string_view bytes);

// Returns one page with the series of all pages. Each rank of a job is taken from the first page
// that has it: two processes say they are the same rank where two jobs of one name share a network,
// and Prometheus refuses a page that has a series twice.
Families Merge(std::vector<Families> pages);

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_FAMILIES_H_
