// SPDX-License-Identifier: Apache-2.0
#include "kube/auth/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kube/json.h"

namespace railhead::kube {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kCluster[] = R"({server: "https://h:6443/", certificate-authority-data: Q0E=})";
constexpr char kUser[] = "{token: sesame}";

std::string Config(absl::string_view cluster, absl::string_view user) {
  return absl::StrCat(
      "current-context: c\n"
      "contexts:\n"
      "- {name: other, context: {cluster: none, user: none}}\n"
      "- {name: c, context: {cluster: k, user: u}}\n"
      "- {name: d, context: {cluster: k, user: v, namespace: team}}\n"
      "clusters:\n- {name: k, cluster: ",
      cluster, "}\nusers:\n- {name: u, user: ", user, "}\n- {name: v, user: {token: second}}\n");
}

class KubeconfigTest : public ::testing::Test {
 protected:
  absl::StatusOr<Kubeconfig> Parse(absl::string_view text, absl::string_view context = "") {
    return ParseAll({{std::string(text), "/home/me/.kube"}}, context);
  }
  absl::StatusOr<Kubeconfig> ParseAll(const std::vector<KubeconfigFile>& files,
                                      absl::string_view context = "") {
    const Surroundings surroundings = {
        [this](const std::string& path) -> absl::StatusOr<std::string> {
          const auto at = files_.find(path);
          if (at == files_.end()) return absl::InvalidArgumentError("no file");
          return at->second;
        },
        [this](const Command& command) {
          commands_.push_back(command);
          return answer_;
        },
        has_terminal_};
    return ParseKubeconfig(files, context, surroundings);
  }

  std::map<std::string, std::string> files_;
  std::vector<Command> commands_;  // that were run
  absl::StatusOr<std::string> answer_ = std::string();
  bool has_terminal_ = false;
};

constexpr char kPlugin[] =
    "{exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, args: [eks, get-token],"
    " env: [{name: AWS_PROFILE, value: team}], interactiveMode: IfAvailable}}";

std::string Credential(absl::string_view status) {
  return absl::StrCat(R"({"apiVersion": "client.authentication.k8s.io/v1", )",
                      R"("kind": "ExecCredential", "status": )", status, "}");
}

// The input of a command that was run.
Json InfoOf(const Command& command) {
  for (const auto& [name, value] : command.environment) {
    if (name == "KUBERNETES_EXEC_INFO") return ParseJson(value).value();
  }
  return {};
}

TEST_F(KubeconfigTest, ReadsTheCurrentContextOrTheOneAskedFor) {
  const auto current = Parse(Config(kCluster, kUser));
  ASSERT_TRUE(current.ok()) << current.status();
  EXPECT_EQ(current->client.server, "https://h:6443");
  EXPECT_EQ(current->client.ca_pem, "CA");
  EXPECT_EQ(*current->client.token(), "sesame");
  EXPECT_EQ(current->space, "default");
  const auto other = Parse(Config(kCluster, kUser), "d");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(*other->client.token(), "second");
  EXPECT_EQ(other->space, "team");
}

TEST_F(KubeconfigTest, ReadsTheNameOfTheCertificateAndTheProxy) {
  const std::string cluster =
      "{server: 'https://h', certificate-authority-data: Q0E=, tls-server-name: api.internal, "
      "proxy-url: 'socks5://p:1080'}";
  const auto config = Parse(Config(cluster, kUser));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->client.server_name, "api.internal");
  EXPECT_EQ(config->client.proxy, "socks5://p:1080");
}

