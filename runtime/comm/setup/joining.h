// SPDX-License-Identifier: Apache-2.0
//
// Joining: the rendezvous of a rank with the others, before a communicator or a pre-flight check.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_JOINING_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_JOINING_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/halt.h"
#include "runtime/base/log.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/comm/setup/setup.h"
#include "runtime/comm/setup/start_abort.h"
#include "runtime/config/env.h"
#include "runtime/net/fd.h"

namespace railhead::comm {

struct CommunicatorOptions {
  config::Rendezvous rendezvous;
  std::optional<net::Fd> listener;  // rank 0 only: a listening socket
  // Rank 0 only: instead, a shared one.
  std::shared_ptr<bootstrap::SharedListener> shared_listener;
  // Key of the unique id; ranks without it are rejected. "": the job's name identifies the group.
  std::string key;
  SetupOptions setup;
  // Created from another communicator: algorithm overrides that these ranks cannot follow are
  // dropped, and the job secret applies in spite of the key.
  bool made_of_another = false;
  Halt hopeless;  // see bootstrap::JoinOptions
  Halt aborted;
  std::shared_ptr<StartAbort> abort;  // aborts the start; may be null
};

// Returns "rank 2 (pod a on node b)", with the known parts.
std::string NameOfRank(const CommunicatorOptions& options);

// Returns the name of the group: the job's name, or a name derived from the key.
std::string GroupOf(const CommunicatorOptions& options);

// Returns the bytes of the job's secret, or "" if it has none, with the cause in `options`. Waits
// for a secret that the node agent has promised. An error means that this rank cannot take part.
absl::StatusOr<std::string> SecretOf(CommunicatorOptions& options, const Logger& log);

// Returns when all ranks have arrived; errors as in Bootstrap::Join. Consumes the listener.
absl::StatusOr<bootstrap::Bootstrap> Join(CommunicatorOptions& options);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_JOINING_H_
