// SPDX-License-Identifier: Apache-2.0
#include "kube/kubeconfig.h"

#include <cstddef>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "kube/json.h"
#include "kube/yaml.h"

namespace railhead::kube {
namespace {

constexpr size_t kMaxKubeconfigBytes = 1U << 20U;

absl::Status Wrong(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("kubeconfig: ", field, " ", what));
}

// A value that becomes part of a request: one word, so that it cannot become another header.
bool IsOneWord(absl::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) return false;
  }
  return !text.empty();
}

// One mapping of the document, and what it is called in messages.
class Section {
 public:
  Section(const Json& object, std::string path) : object_(object), path_(std::move(path)) {}

  std::string PathOf(absl::string_view key) const { return absl::StrCat(path_, ".", key); }
  bool Has(absl::string_view key) const {
    const Json* value = Find(object_, key);
    return value != nullptr && !value->is_null();
  }
  // Empty when it is not there.
  absl::StatusOr<std::string> Text(absl::string_view key) const {
    if (!Has(key)) return std::string();
    const Json* value = Find(object_, key);
    if (!value->is_string()) return Wrong(PathOf(key), "is not a string");
    return value->get<std::string>();
  }
  absl::Status Refuse(absl::string_view key, absl::string_view why) const {
    return Has(key) ? Wrong(PathOf(key), why) : absl::OkStatus();
  }

 private:
  const Json& object_;
  std::string path_;
};

// The member `inner` of the entry called `name` of a list of the document.
absl::StatusOr<Section> Named(const Json& document, absl::string_view list, absl::string_view name,
                              absl::string_view inner) {
  const Json* entries = Find(document, list);
  if (entries == nullptr || !entries->is_array()) return Wrong(list, "is not a list");
  for (const Json& entry : *entries) {
    if (StringAt(entry, {"name"}) != name) continue;
    const std::string path = absl::StrCat(list, "[", name, "].", inner);
    const Json* value = Find(entry, inner);
    if (value == nullptr || !value->is_object()) return Wrong(path, "is not a mapping");
    return Section(*value, path);
  }
  return Wrong(list, absl::StrCat("has no entry of the name \"", name, "\""));
}

class Files {
 public:
  Files(std::string folder, FileReader read) : folder_(std::move(folder)), read_(std::move(read)) {}

  std::string PathOf(const std::string& name) const {
    return absl::StartsWith(name, "/") ? name : absl::StrCat(folder_, "/", name);
  }
  // What is in the document itself (`key`-data, base64) or in the file that it names (`key`); empty
  // when it is in neither.
  absl::StatusOr<std::string> DataOrFile(const Section& section, absl::string_view key) const {
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
    absl::StatusOr<std::string> content = read_(PathOf(*name));
    if (!content.ok()) return Wrong(section.PathOf(key), content.status().message());
    if (content->empty()) return Wrong(section.PathOf(key), "names an empty file");
    return content;
  }
  const FileReader& read() const { return read_; }

 private:
  std::string folder_;
  FileReader read_;
};

