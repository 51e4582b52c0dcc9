// SPDX-License-Identifier: Apache-2.0
//
// Output of `railhead-perf COLLECTIVE --explain`.
#ifndef RAILHEAD_RUNTIME_PERF_EXPLAIN_H_
#define RAILHEAD_RUNTIME_PERF_EXPLAIN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "railhead/railhead.h"

namespace railhead::perf {

// Returns which algorithm is used for this collective (railhead-perf's name) at each size, and why:
// the library's explanation, including measurements of earlier calls. Equal on all ranks.
absl::StatusOr<std::string> Explain(rhComm_t comm, absl::string_view collective,
                                    absl::Span<const uint64_t> sizes);

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_EXPLAIN_H_
