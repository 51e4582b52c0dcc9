// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/operation.h"

#include <algorithm>

namespace railhead::collectives {

size_t BytesOf(const Operation& operation) {
  switch (operation.collective) {
    case Collective::kGather:
    case Collective::kScatter:
      return static_cast<size_t>(operation.ranks) * operation.count;
    case Collective::kAllGather:
      return operation.receive_parts.total();
    case Collective::kReduceScatter:
      return operation.send_parts.total() * operation.element();
    case Collective::kAllToAll:
      return std::max(operation.send_parts.total(), operation.receive_parts.total());
    default:
      return operation.count * operation.element();
  }
}

Call CallOf(const Operation& operation, uint64_t number) {
  Call::Arguments arguments = {.collective = operation.collective,
                               .type = operation.reduction.type,
                               .op = operation.reduction.op,
                               .root = operation.root,
                               .count = operation.count,
                               .number = number};
  switch (operation.collective) {
    case Collective::kAllGather:
      arguments.count = operation.receive_parts.total();
      arguments.parts = DigestOf(operation.receive_parts);
      break;
    case Collective::kReduceScatter:
      arguments.count = operation.send_parts.total();
      arguments.parts = DigestOf(operation.send_parts);
      break;
    case Collective::kAllToAll:
      if (!IsUneven(operation)) arguments.count = BytesOf(operation);
      break;
    default:
      break;
  }
  return Call(arguments);
}

}  // namespace railhead::collectives
