// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_KUBE_KUBECONFIG_H_
#define RAILHEAD_KUBE_KUBECONFIG_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/rest_client.h"

namespace railhead::kube {

// Returns the content of a file named in a kubeconfig.
using FileReader = std::function<absl::StatusOr<std::string>(const std::string& path)>;

struct Kubeconfig {
  ClientOptions client;
  std::string space;  // namespace of the context; "default" if unset
};

// Reads cluster and user of `context`, or of current-context if `context` is empty, from a
// kubeconfig (v1). Supports users with a token, a tokenFile (read for every call) or a client
// certificate. InvalidArgument names the field that is wrong or unsupported: exec and auth-provider
// credentials, passwords, servers without https or without a CA, insecure-skip-tls-verify, proxies,
// tls-server-name. Paths are relative to `folder`.
absl::StatusOr<Kubeconfig> ParseKubeconfig(absl::string_view text, const std::string& folder,
                                           absl::string_view context, const FileReader& read);

// Reads a file of up to 1 MiB.
absl::StatusOr<Kubeconfig> LoadKubeconfig(const std::string& path, absl::string_view context);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_KUBECONFIG_H_
