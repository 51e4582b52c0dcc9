// SPDX-License-Identifier: Apache-2.0
#include "kube/kubeconfig.h"

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

namespace railhead::kube {
namespace {

using ::testing::HasSubstr;

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
    return ParseKubeconfig(text, "/home/me/.kube", context,
                           [this](const std::string& path) -> absl::StatusOr<std::string> {
                             const auto at = files_.find(path);
                             if (at == files_.end()) return absl::InvalidArgumentError("no file");
                             return at->second;
                           });
  }

  std::map<std::string, std::string> files_;
};

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
      {Config("{server: 'https://h', proxy-url: 'http://p'}", kUser),
       "clusters[k].cluster.proxy-url"},
      {Config("{server: 'https://h', tls-server-name: x}", kUser),
       "clusters[k].cluster.tls-server-name"},
      {Config("7", kUser), "clusters[k].cluster is not a mapping"},
      {Config(kCluster, "{}"), "users[u].user.client-certificate and token are missing"},
      {Config(kCluster, "{token: 'a b'}"), "users[u].user.token"},
      {Config(kCluster, "{token: [a]}"), "users[u].user.token is not a string"},
      {Config(kCluster, "{tokenFile: gone}"), "users[u].user.tokenFile no file"},
      {Config(kCluster, "{exec: {command: aws}}"), "users[u].user.exec is not supported"},
      {Config(kCluster, "{auth-provider: {name: x}}"), "users[u].user.auth-provider"},
      {Config(kCluster, "{username: me, password: x}"), "users[u].user.username"},
      {Config(kCluster, "{" + certificate + "}"), "users[u].user.client-key is missing"},
      {Config(kCluster, "{client-key-data: QQ==}"), "users[u].user.client-certificate is missing"},
      {"{}", "current-context"},
      {"", "not one YAML document"},
      {"current-context: x", "contexts is not a list"},
      {"current-context: x\ncontexts: [{name: y}]", "contexts has no entry of the name \"x\""},
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

TEST(LoadKubeconfigTest, ReadsAFileAndWhatLiesBesideIt) {
  const std::filesystem::path folder =
      absl::StrCat(::testing::TempDir(), "railhead-kubeconfig-", getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "ca.crt") << "PEM";
  std::ofstream(folder / "config")
      << Config("{server: 'https://h', certificate-authority: ca.crt}", kUser);
  const auto config = LoadKubeconfig(folder / "config", "");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->client.ca_pem, "PEM");
  const absl::Status missing = LoadKubeconfig(folder / "none", "").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(missing.message()), HasSubstr((folder / "none").string()));
  EXPECT_THAT(std::string(LoadKubeconfig(folder / "config", "nope").status().message()),
              HasSubstr((folder / "config").string()));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace railhead::kube
