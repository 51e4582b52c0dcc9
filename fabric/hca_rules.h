// SPDX-License-Identifier: Apache-2.0
//
// Rules of health: one table of what can keep an HCA from carrying a pod's data, each rule with its
// test and its advice. Functions of values; no I/O.
#ifndef RAILHEAD_FABRIC_HCA_RULES_H_
#define RAILHEAD_FABRIC_HCA_RULES_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "fabric/inventory.h"

namespace railhead::fabric {

// How pods reach the network of an HCA, as far as health depends on it.
enum class PodNetwork {
  kUnknown,   // only what holds for all of these is judged
  kHost,      // by the host's addresses: a RoCE port needs one that other subnets can reach
  kAttached,  // by addresses of their own (macvlan, ipvlan), or in one segment: any address will do
  kMoved,     // the interface goes into the pod: until then it may be down and without an address
};

// Everything that is wrong, with advice, in the order of the table; "" when nothing is. Of one HCA:
// what two of them have in common is for JudgeTogether.
std::string TroubleOf(const Hca& hca, PodNetwork network);

// Sets `usable` and `reason`. Does nothing for an HCA that is not present.
void Judge(Hca& hca, PodNetwork network);

// After Judge: of rails that have the same address on the host, as others may answer for it.
// `networks`: of each of `hcas`.
void JudgeTogether(std::vector<Hca>& hcas, const std::vector<PodNetwork>& networks);

// The PCI function whose port the HCA shares with that function's own device: of a virtual
// function, a scalable function or software on an interface. "" for any other.
std::string OwnerOf(const Hca& hca);

// Decides which HCAs are rails (`offered`): one for each port. A virtual function, a scalable
// function or a software device is no rail beside the function whose port it uses, unless `chosen`
// says that it is wanted: then that function is not.
void ChooseRails(std::vector<Hca>& hcas, absl::FunctionRef<bool(const Hca&)> chosen);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_HCA_RULES_H_
