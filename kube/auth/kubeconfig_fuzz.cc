// SPDX-License-Identifier: Apache-2.0
//
// Any text is refused with a message that says it is the kubeconfig's, or read into something that
// a client can be made of: an https server, its authority, and a credential.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "kube/auth/kubeconfig.h"

namespace railhead::kube {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

// Up to the first NUL it is a kubeconfig, and from there what a credential plugin prints.
void Run(absl::string_view input) {
  const size_t end = input.find('\0');
  const std::string answer(end == absl::string_view::npos ? "" : input.substr(end + 1));
  const Surroundings surroundings = {[](const std::string& path) {
                                       return path.size() % 2 == 0
                                                  ? absl::StatusOr<std::string>(path)
                                                  : absl::InvalidArgumentError("cannot be read");
                                     },
                                     [&](const Command& command) {
                                       Require(!command.program.empty());
                                       return absl::StatusOr<std::string>(answer);
                                     },
                                     input.size() % 2 == 0};
  const absl::StatusOr<Kubeconfig> config =
      ParseKubeconfig({{std::string(input.substr(0, end)), "/home"}}, "", surroundings);
  if (!config.ok()) {
    Require(absl::IsInvalidArgument(config.status()) ||
            absl::IsFailedPrecondition(config.status()));
    Require(absl::StartsWith(config.status().message(), "kubeconfig: "));
    return;
  }
  Require(absl::StartsWith(config->client.server, "https://"));
  Require(!config->client.ca_pem.empty() && !config->space.empty());
  Require(config->client.certificate_pem.empty() == config->client.key_pem.empty());
  if (config->client.token == nullptr) {
    Require(!config->client.key_pem.empty());
    return;
  }
  const absl::StatusOr<std::string> token = config->client.token();
  Require(token.ok() && !token->empty());
  for (const char c : *token) Require(static_cast<unsigned char>(c) > 0x20);
}

}  // namespace
}  // namespace railhead::kube

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::kube::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