TEST_F(KubeconfigTest, FilesAreRelativeToItsFolderAndTokensAreReadAnew) {
  files_ = {{"/home/me/.kube/ca.crt", "PEM CA"},
            {"/etc/me.crt", "PEM ME"},
            {"/home/me/.kube/keys/me", "PEM KEY"},
            {"/home/me/.kube/token", " first\n"}};
  const auto config =
      Parse(Config("{server: 'https://h', certificate-authority: ca.crt}",
                   "{tokenFile: token, token: old, client-certificate: /etc/me.crt, "
                   "client-key: keys/me}"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->client.ca_pem, "PEM CA");
  EXPECT_EQ(config->client.certificate_pem, "PEM ME");
  EXPECT_EQ(config->client.key_pem, "PEM KEY");
  EXPECT_EQ(*config->client.token(), "first");
  files_["/home/me/.kube/token"] = "second";
  EXPECT_EQ(*config->client.token(), "second");
  files_["/home/me/.kube/token"] = "two words";
  EXPECT_THAT(std::string(config->client.token().status().message()),
              HasSubstr("users[u].user.tokenFile"));
}

TEST_F(KubeconfigTest, NamesTheFieldThatIsWrongOrNotSupported) {
  const std::string certificate = "client-certificate-data: QQ==";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {Config("{certificate-authority-data: Q0E=}", kUser), "clusters[k].cluster.server"},
      {Config("{server: 'http://h', certificate-authority-data: Q0E=}", kUser),
       "clusters[k].cluster.server is not an https address: \"http://h\""},
      {Config("{server: 7}", kUser), "clusters[k].cluster.server is not a string"},
      {Config("{server: \"https://h\\r\\nX: y\"}", kUser), "clusters[k].cluster.server"},
      {Config("{server: 'https://h'}", kUser), "clusters[k].cluster.certificate-authority"},
      {Config("{server: 'https://h', certificate-authority-data: '%'}", kUser),
       "clusters[k].cluster.certificate-authority-data is not base64"},
      {Config("{server: 'https://h', certificate-authority: gone}", kUser),
       "clusters[k].cluster.certificate-authority no file"},
      {Config("{server: 'https://h', insecure-skip-tls-verify: true}", kUser),
       "clusters[k].cluster.insecure-skip-tls-verify"},
      {Config("{server: 'https://h', certificate-authority-data: Q0E=, proxy-url: 'ftp://p'}",
              kUser),
       "clusters[k].cluster.proxy-url is not http://HOST:PORT, https://HOST:PORT or "
       "socks5://HOST:PORT"},
      {Config("{server: 'https://h', certificate-authority-data: Q0E=, proxy-url: 'http://'}",
              kUser),
       "clusters[k].cluster.proxy-url is not"},
      {Config("{server: 'https://h', certificate-authority-data: Q0E=, tls-server-name: 'a b'}",
              kUser),
       "clusters[k].cluster.tls-server-name is not a host name or address: \"a b\""},
      {Config("7", kUser), "clusters[k].cluster is not a mapping"},
      {Config(kCluster, "{}"), "users[u].user.client-certificate and token are missing"},
      {Config(kCluster, "{token: 'a b'}"), "users[u].user.token"},
      {Config(kCluster, "{token: [a]}"), "users[u].user.token is not a string"},
      {Config(kCluster, "{tokenFile: gone}"), "users[u].user.tokenFile no file"},
      {Config(kCluster, "{exec: aws}"), "users[u].user.exec is not a mapping"},
      {Config(kCluster, "{exec: {command: aws}}"), "users[u].user.exec.apiVersion is \"\""},
      {Config(kCluster, "{auth-provider: {name: x}}"), "users[u].user.auth-provider"},
      {Config(kCluster, "{username: me, password: x}"), "users[u].user.username"},
      {Config(kCluster, "{" + certificate + "}"), "users[u].user.client-key is missing"},
      {Config(kCluster, "{client-key-data: QQ==}"), "users[u].user.client-certificate is missing"},
      {"{}", "current-context"},
      {"", "not one YAML document"},
      {"current-context: x", "contexts is not a list"},
      {"current-context: x\ncontexts: [{name: y}]", "contexts has no entry named \"x\""},
      {"current-context: x\ncontexts: [{name: x, context: {user: u}}]",
       "contexts[x].context.cluster is missing"},
      {"a: [", "line"},
  };
  for (const auto& [text, message] : wrong) {
    const absl::Status status = Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
  }
}

