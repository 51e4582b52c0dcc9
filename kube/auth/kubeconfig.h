// SPDX-License-Identifier: Apache-2.0
//
// Reader of kubectl's configuration files, by which programs outside of a cluster reach it.
#ifndef RAILHEAD_KUBE_AUTH_KUBECONFIG_H_
#define RAILHEAD_KUBE_AUTH_KUBECONFIG_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kube/auth/run_command.h"
#include "kube/rest_client.h"

namespace railhead::kube {

// Access to the files and commands that a kubeconfig names.
struct Surroundings {
  // Returns the content of a file.
  std::function<absl::StatusOr<std::string>(const std::string& path)> read;
  // Returns what a command prints, as RunCommand does.
  std::function<absl::StatusOr<std::string>(const Command&)> run;
  bool has_terminal = false;  // commands may read from standard input, which is a terminal
};

struct KubeconfigFile {
  std::string text;
  std::string folder;  // paths in it are relative to this
};

struct Kubeconfig {
  ClientOptions client;
  std::string space;  // namespace of the context; "default" if unset
};

// Reads cluster and user of `context`, or of current-context if `context` is empty, from
// kubeconfigs (v1). The first file with a current-context, or with an entry of a name, applies.
//
// Supports users with a token, a tokenFile (read for every call), a client certificate, or a
// credential plugin (exec). The plugin's command is run at once, unless there is another
// credential, and for a call after its token has expired; its certificate is that of the first run.
//
// Supports tls-server-name, and a proxy-url with http, https or socks5.
//
// InvalidArgument names the field that is wrong or unsupported: auth-provider credentials,
// passwords, servers without https or without a CA, insecure-skip-tls-verify.
// FailedPrecondition: the plugin's command failed.
absl::StatusOr<Kubeconfig> ParseKubeconfig(absl::Span<const KubeconfigFile> files,
                                           absl::string_view context,
                                           const Surroundings& surroundings);

// Reads files of up to 1 MiB. Skips files that do not exist, as kubectl does; fails if all are
// missing.
absl::StatusOr<Kubeconfig> LoadKubeconfig(const std::vector<std::string>& paths,
                                          absl::string_view context);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_AUTH_KUBECONFIG_H_
