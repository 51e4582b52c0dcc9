// SPDX-License-Identifier: Apache-2.0
//
// Output of railhead-perf: the columns of nccl-tests and a summary, or JSON. Pure.
#ifndef RAILHEAD_RUNTIME_PERF_REPORT_H_
#define RAILHEAD_RUNTIME_PERF_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/perf/collectives.h"

namespace railhead::perf {

// Result of one mode, in place or out of place.
struct Timing {
  double seconds = 0;             // per operation, the mean over iterations and ranks
  std::optional<uint64_t> wrong;  // wrong values on all ranks; nullopt: not checked
};

struct Row {
  uint64_t bytes = 0;
  uint64_t count = 0;
  std::string type;
  std::string redop;
  Timing out_of_place;
  std::optional<Timing> in_place;  // nullopt: the collective is not run in place
};

struct RailUse {
  int rail = 0;
  std::string device;
  int port = 0;
  std::string transport;
  uint64_t tx_bytes = 0;
  uint64_t rx_bytes = 0;
};

// Name of the type or operator of collectives without one.
inline constexpr const char* kNone = "none";

struct Report {
  const Collective* collective = nullptr;
  std::string type;   // "all" if rows differ
  std::string redop;  // "all" if rows differ
  int root = 0;       // of collectives with a root
  int ranks = 0;
  int iterations = 0;
  int warmup = 0;
  std::string transport;
  std::string degraded_reason;  // "" if not degraded
  std::vector<RailUse> rails;   // of rank 0
  std::vector<Row> rows;
};

// GB/s (10^9 bytes per second). Bus bandwidth counts the minimum that each rank must move;
// comparable with the speed of the rails.
double AlgorithmBandwidth(uint64_t bytes, const Timing& timing);
double BusBandwidth(const Report& report, uint64_t bytes, const Timing& timing);

// Returns true if all values of all rows were right; nullopt if not checked.
std::optional<bool> Verified(const Report& report);

// Rooted collectives have a column for the root; all other columns are always the same.
std::string TableHead(const Report& report);
std::string TableRow(const Report& report, const Row& row);
std::string TableFoot(const Report& report);
std::string Json(const Report& report);

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_REPORT_H_
