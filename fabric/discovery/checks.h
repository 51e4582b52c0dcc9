// SPDX-License-Identifier: Apache-2.0
//
// Checks of topology discovery, the most serious first. Their findings (base/finding.h) are faults,
// kFail, which need action, and notes, kNote. Shown by `railhead topology` and the status of the
// FabricTopology.
#ifndef RAILHEAD_FABRIC_DISCOVERY_CHECKS_H_
#define RAILHEAD_FABRIC_DISCOVERY_CHECKS_H_

namespace railhead::fabric {

inline constexpr char kMiswired[] = "miswired";     // at the switch of another rail, unlike others
inline constexpr char kTwoLeaves[] = "two-leaves";  // a node with NICs in two leaves
inline constexpr char kStorage[] = "storage";       // like NICs of storage or management
inline constexpr char kContradiction[] = "contradiction";  // of two sources
inline constexpr char kCycle[] = "cycle";                  // where a tree is expected
inline constexpr char kNoFacts[] = "no-facts";             // a node without facts of its agent
inline constexpr char kNoPlace[] = "no-place";             // a node whose position is unknown

inline constexpr const char* kChecks[] = {kMiswired, kTwoLeaves, kStorage, kContradiction,
                                          kCycle,    kNoFacts,   kNoPlace};

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_CHECKS_H_