TEST_F(KubeconfigTest, AsksTheCredentialPlugin) {
  answer_ = Credential(R"({"token": "of-the-cloud"})");
  const auto config = Parse(Config(kCluster, kPlugin));
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(commands_.size(), 1);
  EXPECT_EQ(commands_[0].program, "aws");
  EXPECT_THAT(commands_[0].arguments, ElementsAre("eks", "get-token"));
  EXPECT_THAT(commands_[0].environment, Contains(Pair("AWS_PROFILE", "team")));
  EXPECT_FALSE(commands_[0].reads_input);
  const Json info = {{"apiVersion", "client.authentication.k8s.io/v1"},
                     {"kind", "ExecCredential"},
                     {"spec", {{"interactive", false}}}};
  EXPECT_EQ(InfoOf(commands_[0]), info);
  // A token without an end is good for all calls.
  EXPECT_EQ(*config->client.token(), "of-the-cloud");
  EXPECT_EQ(*config->client.token(), "of-the-cloud");
  EXPECT_EQ(commands_.size(), 1);
  EXPECT_EQ(config->client.certificate_pem, "");
}

TEST_F(KubeconfigTest, AsksThePluginAgainOnceItsTokenHasExpired) {
  answer_ = Credential(R"({"token": "a", "expirationTimestamp": "2001-02-03T04:05:06Z"})");
  const auto config = Parse(Config(kCluster, kPlugin));
  ASSERT_TRUE(config.ok()) << config.status();
  answer_ = Credential(R"({"token": "b", "expirationTimestamp": "2999-02-03T04:05:06Z"})");
  EXPECT_EQ(*config->client.token(), "b");
  answer_ = absl::UnavailableError("is away");
  EXPECT_EQ(*config->client.token(), "b");
  EXPECT_EQ(commands_.size(), 2);
}

TEST_F(KubeconfigTest, ATokenThatCannotBeRenewedIsAnError) {
  answer_ = Credential(R"({"token": "a", "expirationTimestamp": "2001-02-03T04:05:06Z"})");
  const auto config = Parse(Config(kCluster, kPlugin));
  ASSERT_TRUE(config.ok()) << config.status();
  answer_ = absl::FailedPreconditionError("aws exited with code 255");
  EXPECT_EQ(
      config->client.token().status(),
      absl::FailedPreconditionError("kubeconfig: users[u].user.exec: aws exited with code 255"));
  answer_ = Credential(R"({"clientCertificateData": "C", "clientKeyData": "K"})");
  EXPECT_THAT(std::string(config->client.token().status().message()),
              HasSubstr("aws printed no token"));
}

TEST_F(KubeconfigTest, APluginMayGiveACertificate) {
  answer_ = Credential(R"({"clientCertificateData": "C", "clientKeyData": "K"})");
  const auto config = Parse(Config(kCluster, kPlugin));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->client.certificate_pem, "C");
  EXPECT_EQ(config->client.key_pem, "K");
  EXPECT_EQ(config->client.token, nullptr);
}

TEST_F(KubeconfigTest, ThePluginHearsOfTheClusterIfItAsks) {
  answer_ = Credential(R"({"token": "t"})");
  const std::string cluster =
      "{server: 'https://h:6443', certificate-authority-data: Q0E=, extensions: ["
      "{name: other, extension: 1},"
      "{name: client.authentication.k8s.io/exec, extension: {audience: x}}]}";
  const std::string user =
      "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./bin/login, "
      "provideClusterInfo: true}}";
  ASSERT_TRUE(Parse(Config(cluster, user)).ok());
  EXPECT_EQ(commands_[0].program, "/home/me/.kube/./bin/login") << "beside the kubeconfig";
  const Json told = {{"server", "https://h:6443"},
                     {"certificate-authority-data", "Q0E="},
                     {"config", {{"audience", "x"}}}};
  EXPECT_EQ(*FindPath(InfoOf(commands_[0]), {"spec", "cluster"}), told);
}

TEST_F(KubeconfigTest, ThePluginReadsFromTheTerminalWhereItMay) {
  answer_ = Credential(R"({"token": "t"})");
  const auto user = [](absl::string_view mode) {
    return absl::StrCat("{exec: {apiVersion: client.authentication.k8s.io/v1, command: login",
                        mode.empty() ? "" : ", interactiveMode: ", mode, "}}");
  };
  EXPECT_THAT(std::string(Parse(Config(kCluster, user("Always"))).status().message()),
              HasSubstr("users[u].user.exec.interactiveMode is Always, but standard input"));
  EXPECT_TRUE(commands_.empty());
  has_terminal_ = true;
  for (const auto& [mode, reads] : std::map<std::string, bool>{
           {"", true}, {"IfAvailable", true}, {"Always", true}, {"Never", false}}) {
    ASSERT_TRUE(Parse(Config(kCluster, user(mode))).ok()) << mode;
    EXPECT_EQ(commands_.back().reads_input, reads) << mode;
    EXPECT_EQ(*FindPath(InfoOf(commands_.back()), {"spec", "interactive"}), reads) << mode;
  }
}

