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

// Counters, gauges and histograms. Each series begins with the labels job and rank, and has the
// label source if another library's traffic is counted.
inline constexpr char kSourceLabel[] = "source";
using Families = std::vector<prometheus::MetricFamily>;

std::string Encode(const Families& families);

// InvalidArgument for bytes that are not the result of Encode, or that would spoil a page.
absl::StatusOr<Families> ParseFamilies(absl::string_view bytes);

// The families of one process.
struct Page {
  std::string process;  // its number, or another name that distinguishes it
  Families families;
};

// Warning for the users of a page, once for each `subject`.
struct PageWarning {
  std::string subject;
  std::string text;
};

struct MergedPage {
  Families families;
  std::vector<PageWarning> warnings;
};

// Returns one page with the series of all processes. If several of one source are the same rank
// (two jobs of one name share a pod, or processes have one RANK), their series have another label,
// `process`: Prometheus refuses a page that has a series twice. railhead_metrics_conflicts counts
// these processes.
MergedPage Merge(std::vector<Page> pages);

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_FAMILIES_H_
