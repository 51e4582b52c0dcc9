// SPDX-License-Identifier: Apache-2.0
//
// Labels job and rank of a process on the metrics page. They are the process's, not the
// communicator's: a process may be rank 0 of one communicator and rank 5 of another, and all its
// series are under the same two labels. Used by Communicator.
//
//   identity_ = metrics::IdentityOfProcess(job, LauncherWorld(), {rank, world_size});
#ifndef RAILHEAD_RUNTIME_METRICS_IDENTITY_H_
#define RAILHEAD_RUNTIME_METRICS_IDENTITY_H_

#include <memory>
#include <optional>
#include <string>

namespace railhead::metrics {

struct Identity {
  std::string job;
  int rank = 0;
};

// A rank in a group of ranks.
struct WorldRank {
  int rank = 0;
  int size = 1;
};

// Returns the rank of a process by its launcher (nullopt: none) and its first communicator. The
// launcher's counts if the communicator is only a part of the launcher's world. Otherwise the
// communicator is the world: of equal size, or larger because one launched process has started
// several that all have its variables. Pure.
int RankOfProcess(std::optional<WorldRank> launcher, WorldRank communicator);

// Returns the identity of this process, the same for all communicators that live at one time: the
// first one decides. Once all have ended, the process may be another rank, for example of a
// restarted job. A forked child has its own. Thread-safe.
std::shared_ptr<const Identity> IdentityOfProcess(const std::string& job,
                                                  std::optional<WorldRank> launcher,
                                                  WorldRank communicator);

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_IDENTITY_H_