TEST_F(KubeconfigTest, APluginIsNotRunWhereThereIsAnotherCredential) {
  EXPECT_TRUE(Parse(Config(kCluster, "{token: t, exec: {command: aws}}")).ok());
  EXPECT_TRUE(commands_.empty());
}

TEST_F(KubeconfigTest, APluginThatFailsIsToldWithWhatToDo) {
  answer_ = absl::NotFoundError("aws cannot be run: No such file or directory");
  const std::string user =
      "{exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws, "
      "installHint: \"Install the\\e[31m CLI\"}}";
  EXPECT_EQ(Parse(Config(kCluster, user)).status(),
            absl::FailedPreconditionError(
                "kubeconfig: users[u].user.exec: aws cannot be run: No such file or directory: "
                "Install the\\x1b[31m CLI"));
  answer_ = Credential(R"({"token": "secret-sesame"})");
  const absl::Status other = Parse(Config(kCluster, user)).status();
  EXPECT_THAT(std::string(other.message()),
              HasSubstr("aws printed an ExecCredential whose apiVersion is not "
                        "client.authentication.k8s.io/v1beta1"));
}

TEST_F(KubeconfigTest, OfSeveralTheFirstDecides) {
  files_ = {{"/a/ca", "CA of a"}, {"/b/ca", "CA of b"}};
  const std::vector<KubeconfigFile> files = {
      {"clusters: [{name: k, cluster: {server: 'https://a', certificate-authority: ca}}]", "/a"},
      {"", "/empty"},
      {Config("{server: 'https://b', certificate-authority: ca}", kUser), "/b"},
      {Config("{server: 'https://c', certificate-authority: ca}", "{token: third}"), "/c"}};
  const auto config = ParseAll(files);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->client.server, "https://a");
  EXPECT_EQ(config->client.ca_pem, "CA of a");
  EXPECT_EQ(*config->client.token(), "sesame");
  EXPECT_EQ(*ParseAll({files[2], files[0]})->client.token(), "sesame");
  EXPECT_EQ(ParseAll({files[2], files[0]})->client.ca_pem, "CA of b");
  EXPECT_THAT(std::string(ParseAll({files[0], files[1]}).status().message()),
              HasSubstr("current-context is missing"));
}

TEST(LoadKubeconfigTest, ReadsAFileAndWhatLiesBesideIt) {
  const std::filesystem::path folder =
      absl::StrCat(::testing::TempDir(), "railhead-kubeconfig-", getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "ca.crt") << "PEM";
  std::ofstream(folder / "config")
      << Config("{server: 'https://h', certificate-authority: ca.crt}", kUser);
  const auto config = LoadKubeconfig({folder / "config"}, "");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->client.ca_pem, "PEM");
  const absl::Status missing = LoadKubeconfig({folder / "none"}, "").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(missing.message()), HasSubstr((folder / "none").string()));
  EXPECT_THAT(std::string(LoadKubeconfig({folder / "config"}, "nope").status().message()),
              HasSubstr((folder / "config").string()));
  // Of several those that are not there are skipped.
  EXPECT_TRUE(LoadKubeconfig({folder / "none", folder / "config"}, "").ok());
  EXPECT_EQ(LoadKubeconfig({}, "").status().code(), absl::StatusCode::kInvalidArgument);

  std::ofstream(folder / "login") << "#!/bin/sh\necho \"$SAYS\"\n";
  std::filesystem::permissions(folder / "login", std::filesystem::perms::owner_all);
  std::ofstream(folder / "plugin")
      << Config(kCluster, absl::StrCat("{exec: {apiVersion: client.authentication.k8s.io/v1, "
                                       "command: ./login, env: [{name: SAYS, value: '",
                                       Credential(R"({"token": "t"})"), "'}]}}"));
  const auto asked = LoadKubeconfig({folder / "plugin"}, "");
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(*asked->client.token(), "t");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace railhead::kube
