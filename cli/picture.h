// SPDX-License-Identifier: Apache-2.0
//
// Placement result as text.
#ifndef RAILHEAD_CLI_PICTURE_H_
#define RAILHEAD_CLI_PICTURE_H_

#include <string>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "placement/reasons.h"
#include "placement/request.h"
#include "placement/solver.h"

namespace railhead::cli {

// Formats the result: one line with the decision, the score, and the tree of used domains with a
// mark for each node. For a gang that was not placed: the reasons.
std::string Picture(const fabric::FabricModel& model, const placement::PlacementRequest& request,
                    const placement::Placement& placement,
                    const std::vector<placement::Reason>& reasons);

// Explains the result line by line: excluded nodes with causes, and why it uses that number of
// domains.
std::vector<std::string> Explain(const fabric::FabricModel& model,
                                 const placement::PlacementRequest& request,
                                 const placement::Placement& placement);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_PICTURE_H_
