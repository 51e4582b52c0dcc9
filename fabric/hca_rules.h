// SPDX-License-Identifier: Apache-2.0
//
// Health rules: one table of faults that keep an HCA from carrying a pod's data, each with its test
// and advice. Pure functions. Used by the sysfs reader and the node agent.
#ifndef RAILHEAD_FABRIC_HCA_RULES_H_
#define RAILHEAD_FABRIC_HCA_RULES_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "fabric/inventory.h"

namespace railhead::fabric {

// Way in which pods reach the network of an HCA.
enum class PodNetwork {
  kUnknown,   // apply only rules that hold for all modes
  kHost,      // host addresses: a RoCE port needs a routable one
  kAttached,  // own addresses (macvlan, ipvlan), or one segment: any address suffices
  kMoved,     // the interface moves into the pod: it may be down and without address before
};

// Returns all faults of one HCA with advice, in table order; "" if there are none. See
// JudgeTogether for faults between HCAs.
std::string TroubleOf(const Hca& hca, PodNetwork network);

// Sets the fault of Stage::kRules. Ignores an HCA that is missing or hangs, whose state is old.
void Judge(Hca& hca, PodNetwork network);

// Sets the faults of Stage::kSharedAddress: of rails with the same address on the host, as one
// may answer for the other. `networks` is parallel to `hcas`.
void JudgeTogether(std::vector<Hca>& hcas, const std::vector<PodNetwork>& networks);

// Returns the PCI function whose port the HCA shares with that function's own device: of a virtual
// function, a scalable function, or software on an interface. "" for others.
std::string OwnerOf(const Hca& hca);

// Sets `offered`: one HCA per port is a rail. A virtual function, scalable function or software
// device is not a rail if the function of its port is present, unless `chosen` returns true: then
// that function is not.
void ChooseRails(std::vector<Hca>& hcas, absl::FunctionRef<bool(const Hca&)> chosen);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_HCA_RULES_H_
