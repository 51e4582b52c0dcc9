// SPDX-License-Identifier: Apache-2.0
//
// Start reports of ranks, kept for the diagnosis after their runtime no longer exports them. Pure.
// Used by the collector.
#ifndef RAILHEAD_OPERATOR_VERDICT_LEARNED_H_
#define RAILHEAD_OPERATOR_VERDICT_LEARNED_H_

#include <cstddef>
#include <memory>

#include "operator/verdict/runtime_report.h"

namespace railhead::op::verdict {

// Returns the latest reports of the starts of a pod's ranks: each rank in `now` that reports its
// start, and ranks of `before` that `now` no longer has. Null if no rank ever reported its start.
// Usually that is `now` itself, without further memory. A process that keeps creating communicators
// with new names cannot fill it: the number of ranks is limited as in a page.
std::shared_ptr<const RuntimeReport> Learn(const std::shared_ptr<const RuntimeReport>& before,
                                           const std::shared_ptr<const RuntimeReport>& now);

// Returns the approximate size of a report in bytes, without lists that it shares with others.
size_t BytesOf(const RuntimeReport& report);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_LEARNED_H_
