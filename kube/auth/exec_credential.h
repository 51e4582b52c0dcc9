// SPDX-License-Identifier: Apache-2.0
//
// A kubeconfig's credential plugin: the command of users[].user.exec, its input and its answer.
// Clouds' kubeconfigs have one (aws, gke-gcloud-auth-plugin, kubelogin). Pure.
//
// Source: Kubernetes, "client-go credential plugins": client.authentication.k8s.io/v1 and v1beta1.
#ifndef RAILHEAD_KUBE_AUTH_EXEC_CREDENTIAL_H_
#define RAILHEAD_KUBE_AUTH_EXEC_CREDENTIAL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kube/auth/run_command.h"
#include "kube/json.h"

namespace railhead::kube {

struct ExecPlugin {
  std::string api_version;
  Command command;
  std::string install_hint;   // for people who lack the program; may be empty
  bool gets_cluster = false;  // the plugin needs the cluster's data (provideClusterInfo)
  bool needs_terminal = false;
};

struct ExecCredential {
  std::string token;            // empty, or one word
  std::string certificate_pem;  // with its key; or neither
  std::string key_pem;
  absl::Time expires = absl::InfiniteFuture();
};

// Reads the value of users[].user.exec. A program with a slash in its name is relative to `folder`.
// `has_terminal`: standard input is one, from which the command may read. Errors begin with the
// field, such as ".command is missing".
absl::StatusOr<ExecPlugin> ParseExecPlugin(const Json& exec, const std::string& folder,
                                           bool has_terminal);

// The value of KUBERNETES_EXEC_INFO for the command. `cluster` (an ExecCredential's spec.cluster)
// is left out unless the plugin wants it.
std::string ExecInfo(const ExecPlugin& plugin, const Json& cluster);

// Parses the output of the command. InvalidArgument describes the error without the output, which
// is secret.
absl::StatusOr<ExecCredential> ParseExecCredential(absl::string_view answer,
                                                   absl::string_view api_version);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_AUTH_EXEC_CREDENTIAL_H_
