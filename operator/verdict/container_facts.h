// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_VERDICT_CONTAINER_FACTS_H_
#define RAILHEAD_OPERATOR_VERDICT_CONTAINER_FACTS_H_

#include <cstddef>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kube/json.h"
#include "operator/rdma_resources.h"
#include "operator/verdict/facts.h"

namespace railhead::op::verdict {

// The variables whose values ContainerFacts keeps.
absl::Span<const absl::string_view> WatchedVariables();

// What the verdict keeps of a container of this pod. What is strange is as if it were not there.
// `room`: how many bytes of variables' values may still be kept; a value that is longer is as if it
// were not written there.
ContainerFacts ContainerFactsOf(const kube::Json& container, const kube::Json& pod,
                                const RdmaResources& rdma, size_t& room);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_CONTAINER_FACTS_H_
