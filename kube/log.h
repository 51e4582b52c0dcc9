// SPDX-License-Identifier: Apache-2.0
//
// Log of the agent and the operator: destination, format and level.
#ifndef RAILHEAD_KUBE_LOG_H_
#define RAILHEAD_KUBE_LOG_H_

#include <string>
#include <vector>

namespace railhead::kube {

// Sends spdlog's lines to stderr with time in UTC. Makes untrusted text printable (an API server's
// error, the name of an unvalidated pod): one record is one line without control sequences. Call
// once, before starting threads.
void SetUpLog(const std::string& program);

// Returns the levels of SetLogLevel: the default, which has all records, and then those with fewer.
const std::vector<std::string>& LogLevels();

// Leaves out records below `level`, which is one of LogLevels().
void SetLogLevel(const std::string& level);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_LOG_H_
