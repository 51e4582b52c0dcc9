// SPDX-License-Identifier: Apache-2.0
//
// Pairs of ranks that measure the network at the start (comm/communicator/measure.h).
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_PARTNERS_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_PARTNERS_H_

#include <vector>

namespace railhead::comm {

// Returns the measurement partner of each rank. Partners are in different places, if possible,
// because a path within a place does not use the network. `places`: a number for each rank, equal
// for ranks of one place. With an odd number of ranks, the last rank has no partner, and gets its
// own number.
std::vector<int> Partners(const std::vector<int>& places);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_PARTNERS_H_
