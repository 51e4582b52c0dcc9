// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_KUBE_KUBECONFIG_H_
#define RAILHEAD_KUBE_KUBECONFIG_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/rest_client.h"

namespace railhead::kube {

// The content of a file that a kubeconfig names.
using FileReader = std::function<absl::StatusOr<std::string>(const std::string& path)>;

struct Kubeconfig {
  ClientOptions client;
  std::string space;  // the context's namespace; "default" where it says none
};

// How people outside of a cluster reach it: a kubeconfig (v1), of which this reads cluster and user
// of `context`, or of its current-context where that is empty. Users have a token, a tokenFile
// (read anew for every call) or a client certificate. InvalidArgument names the field of what is
// wrong, and of what this does not do: programs that get credentials (exec, auth-provider),
// passwords, servers without https or without a certificate authority, insecure-skip-tls-verify,
// proxies, and another name to verify. Paths are relative to `folder`.
absl::StatusOr<Kubeconfig> ParseKubeconfig(absl::string_view text, const std::string& folder,
                                           absl::string_view context, const FileReader& read);

// The same of a file; files up to 1 MiB.
absl::StatusOr<Kubeconfig> LoadKubeconfig(const std::string& path, absl::string_view context);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_KUBECONFIG_H_
