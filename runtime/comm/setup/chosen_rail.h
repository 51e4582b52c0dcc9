// SPDX-License-Identifier: Apache-2.0
//
// A rail that rank 0 chose for the job, as this rank has it: an RDMA device or a TCP address. Used
// by Setup to connect it, at the start and on first use.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_CHOSEN_RAIL_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_CHOSEN_RAIL_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/comm/setup/decision.h"
#include "runtime/comm/setup/own_rails.h"
#include "runtime/comm/setup/reach.h"

namespace railhead::comm {

struct ChosenRail {
  rails::RailName name;
  RdmaRail* device = nullptr;                  // null: TCP
  TcpRail listens;                             // where its acceptor listens
  transport::FrameProtection protection = {};  // over TCP
  std::string trouble = "";                    // why it cannot be opened now; "" if it can

  absl::StatusOr<std::unique_ptr<transport::Link>> Open(
      std::shared_ptr<transport::Acceptor> acceptor, transport::Locator peer_acceptor,
      absl::string_view peer) const;
};

using Acceptors = std::vector<std::shared_ptr<transport::Acceptor>>;  // by rail

// `tcp`: this rank's TCP rails, not empty.
std::vector<ChosenRail> ChooseRails(const Decision& decision, const OwnRails& own,
                                    const std::vector<TcpRail>& tcp);

// Returns the rails with which ranks connect that are not known from the start.
std::vector<OpenRail> OpenRails(const std::vector<ChosenRail>& rails, const Acceptors& acceptors);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_CHOSEN_RAIL_H_
