// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_PARTNERS_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_PARTNERS_H_

#include <vector>

namespace railhead::comm {

// With whom each rank measures the network, by rank: pairs of different places as far as there are
// any, since the way inside a place says nothing about the wire. `places` are numbers by rank,
// equal for ranks of one place. The last of an odd number has no partner, and is its own.
std::vector<int> Partners(const std::vector<int>& places);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_PARTNERS_H_
