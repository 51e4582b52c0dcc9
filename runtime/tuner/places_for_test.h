// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_TUNER_PLACES_FOR_TEST_H_
#define RAILHEAD_RUNTIME_TUNER_PLACES_FOR_TEST_H_

#include "runtime/tuner/tuner.h"

namespace railhead::tuner {

// Four places of eight ranks with one rail each, whose memory is as slow per byte as a rail. Not
// all places can connect to each other.
inline Network Places() {
  Network network = {20e-6, 1e-10, 0, 2};
  network.places = 4;
  network.columns = 8;
  network.local_alpha = 2e-6;
  network.local_beta = 1e-10;
  return network;
}

}  // namespace railhead::tuner

#endif  // RAILHEAD_RUNTIME_TUNER_PLACES_FOR_TEST_H_
