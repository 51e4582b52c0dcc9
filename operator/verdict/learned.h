// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_VERDICT_LEARNED_H_
#define RAILHEAD_OPERATOR_VERDICT_LEARNED_H_

#include <cstddef>
#include <memory>

#include "operator/verdict/runtime_report.h"

namespace railhead::op::verdict {

// What is kept of the starts of a pod's ranks, when it says `now` what it says: of each rank that
// tells of its start the latest, and those of `before` that it says nothing of any more. Null when
// no rank ever did. Mostly it is `now` itself, which costs no memory. A process that goes on making
// communicators of other names does not fill it: no more ranks are kept than a page may have.
std::shared_ptr<const RuntimeReport> Learn(const std::shared_ptr<const RuntimeReport>& before,
                                           const std::shared_ptr<const RuntimeReport>& now);

// About how many bytes a report takes up, without lists that it has in common with others.
size_t BytesOf(const RuntimeReport& report);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_LEARNED_H_
