// SPDX-License-Identifier: Apache-2.0
//
// An answer of the solver as people read it.
#ifndef RAILHEAD_CLI_PICTURE_H_
#define RAILHEAD_CLI_PICTURE_H_

#include <string>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "placement/reasons.h"
#include "placement/request.h"
#include "placement/solver.h"

namespace railhead::cli {

// A line on what was decided, the score, and the tree of the domains that are used, with a mark for
// each node; for a gang without a place the reasons.
std::string Picture(const fabric::FabricModel& model, const placement::PlacementRequest& request,
                    const placement::Placement& placement,
                    const std::vector<placement::Reason>& reasons);

// How the answer came about, line by line: which nodes were left out and why, and why it takes as
// many domains as it does.
std::vector<std::string> Explain(const fabric::FabricModel& model,
                                 const placement::PlacementRequest& request,
                                 const placement::Placement& placement);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_PICTURE_H_
