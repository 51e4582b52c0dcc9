// SPDX-License-Identifier: Apache-2.0
//
// Names and messages of the planner's decisions. Pure. Used by the planner.
#ifndef RAILHEAD_OPERATOR_GANGS_PLAN_WORDS_H_
#define RAILHEAD_OPERATOR_GANGS_PLAN_WORDS_H_

#include <string>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "operator/gangs/planner.h"
#include "placement/request.h"
#include "placement/score.h"
#include "placement/solver.h"

namespace railhead::op::gangs {

// Returns the name of the decision; the same pods on the same nodes have the same name.
std::string NameOf(const Gang& gang, const std::vector<Assignment>& assignments);

// Returns "8 pods on 4 nodes; domains used: spine 1, leaf 1". `node_of_rank`: indices in the model.
std::string WherePlaced(const fabric::FabricModel& model, const std::vector<int>& node_of_rank,
                        const placement::Score& score);

// Returns why a gang has no room: first the room, then what would help, then the notes, then what
// excludes nodes, since the end of a message may be cut.
std::string InWords(const std::vector<placement::Reason>& reasons,
                    const std::vector<std::string>& notes);

// Returns how many pods get other rails than most, which happens if a pod takes only a part of a
// node; empty if none.
std::string AboutOtherRails(const fabric::FabricModel& model,
                            const placement::PlacementRequest& request,
                            const std::vector<int>& node_of_rank);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_PLAN_WORDS_H_
