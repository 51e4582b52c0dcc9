// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_KUBE_LOG_H_
#define RAILHEAD_KUBE_LOG_H_

#include <string>

namespace railhead::kube {

// Sends spdlog's lines to stderr with time in UTC. Makes untrusted text printable (an API server's
// error, the name of an unvalidated pod): one record is one line without control sequences. Call
// once, before starting threads.
void SetUpLog(const std::string& program);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_LOG_H_
