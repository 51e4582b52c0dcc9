// SPDX-License-Identifier: Apache-2.0
//
// Processes that a test forks, as ranks that join by their environment.
#ifndef RAILHEAD_RUNTIME_COMM_API_RANKS_BY_ENVIRONMENT_FOR_TEST_H_
#define RAILHEAD_RUNTIME_COMM_API_RANKS_BY_ENVIRONMENT_FOR_TEST_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "railhead/railhead.h"
#include "runtime/base/now.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/ranks.h"

namespace railhead {

// Joins by environment; "" or the error.
inline std::string Join(rhComm_t* comm) {
  const rhResult_t result = rhCommInitFromEnv(comm);
  return result == rhSuccess
             ? ""
             : absl::StrCat(rhGetErrorString(result), ": ", rhGetLastError(nullptr));
}

inline std::string Reduce(rhComm_t comm, std::vector<float>& values) {
  const rhResult_t result =
      rhAllReduce(values.data(), values.data(), values.size(), rhFloat32, rhSum, comm, nullptr);
  return result == rhSuccess ? ""
                             : absl::StrCat(rhGetErrorString(result), ": ", rhGetLastError(comm));
}

inline constexpr double kOutputs = 40;  // seconds, less than the timeout of RankEnvironment

// Forks a rank for each environment and returns the results of their bodies; "" for a rank that
// leaves a child behind, or stands still for good.
inline std::vector<std::string> RunForks(const std::vector<testing::Environment>& environments,
                                         const std::function<std::string(int rank)>& body,
                                         double seconds = kOutputs, int parent = -1) {
  std::vector<testing::Process> processes;
  for (size_t rank = 0; rank < environments.size(); ++rank) {
    processes.push_back(
        testing::Process::Fork(environments[rank], [&] { return body(static_cast<int>(rank)); }));
  }
  const absl::Time deadline = MonotonicNow() + absl::Seconds(seconds);
  std::vector<std::string> outputs;
  for (size_t rank = 0; rank < processes.size(); ++rank) {
    const bool left = static_cast<int>(rank) == parent;
    outputs.push_back(left ? "" : processes[rank].Wait(deadline).output);
  }
  return outputs;
}

inline std::vector<testing::Environment> Environments(int world,
                                                      const testing::Environment& common = {}) {
  const int port = testing::FreePort();
  std::vector<testing::Environment> environments;
  for (int rank = 0; rank < world; ++rank) {
    testing::Environment environment = testing::RankEnvironment(rank, world, port);
    for (const auto& [name, value] : common) environment[name] = value;
    environments.push_back(std::move(environment));
  }
  return environments;
}

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_COMM_API_RANKS_BY_ENVIRONMENT_FOR_TEST_H_
