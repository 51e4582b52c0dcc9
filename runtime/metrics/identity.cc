// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/identity.h"

#include "absl/status/statusor.h"
#include "runtime/base/one_per_process.h"

namespace railhead::metrics {

int RankOfProcess(std::optional<WorldRank> launcher, WorldRank communicator) {
  const bool is_part = launcher.has_value() && communicator.size < launcher->size;
  return is_part ? launcher->rank : communicator.rank;
}

std::shared_ptr<const Identity> IdentityOfProcess(const std::string& job,
                                                  std::optional<WorldRank> launcher,
                                                  WorldRank communicator) {
  using Shared = OnePerProcess<const Identity>;
  static Shared identity;
  return *identity.Get([&]() -> Shared::Made {
    return std::make_shared<const Identity>(Identity{job, RankOfProcess(launcher, communicator)});
  });
}

}  // namespace railhead::metrics
