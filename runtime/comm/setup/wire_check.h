// SPDX-License-Identifier: Apache-2.0
//
// Checks at the start that each TCP rail's bytes leave by the interface that has its address: two
// rails must not be one wire. Used by Setup, Communicator and the pre-flight check.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_WIRE_CHECK_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_WIRE_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/rails/mesh.h"
#include "runtime/rails/peer.h"
#include "runtime/transport/connect/acceptor.h"

namespace railhead::comm {

// Returns false if an interface has counted less than the rail has sent by it, headers and repeats
// not included. True for few bytes, which prove nothing.
bool Carries(uint64_t rail_sent, uint64_t interface_counted);

// Use from one thread at a time, except where stated.
class WireCheck {
 public:
  struct Wire {
    rails::RailName rail;
    std::shared_ptr<transport::Acceptor> acceptor;
    // Address of the rank to which this rank sends from now until Check; "" if unknown.
    std::string partner;
  };

  // Checks no rails.
  WireCheck() = default;
  // Reads the counters of the rails' interfaces.
  explicit WireCheck(std::vector<Wire> wires);

  // Compares what the rails have sent since the construction with what their interfaces have
  // counted. Waits for counters that lag, at most for the given time. Returns a warning for each
  // rail that another interface carries, except those that the log has already.
  std::vector<std::string> Check(absl::Span<const rails::RailTotals> totals,
                                 absl::Duration patience);

  // Why rails are not carried by their interfaces, with advice; "" if they are. Thread-safe after
  // Check.
  std::string Trouble() const;
  // As above, for one rail, by its number, without advice.
  std::string TroubleOf(int rail) const;
  // The interface that carries a rail instead; "" if its own one does, or if the other is unknown.
  std::string LeavesBy(int rail) const;

 private:
  struct Entry {
    // Wire's acceptor may get an interface later, or another one.
    Wire wire;
    // The interface whose counters are compared; null: there was none, or the partner is on this
    // machine.
    std::shared_ptr<transport::RailInterface> measured;
    uint64_t counted = 0;  // by the interface before
    std::string trouble;   // found by its counters
  };

  std::map<int, Entry> entries_;  // by rail
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_WIRE_CHECK_H_
