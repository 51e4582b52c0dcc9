// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_KUBE_LOG_H_
#define RAILHEAD_KUBE_LOG_H_

#include <string>

namespace railhead::kube {

// Sends spdlog's lines to stderr, with their time in UTC. Texts of strangers, such as an API
// server's refusal or the name of a pod that is still to be validated, are made printable: one
// record is one line, and no line controls a terminal. Call it once, before there are threads.
void SetUpLog(const std::string& program);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_LOG_H_
