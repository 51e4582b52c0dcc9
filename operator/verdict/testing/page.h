// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_VERDICT_TESTING_PAGE_H_
#define RAILHEAD_OPERATOR_VERDICT_TESTING_PAGE_H_

#include <string>

#include "operator/verdict/runtime_report.h"

namespace railhead::op::verdict::testing {

// Formats a report as the metrics of a runtime (runtime/metrics/page.cc).
std::string PageOf(const RuntimeReport& report);

}  // namespace railhead::op::verdict::testing

#endif  // RAILHEAD_OPERATOR_VERDICT_TESTING_PAGE_H_
