// SPDX-License-Identifier: Apache-2.0
//
// How a rank comes to the others, whatever they then do together.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_JOINING_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_JOINING_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/halt.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/comm/setup/setup.h"
#include "runtime/comm/setup/start_abort.h"
#include "runtime/config/env.h"
#include "runtime/net/fd.h"

namespace railhead::comm {

struct CommunicatorOptions {
  config::Rendezvous rendezvous;
  std::optional<net::Fd> listener;  // rank 0: a socket that listens already
  std::string key;  // of an id: ranks that do not know it are turned away; "": the name of the job
  SetupOptions setup;
  bool made_of_another = false;  // of a communicator's ranks: what they can do may be less
  Halt hopeless;                 // see bootstrap::JoinOptions
  Halt aborted;
  std::shared_ptr<StartAbort> abort;  // ends the start, too; null: nothing does
};

// "rank 2 (pod a on node b)", with what is known.
std::string NameOfRank(const CommunicatorOptions& options);

// What the ranks that meet call themselves: the job, or a name that their key makes.
std::string GroupOf(const CommunicatorOptions& options);

// Returns once all ranks are there, with errors as Bootstrap::Join. Takes the listener.
absl::StatusOr<bootstrap::Bootstrap> Join(CommunicatorOptions& options);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_JOINING_H_
