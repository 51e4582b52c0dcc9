// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_TESTING_FORKED_RANKS_H_
#define RAILHEAD_RUNTIME_TESTING_FORKED_RANKS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "railhead/railhead.h"
#include "runtime/base/now.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/ranks.h"

namespace railhead::testing {

// Forks ranks that join by environment (with `more`), and returns what their bodies returned. A
// body that frees its communicator sets it to null.
inline std::vector<std::string> RunForks(
    int ranks, const std::string& transport,
    const std::function<std::string(rhComm_t& comm, int rank)>& body, double seconds = 100,
    const Environment& more = {}) {
  const int port = FreePort();
  std::vector<Process> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    Environment environment = RankEnvironment(rank, ranks, port);
    environment["RAILHEAD_TRANSPORT"] = transport;
    for (const auto& [name, value] : more) environment[name] = value;
    processes.push_back(Process::Fork(environment, [&] {
      rhComm_t comm = nullptr;
      if (rhCommInitFromEnv(&comm) != rhSuccess) return std::string(rhGetLastError(nullptr));
      std::string text = body(comm, rank);
      rhCommDestroy(comm);
      return text;
    }));
  }
  const absl::Time deadline = MonotonicNow() + absl::Seconds(seconds);
  std::vector<std::string> outputs;
  for (Process& process : processes) outputs.push_back(process.Wait(deadline).output);
  return outputs;
}

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_FORKED_RANKS_H_
