// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "backend.h"
#include "join_group.h"

namespace railhead_torch {

// The calling ranks of this group that join the new one meet over its part of the store. torch
// calls it on a different number of devices in ranks that join and in those that do not, so it is
// not a collective of this group.
c10::intrusive_ptr<c10d::Backend> RailheadBackend::split(
    const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
    const c10::intrusive_ptr<Options>& options) {
  const auto here = std::find(ranks.begin(), ranks.end(), getRank());
  if (here == ranks.end()) return nullptr;
  const int rank = static_cast<int>(std::distance(ranks.begin(), here));
  const std::chrono::milliseconds timeout = options ? options->timeout : timeout_.load();
  return JoinGroup(ExchangeInvitation(store, id_, rank, timeout), rank,
                   static_cast<int>(ranks.size()), timeout,
                   "torch:" + (options ? options->group_name : getGroupUid()));
}

}  // namespace railhead_torch
