// SPDX-License-Identifier: Apache-2.0
//
// Table of the collectives that railhead-perf measures.
#ifndef RAILHEAD_RUNTIME_PERF_COLLECTIVES_H_
#define RAILHEAD_RUNTIME_PERF_COLLECTIVES_H_

#include <cstddef>

#include "absl/types/span.h"
#include "railhead/railhead.h"
#include "runtime/perf/layout.h"

namespace railhead::perf {

// Arguments of one call of any collective.
struct Call {
  const void* send;
  void* receive;
  size_t count;  // values per part; the mean if parts differ
  const Parts& parts;
  rhDataType_t type;
  rhRedOp_t op;
  int root;
  int rank;
  int ranks;
  rhComm_t comm;
};

struct Collective {
  const char* name;
  const char* title;    // one-line description
  const char* measure;  // meaning of its size and busbw
  Movement movement;
  bool in_place;
  bool has_root;
  double (*bus_factor)(int ranks);  // busbw / algbw
  rhResult_t (*call)(const Call& call);

  bool reduces() const { return movement.source == Source::kReduced; }
  bool has_data() const { return movement.send != Shape::kNothing; }
  // Returns the size in values of a part of `count` values: that of the larger of a rank's buffers.
  size_t SizeInValues(int ranks, size_t count) const;
};

absl::Span<const Collective> Collectives();

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_COLLECTIVES_H_
