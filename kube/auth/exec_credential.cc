// SPDX-License-Identifier: Apache-2.0
#include "kube/auth/exec_credential.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable_text.h"
#include "kube/auth/one_word.h"

namespace railhead::kube {
namespace {

constexpr char kV1[] = "client.authentication.k8s.io/v1";
constexpr char kV1Beta1[] = "client.authentication.k8s.io/v1beta1";
constexpr size_t kMaxHintBytes = 2000;

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

// A process gets words that end with NUL.
bool IsArgument(const Json& value) {
  return value.is_string() && !absl::StrContains(value.get_ref<const std::string&>(), '\0');
}

absl::StatusOr<std::string> TextOf(const Json& exec, absl::string_view key) {
  const Json* value = Find(exec, key);
  if (value == nullptr || value->is_null()) return std::string();
  if (!IsArgument(*value)) return Wrong(absl::StrCat(".", key, " is not a string"));
  return value->get<std::string>();
}

absl::Status ReadArguments(const Json& exec, Command& command) {
  const Json* arguments = Find(exec, "args");
  if (arguments == nullptr || arguments->is_null()) return absl::OkStatus();
  if (!arguments->is_array()) return Wrong(".args is not a list");
  for (const Json& argument : *arguments) {
    if (!IsArgument(argument)) return Wrong(".args is not a list of strings");
    command.arguments.push_back(argument.get<std::string>());
  }
  return absl::OkStatus();
}

absl::Status ReadEnvironment(const Json& exec, Command& command) {
  const Json* entries = Find(exec, "env");
  if (entries == nullptr || entries->is_null()) return absl::OkStatus();
  if (!entries->is_array()) return Wrong(".env is not a list");
  for (const Json& entry : *entries) {
    const absl::StatusOr<std::string> name = TextOf(entry, "name");
    const absl::StatusOr<std::string> value = TextOf(entry, "value");
    if (!name.ok() || !value.ok() || name->empty() || absl::StrContains(*name, '=')) {
      return Wrong(".env is not a list of {name: NAME, value: TEXT}");
    }
    command.environment.emplace_back(*name, *value);
  }
  return absl::OkStatus();
}

absl::Status ReadMode(const Json& exec, bool has_terminal, ExecPlugin& plugin) {
  const absl::StatusOr<std::string> mode = TextOf(exec, "interactiveMode");
  if (!mode.ok()) return mode.status();
  // v1 requires it, but there is only one sensible reading of its absence.
  if (!mode->empty() && *mode != "Never" && *mode != "IfAvailable" && *mode != "Always") {
    return Wrong(absl::StrCat(".interactiveMode is \"", PrintableText(*mode, 100),
                              "\", not Never, IfAvailable or Always"));
  }
  plugin.needs_terminal = *mode == "Always";
  plugin.command.reads_input = *mode != "Never" && has_terminal;
  return absl::OkStatus();
}

// Returns a string of the response's status; empty if it is absent.
absl::StatusOr<std::string> SecretOf(const Json& status, absl::string_view key) {
  const Json* value = Find(status, key);
  if (value == nullptr || value->is_null()) return std::string();
  if (!value->is_string()) {
    return Wrong(absl::StrCat("printed a status.", key, " that is not a string"));
  }
  return value->get<std::string>();
}

}  // namespace

absl::StatusOr<ExecPlugin> ParseExecPlugin(const Json& exec, const std::string& folder,
                                           bool has_terminal) {
  if (!exec.is_object()) return Wrong(" is not a mapping");
  ExecPlugin plugin;
  absl::StatusOr<std::string> version = TextOf(exec, "apiVersion");
  if (!version.ok()) return version.status();
  if (*version != kV1 && *version != kV1Beta1) {
    return Wrong(absl::StrCat(".apiVersion is \"", PrintableText(*version, 100), "\", not ", kV1,
                              " or v1beta1: regenerate the kubeconfig with a newer version of the"
                              " cloud's tool"));
  }
  plugin.api_version = *std::move(version);
  absl::StatusOr<std::string> program = TextOf(exec, "command");
  if (!program.ok()) return program.status();
  if (program->empty()) return Wrong(".command is missing");
  const bool relative = absl::StrContains(*program, '/') && !absl::StartsWith(*program, "/");
  plugin.command.program = relative ? absl::StrCat(folder, "/", *program) : *std::move(program);
  absl::StatusOr<std::string> hint = TextOf(exec, "installHint");
  if (!hint.ok()) return hint.status();
  plugin.install_hint = PrintableText(*hint, kMaxHintBytes);
  const Json* wants = Find(exec, "provideClusterInfo");
  plugin.gets_cluster = wants != nullptr && *wants == true;
  for (const absl::Status& status :
       {ReadArguments(exec, plugin.command), ReadEnvironment(exec, plugin.command),
        ReadMode(exec, has_terminal, plugin)}) {
    if (!status.ok()) return status;
  }
  return plugin;
}

std::string ExecInfo(const ExecPlugin& plugin, const Json& cluster) {
  Json info = {{"apiVersion", plugin.api_version},
               {"kind", "ExecCredential"},
               {"spec", {{"interactive", plugin.command.reads_input}}}};
  if (plugin.gets_cluster) info["spec"]["cluster"] = cluster;
  return DumpJson(info);
}

absl::StatusOr<ExecCredential> ParseExecCredential(absl::string_view answer,
                                                   absl::string_view api_version) {
  const absl::StatusOr<Json> parsed = ParseJson(answer);
  if (!parsed.ok()) return Wrong("did not print an ExecCredential in JSON");
  if (StringAt(*parsed, {"kind"}) != "ExecCredential") {
    return Wrong("printed an object whose kind is not ExecCredential");
  }
  if (StringAt(*parsed, {"apiVersion"}) != api_version) {
    return Wrong(absl::StrCat("printed an ExecCredential whose apiVersion is not ", api_version));
  }
  const Json* status = Find(*parsed, "status");
  if (status == nullptr || !status->is_object()) {
    return Wrong("printed an ExecCredential without status");
  }
  ExecCredential credential;
  for (const auto& [key, into] : {std::pair<const char*, std::string*>{"token", &credential.token},
                                  {"clientCertificateData", &credential.certificate_pem},
                                  {"clientKeyData", &credential.key_pem}}) {
    absl::StatusOr<std::string> text = SecretOf(*status, key);
    if (!text.ok()) return text.status();
    *into = *std::move(text);
  }
  const absl::StatusOr<std::string> expires = SecretOf(*status, "expirationTimestamp");
  if (!expires.ok()) return expires.status();
  std::string error;
  if (!expires->empty() &&
      !absl::ParseTime(absl::RFC3339_full, *expires, &credential.expires, &error)) {
    return Wrong("printed a status.expirationTimestamp that is not an RFC 3339 time");
  }
  if (!credential.token.empty() && !IsOneWord(credential.token)) {
    return Wrong("printed a status.token that is not one word");
  }
  if (credential.certificate_pem.empty() != credential.key_pem.empty()) {
    return Wrong("printed only one of status.clientCertificateData and clientKeyData");
  }
  if (credential.token.empty() && credential.certificate_pem.empty()) {
    return Wrong("printed an ExecCredential with neither a token nor a certificate");
  }
  return credential;
}

}  // namespace railhead::kube
