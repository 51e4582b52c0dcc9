// SPDX-License-Identifier: Apache-2.0
#include "kube/auth/kubeconfig.h"

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "kube/auth/exec_credential.h"
#include "kube/auth/one_word.h"
#include "kube/json.h"
#include "kube/yaml.h"

namespace railhead::kube {
namespace {

constexpr size_t kMaxKubeconfigBytes = 1U << 20U;

absl::Status Wrong(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("kubeconfig: ", field, " ", what));
}

struct Document {
  Json root;
  std::string folder;
};

// One mapping of a document, and what it is called in messages.
class Section {
 public:
  Section(const Json& object, std::string path, const std::string& folder)
      : object_(object), path_(std::move(path)), folder_(folder) {}

  std::string PathOf(absl::string_view key) const { return absl::StrCat(path_, ".", key); }
  // Null when it is not there.
  const Json* Value(absl::string_view key) const {
    const Json* value = Find(object_, key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  // Empty when it is not there.
  absl::StatusOr<std::string> Text(absl::string_view key) const {
    const Json* value = Value(key);
    if (value == nullptr) return std::string();
    if (!value->is_string()) return Wrong(PathOf(key), "is not a string");
    return value->get<std::string>();
  }
  absl::Status Refuse(absl::string_view key, absl::string_view why) const {
    return Value(key) != nullptr ? Wrong(PathOf(key), why) : absl::OkStatus();
  }
  const std::string& folder() const { return folder_; }
  std::string FileOf(const std::string& name) const {
    return absl::StartsWith(name, "/") ? name : absl::StrCat(folder_, "/", name);
  }

 private:
  const Json& object_;
  std::string path_;
  const std::string& folder_;
};

// The member `inner` of the first entry called `name` of a list of the documents.
absl::StatusOr<Section> Named(absl::Span<const Document> documents, absl::string_view list,
                              absl::string_view name, absl::string_view inner) {
  bool listed = false;
  for (const Document& document : documents) {
    const Json* entries = Find(document.root, list);
    if (entries == nullptr || entries->is_null()) continue;
    if (!entries->is_array()) return Wrong(list, "is not a list");
    listed = true;
    for (const Json& entry : *entries) {
      if (StringAt(entry, {"name"}) != name) continue;
      const std::string path = absl::StrCat(list, "[", name, "].", inner);
      const Json* value = Find(entry, inner);
      if (value == nullptr || !value->is_object()) return Wrong(path, "is not a mapping");
      return Section(*value, path, document.folder);
    }
  }
  if (!listed) return Wrong(list, "is not a list");
  return Wrong(list, absl::StrCat("has no entry named \"", name, "\""));
}

// Returns the value of the field `key`-data (base64), or else the content of the file that `key`
// names; empty if the section has neither.
absl::StatusOr<std::string> DataOrFile(const Section& section, absl::string_view key,
                                       const Surroundings& surroundings) {
  const std::string data_key = absl::StrCat(key, "-data");
  const absl::StatusOr<std::string> data = section.Text(data_key);
  if (!data.ok()) return data.status();
  if (!data->empty()) {
    std::string decoded;
    if (!absl::Base64Unescape(*data, &decoded) || decoded.empty()) {
      return Wrong(section.PathOf(data_key), "is not base64");
    }
    return decoded;
  }
  absl::StatusOr<std::string> name = section.Text(key);
  if (!name.ok() || name->empty()) return name;
  absl::StatusOr<std::string> content = surroundings.read(section.FileOf(*name));
  if (!content.ok()) return Wrong(section.PathOf(key), content.status().message());
  if (content->empty()) return Wrong(section.PathOf(key), "names an empty file");
  return content;
}

// Reads what stands between this machine and the server: its other name, and a proxy.
absl::Status ReadRoute(const Section& cluster, ClientOptions& client) {
  absl::StatusOr<std::string> name = cluster.Text("tls-server-name");
  if (!name.ok()) return name.status();
  constexpr char kOfNames[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_";
  if (name->find_first_not_of(kOfNames) != std::string::npos) {
    return Wrong(cluster.PathOf("tls-server-name"),
                 absl::StrCat("is not a host name or address: \"", *name, "\""));
  }
  client.server_name = *std::move(name);
  absl::StatusOr<std::string> proxy = cluster.Text("proxy-url");
  if (!proxy.ok() || proxy->empty()) return proxy.status();
  const size_t scheme = proxy->find("://");
  const std::string kind = scheme == std::string::npos ? "" : proxy->substr(0, scheme);
  if ((kind != "http" && kind != "https" && kind != "socks5") || !IsOneWord(*proxy) ||
      proxy->size() == kind.size() + 3) {
    // It may hold a password, so it is not quoted.
    return Wrong(cluster.PathOf("proxy-url"),
                 "is not http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT");
  }
  client.proxy = *std::move(proxy);
  return absl::OkStatus();
}

absl::Status ReadCluster(const Section& cluster, const Surroundings& surroundings,
                         ClientOptions& client) {
  if (cluster.Value("insecure-skip-tls-verify") != nullptr) {
    return Wrong(cluster.PathOf("insecure-skip-tls-verify"),
                 "is not supported: give the cluster's certificate-authority");
  }
  absl::StatusOr<std::string> server = cluster.Text("server");
  if (!server.ok()) return server.status();
  if (!absl::StartsWith(*server, "https://") || !IsOneWord(*server) || *server == "https://") {
    return Wrong(cluster.PathOf("server"),
                 absl::StrCat("is not an https address: \"", *server, "\""));
  }
  while (absl::EndsWith(*server, "/")) server->pop_back();
  client.server = *std::move(server);
  absl::StatusOr<std::string> authority =
      DataOrFile(cluster, "certificate-authority", surroundings);
  if (!authority.ok()) return authority.status();
  if (authority->empty()) return Wrong(cluster.PathOf("certificate-authority"), "is missing");
  client.ca_pem = *std::move(authority);
  return ReadRoute(cluster, client);
}

// The function that gives the user's token, if it has one.
absl::Status ReadToken(const Section& user, const Surroundings& surroundings,
                       ClientOptions& client) {
  const absl::StatusOr<std::string> token = user.Text("token");
  if (!token.ok()) return token.status();
  const absl::StatusOr<std::string> name = user.Text("tokenFile");
  if (!name.ok()) return name.status();
  if (!name->empty()) {
    client.token = [field = user.PathOf("tokenFile"), path = user.FileOf(*name),
                    read = surroundings.read]() -> absl::StatusOr<std::string> {
      absl::StatusOr<std::string> content = read(path);
      if (!content.ok()) return Wrong(field, content.status().message());
      absl::StripAsciiWhitespace(&*content);
      if (!IsOneWord(*content)) return Wrong(field, "names a file without a token");
      return content;
    };
    return client.token().status();
  }
  if (token->empty()) return absl::OkStatus();
  if (!IsOneWord(*token)) return Wrong(user.PathOf("token"), "is not one word");
  client.token = [word = *token] { return word; };
  return absl::OkStatus();
}

// Runs a credential plugin, and keeps its credential until that expires. Thread-safe.
class PluginCredential {
 public:
  PluginCredential(std::string field, ExecPlugin plugin,
                   std::function<absl::StatusOr<std::string>(const Command&)> run)
      : field_(std::move(field)), plugin_(std::move(plugin)), run_(std::move(run)) {}

  absl::StatusOr<ExecCredential> Get() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (last_.has_value() && absl::Now() < last_->expires) return *last_;
    const absl::StatusOr<std::string> answer = run_(plugin_.command);
    if (!answer.ok()) {
      const bool missing = absl::IsNotFound(answer.status()) && !plugin_.install_hint.empty();
      return Failed(answer.status().message(),
                    missing ? absl::StrCat(": ", plugin_.install_hint) : "");
    }
    absl::StatusOr<ExecCredential> got = ParseExecCredential(*answer, plugin_.api_version);
    if (!got.ok()) return Failed(plugin_.command.program, " ", got.status().message());
    last_ = *got;
    return got;
  }

  absl::StatusOr<std::string> Token() {
    absl::StatusOr<ExecCredential> got = Get();
    if (!got.ok()) return got.status();
    if (got->token.empty()) return Failed(plugin_.command.program, " printed no token");
    return std::move(got->token);
  }

 private:
  absl::Status Failed(absl::string_view what, absl::string_view more = "",
                      absl::string_view most = "") const {
    return absl::FailedPreconditionError(
        absl::StrCat("kubeconfig: ", field_, ": ", what, more, most));
  }

  const std::string field_;
  const ExecPlugin plugin_;
  const std::function<absl::StatusOr<std::string>(const Command&)> run_;
  std::mutex mutex_;  // guards last_
  std::optional<ExecCredential> last_;
};

// Returns the cluster information that a plugin with provideClusterInfo gets.
Json ClusterInfo(const Section& cluster, const ClientOptions& client) {
  Json info = {{"server", client.server},
               {"certificate-authority-data", absl::Base64Escape(client.ca_pem)}};
  for (const char* key : {"tls-server-name", "proxy-url"}) {
    if (const Json* value = cluster.Value(key)) info[key] = *value;
  }
  const Json* extensions = cluster.Value("extensions");
  if (extensions == nullptr || !extensions->is_array()) return info;
  for (const Json& entry : *extensions) {
    const Json* extension = Find(entry, "extension");
    if (StringAt(entry, {"name"}) == "client.authentication.k8s.io/exec" && extension != nullptr) {
      info["config"] = *extension;
    }
  }
  return info;
}

absl::Status AskPlugin(const Section& user, const Section& cluster,
                       const Surroundings& surroundings, ClientOptions& client) {
  const std::string field = user.PathOf("exec");
  absl::StatusOr<ExecPlugin> plugin =
      ParseExecPlugin(*user.Value("exec"), user.folder(), surroundings.has_terminal);
  if (!plugin.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("kubeconfig: ", field, plugin.status().message()));
  }
  if (plugin->needs_terminal && !surroundings.has_terminal) {
    return Wrong(absl::StrCat(field, ".interactiveMode"),
                 "is Always, but standard input is not a terminal");
  }
  plugin->command.environment.emplace_back("KUBERNETES_EXEC_INFO",
                                           ExecInfo(*plugin, ClusterInfo(cluster, client)));
  const auto credential =
      std::make_shared<PluginCredential>(field, *std::move(plugin), surroundings.run);
  absl::StatusOr<ExecCredential> first = credential->Get();
  if (!first.ok()) return first.status();
  client.certificate_pem = std::move(first->certificate_pem);
  client.key_pem = std::move(first->key_pem);
  if (!first->token.empty()) client.token = [credential] { return credential->Token(); };
  return absl::OkStatus();
}

absl::Status ReadUser(const Section& user, const Section& cluster, const Surroundings& surroundings,
                      ClientOptions& client) {
  constexpr char kInstead[] =
      "is not supported: use a client certificate, a token or a credential plugin (exec)";
  for (const char* key : {"auth-provider", "username", "password", "as"}) {
    if (absl::Status refused = user.Refuse(key, kInstead); !refused.ok()) return refused;
  }
  if (absl::Status token = ReadToken(user, surroundings, client); !token.ok()) return token;
  absl::StatusOr<std::string> certificate = DataOrFile(user, "client-certificate", surroundings);
  if (!certificate.ok()) return certificate.status();
  absl::StatusOr<std::string> key = DataOrFile(user, "client-key", surroundings);
  if (!key.ok()) return key.status();
  if (certificate->empty() != key->empty()) {
    return Wrong(user.PathOf(key->empty() ? "client-key" : "client-certificate"),
                 "is missing: a certificate needs its key");
  }
  client.certificate_pem = *std::move(certificate);
  client.key_pem = *std::move(key);
  if (!client.certificate_pem.empty() || client.token != nullptr) return absl::OkStatus();
  if (user.Value("exec") != nullptr) return AskPlugin(user, cluster, surroundings, client);
  return Wrong(user.PathOf("client-certificate"), "and token are missing");
}

// A file may be a pipe, as in --kubeconfig <(...).
absl::StatusOr<std::string> ReadFile(const std::string& path) {
  absl::StatusOr<std::string> text = ReadInput(path, kMaxKubeconfigBytes);
  if (text.ok()) return text;
  return absl::Status(text.status().code(),
                      absl::StrCat("names a file that cannot be read: ", text.status().message()));
}

absl::StatusOr<std::vector<Document>> Parsed(absl::Span<const KubeconfigFile> files) {
  std::vector<Document> documents;
  for (const KubeconfigFile& file : files) {
    absl::StatusOr<std::vector<Json>> parsed = ParseYaml(file.text);
    if (!parsed.ok()) return Wrong("it", parsed.status().message());
    // With several files, empty ones are ignored.
    if (parsed->empty() && files.size() > 1) continue;
    if (parsed->size() != 1) return Wrong("it", "is not one YAML document");
    documents.push_back({std::move(parsed->front()), file.folder});
  }
  return documents;
}

std::string CurrentContext(absl::Span<const Document> documents) {
  for (const Document& document : documents) {
    std::string name = StringAt(document.root, {"current-context"});
    if (!name.empty()) return name;
  }
  return "";
}

}  // namespace

absl::StatusOr<Kubeconfig> ParseKubeconfig(absl::Span<const KubeconfigFile> files,
                                           absl::string_view context,
                                           const Surroundings& surroundings) {
  const absl::StatusOr<std::vector<Document>> documents = Parsed(files);
  if (!documents.ok()) return documents.status();
  const std::string name = context.empty() ? CurrentContext(*documents) : std::string(context);
  if (name.empty()) return Wrong("current-context", "is missing; name the context to use");
  const absl::StatusOr<Section> chosen = Named(*documents, "contexts", name, "context");
  if (!chosen.ok()) return chosen.status();
  Kubeconfig config;
  std::string names[2];
  static constexpr const char* kParts[] = {"cluster", "user"};
  for (size_t i = 0; i < 2; ++i) {
    absl::StatusOr<std::string> part = chosen->Text(kParts[i]);
    if (!part.ok()) return part.status();
    if (part->empty()) return Wrong(chosen->PathOf(kParts[i]), "is missing");
    names[i] = *std::move(part);
  }
  absl::StatusOr<std::string> space = chosen->Text("namespace");
  if (!space.ok()) return space.status();
  config.space = space->empty() ? "default" : *std::move(space);
  const absl::StatusOr<Section> cluster = Named(*documents, "clusters", names[0], "cluster");
  if (!cluster.ok()) return cluster.status();
  const absl::StatusOr<Section> user = Named(*documents, "users", names[1], "user");
  if (!user.ok()) return user.status();
  if (absl::Status done = ReadCluster(*cluster, surroundings, config.client); !done.ok()) {
    return done;
  }
  if (absl::Status done = ReadUser(*user, *cluster, surroundings, config.client); !done.ok()) {
    return done;
  }
  return config;
}

absl::StatusOr<Kubeconfig> LoadKubeconfig(const std::vector<std::string>& paths,
                                          absl::string_view context) {
  const std::string told = absl::StrJoin(paths, ":");
  std::vector<KubeconfigFile> files;
  absl::Status missing = absl::NotFoundError("names no file");
  for (const std::string& path : paths) {
    absl::StatusOr<std::string> text = ReadFile(path);
    if (absl::IsNotFound(text.status())) {
      missing = text.status();
      continue;
    }
    if (!text.ok()) return Wrong("its path", text.status().message());
    const std::string folder = std::filesystem::path(path).parent_path().string();
    files.push_back({*std::move(text), folder.empty() ? "." : folder});
  }
  if (files.empty()) return Wrong("its path", missing.message());
  Surroundings surroundings = {ReadFile, [](const Command& command) { return RunCommand(command); },
                               false};
  surroundings.has_terminal = ::isatty(STDIN_FILENO) == 1;
  absl::StatusOr<Kubeconfig> config = ParseKubeconfig(files, context, surroundings);
  if (config.ok()) return config;
  return absl::Status(config.status().code(), absl::StrCat(told, ": ", config.status().message()));
}

}  // namespace railhead::kube
