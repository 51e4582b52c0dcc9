// SPDX-License-Identifier: Apache-2.0
//
// What the benches of jobs share, whose ranks are processes of this machine.
#ifndef RAILHEAD_RUNTIME_TESTING_BENCH_H_
#define RAILHEAD_RUNTIME_TESTING_BENCH_H_

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "railhead/railhead.h"

namespace railhead::testing {

// Seconds, of the clock that all processes of this machine share.
inline double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Ends this process, and no other, with the reason.
[[noreturn]] inline void Die(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::_Exit(1);
}

inline void Must(rhResult_t result, rhComm_t comm) {
  if (result != rhSuccess) Die(rhGetLastError(comm));
}

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_BENCH_H_