absl::Status ReadCluster(const Section& cluster, const Files& files, ClientOptions& client) {
  for (const absl::Status& refused :
       {cluster.Refuse("proxy-url", "is not supported: connect without a proxy"),
        cluster.Refuse("tls-server-name",
                       "is not supported: use a server address that its certificate names")}) {
    if (!refused.ok()) return refused;
  }
  if (cluster.Has("insecure-skip-tls-verify")) {
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
  absl::StatusOr<std::string> authority = files.DataOrFile(cluster, "certificate-authority");
  if (!authority.ok()) return authority.status();
  if (authority->empty()) return Wrong(cluster.PathOf("certificate-authority"), "is missing");
  client.ca_pem = *std::move(authority);
  return absl::OkStatus();
}

// The function that gives the user's token, if it has one.
absl::Status ReadToken(const Section& user, const Files& files, ClientOptions& client) {
  const absl::StatusOr<std::string> token = user.Text("token");
  if (!token.ok()) return token.status();
  const absl::StatusOr<std::string> name = user.Text("tokenFile");
  if (!name.ok()) return name.status();
  if (!name->empty()) {
    client.token = [field = user.PathOf("tokenFile"), path = files.PathOf(*name),
                    read = files.read()]() -> absl::StatusOr<std::string> {
      absl::StatusOr<std::string> content = read(path);
      if (!content.ok()) return Wrong(field, content.status().message());
      absl::StripAsciiWhitespace(&*content);
      if (!IsOneWord(*content)) return Wrong(field, "names a file that holds no token");
      return content;
    };
    return client.token().status();
  }
  if (token->empty()) return absl::OkStatus();
  if (!IsOneWord(*token)) return Wrong(user.PathOf("token"), "is not one word");
  client.token = [word = *token] { return word; };
  return absl::OkStatus();
}

absl::Status ReadUser(const Section& user, const Files& files, ClientOptions& client) {
  constexpr char kInstead[] = "is not supported: use a client certificate or a token";
  for (const char* key : {"exec", "auth-provider", "username", "password", "as"}) {
    if (absl::Status refused = user.Refuse(key, kInstead); !refused.ok()) return refused;
  }
  if (absl::Status token = ReadToken(user, files, client); !token.ok()) return token;
  absl::StatusOr<std::string> certificate = files.DataOrFile(user, "client-certificate");
  if (!certificate.ok()) return certificate.status();
  absl::StatusOr<std::string> key = files.DataOrFile(user, "client-key");
  if (!key.ok()) return key.status();
  if (certificate->empty() != key->empty()) {
    return Wrong(user.PathOf(key->empty() ? "client-key" : "client-certificate"),
                 "is missing: a certificate needs its key");
  }
  if (certificate->empty() && client.token == nullptr) {
    return Wrong(user.PathOf("client-certificate"), "and token are missing");
  }
  client.certificate_pem = *std::move(certificate);
  client.key_pem = *std::move(key);
  return absl::OkStatus();
}

// A file may be a pipe, as in --kubeconfig <(...).
absl::StatusOr<std::string> ReadFile(const std::string& path) {
  absl::StatusOr<std::string> text = ReadInput(path, kMaxKubeconfigBytes);
  if (text.ok()) return text;
  return absl::InvalidArgumentError(
      absl::StrCat("names a file that cannot be read: ", text.status().message()));
}

}  // namespace

absl::StatusOr<Kubeconfig> ParseKubeconfig(absl::string_view text, const std::string& folder,
                                           absl::string_view context, const FileReader& read) {
  const absl::StatusOr<std::vector<Json>> documents = ParseYaml(text);
  if (!documents.ok()) return Wrong("it", documents.status().message());
  if (documents->size() != 1) return Wrong("it", "is not one YAML document");
  const Json& document = documents->front();
  const std::string name =
      context.empty() ? StringAt(document, {"current-context"}) : std::string(context);
  if (name.empty()) return Wrong("current-context", "is missing; name the context to use");
  const absl::StatusOr<Section> chosen = Named(document, "contexts", name, "context");
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
  const absl::StatusOr<Section> cluster = Named(document, "clusters", names[0], "cluster");
  if (!cluster.ok()) return cluster.status();
  const absl::StatusOr<Section> user = Named(document, "users", names[1], "user");
  if (!user.ok()) return user.status();
  const Files files(folder, read);
  if (absl::Status done = ReadCluster(*cluster, files, config.client); !done.ok()) return done;
  if (absl::Status done = ReadUser(*user, files, config.client); !done.ok()) return done;
  return config;
}

absl::StatusOr<Kubeconfig> LoadKubeconfig(const std::string& path, absl::string_view context) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return Wrong("its path", text.status().message());
  const std::string folder = std::filesystem::path(path).parent_path().string();
  absl::StatusOr<Kubeconfig> config =
      ParseKubeconfig(*text, folder.empty() ? "." : folder, context, ReadFile);
  if (config.ok()) return config;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", config.status().message()));
}

}  // namespace railhead::kube
