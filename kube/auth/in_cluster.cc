// SPDX-License-Identifier: Apache-2.0
#include "kube/auth/in_cluster.h"

#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "kube/auth/one_word.h"

namespace railhead::kube {
namespace {

constexpr size_t kMaxMountedFileBytes = 64U << 10U;
constexpr size_t kMaxAuthorityBytes = 1U << 20U;

// Files here are one line; the white space around it is not part of the value.
absl::StatusOr<std::string> ReadOneLine(const std::string& path) {
  absl::StatusOr<std::string> read = ReadWholeFile(path, kMaxMountedFileBytes);
  if (!read.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(read.status().message(),
                     ": check that the pod mounts its service account token "
                     "(automountServiceAccountToken)"));
  }
  std::string text = *std::move(read);
  absl::StripAsciiWhitespace(&text);
  if (text.empty()) return absl::FailedPreconditionError(absl::StrCat(path, " is empty"));
  if (!IsOneWord(text)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " contains more than one word"));
  }
  return text;
}

}  // namespace

std::string ProcessEnvironment(absl::string_view name) {
  const char* const value = std::getenv(std::string(name).c_str());
  return value == nullptr ? "" : value;
}

absl::StatusOr<InCluster> InClusterConfig(const std::string& root, const Environment& environment) {
  const std::string host = environment("KUBERNETES_SERVICE_HOST");
  const std::string port = environment("KUBERNETES_SERVICE_PORT");
  int port_number = 0;
  if (host.empty() || !absl::SimpleAtoi(port, &port_number) || port_number < 1 ||
      port_number > 65535) {
    return absl::FailedPreconditionError(absl::StrCat("not in a pod: KUBERNETES_SERVICE_HOST is \"",
                                                      host, "\" and KUBERNETES_SERVICE_PORT is \"",
                                                      port, "\""));
  }
  const std::string folder =
      absl::StrCat(absl::StripSuffix(root, "/"), "/var/run/secrets/kubernetes.io/serviceaccount/");
  InCluster config;
  const bool bare_ipv6 = absl::StrContains(host, ':') && host[0] != '[';
  config.client.server =
      absl::StrCat("https://", bare_ipv6 ? "[" : "", host, bare_ipv6 ? "]" : "", ":", port_number);
  config.client.ca_file = folder + "ca.crt";
  const absl::StatusOr<std::string> authority =
      ReadWholeFile(config.client.ca_file, kMaxAuthorityBytes);
  if (!authority.ok()) return absl::FailedPreconditionError(authority.status().message());
  const std::string token_path = folder + "token";
  config.client.token = [token_path] { return ReadOneLine(token_path); };
  if (absl::StatusOr<std::string> token = config.client.token(); !token.ok()) {
    return token.status();
  }
  absl::StatusOr<std::string> space = ReadOneLine(folder + "namespace");
  if (!space.ok()) return space.status();
  config.space = *std::move(space);
  return config;
}

}  // namespace railhead::kube
