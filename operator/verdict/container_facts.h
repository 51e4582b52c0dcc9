// SPDX-License-Identifier: Apache-2.0
//
// Facts of one container for the diagnosis. Pure. Used by pod_facts.cc.
#ifndef RAILHEAD_OPERATOR_VERDICT_CONTAINER_FACTS_H_
#define RAILHEAD_OPERATOR_VERDICT_CONTAINER_FACTS_H_

#include <cstddef>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kube/json.h"
#include "operator/objects/rdma_resources.h"
#include "operator/verdict/facts.h"

namespace railhead::op::verdict {

// Returns the variables whose values ContainerFacts keeps.
absl::Span<const absl::string_view> WatchedVariables();

// Returns the facts of a container of this pod; malformed fields are treated as absent. `room`:
// remaining bytes for values of variables; a longer value is treated as absent.
ContainerFacts ContainerFactsOf(const kube::Json& container, const kube::Json& pod,
                                const RdmaResources& rdma, size_t& room);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_CONTAINER_FACTS_H_
