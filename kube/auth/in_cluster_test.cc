// SPDX-License-Identifier: Apache-2.0
#include "kube/auth/in_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace railhead::kube {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class InClusterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = ::testing::TempDir() + "railhead-in-cluster-" + std::to_string(getpid());
    folder_ = root_ + "/var/run/secrets/kubernetes.io/serviceaccount/";
    std::filesystem::create_directories(folder_);
    Write("token", "first-token\n");
    Write("ca.crt", "pem");
    Write("namespace", "team");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + name, std::ios::binary) << text;
  }
  absl::StatusOr<InCluster> Load() const {
    return InClusterConfig(root_, [this](absl::string_view name) {
      const auto it = environment_.find(std::string(name));
      return it == environment_.end() ? std::string() : it->second;
    });
  }
  std::string Error() const { return std::string(Load().status().message()); }

  std::string root_;
  std::string folder_;
  std::map<std::string, std::string> environment_ = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                                                     {"KUBERNETES_SERVICE_PORT", "443"}};
};

TEST_F(InClusterTest, FindsEverything) {
  const auto config = Load();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->client.server, "https://10.0.0.1:443");
  EXPECT_EQ(config->client.ca_file, folder_ + "ca.crt");
  EXPECT_EQ(config->space, "team");
  EXPECT_EQ(*config->client.token(), "first-token");
}

TEST_F(InClusterTest, PutsIpv6InBrackets) {
  environment_["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  EXPECT_EQ(Load()->client.server, "https://[fd00::1]:443");
  environment_["KUBERNETES_SERVICE_HOST"] = "[fd00::1]";
  EXPECT_EQ(Load()->client.server, "https://[fd00::1]:443");
}

TEST_F(InClusterTest, FollowsARotatedToken) {
  const auto config = Load();
  ASSERT_TRUE(config.ok());
  Write("token", "second-token");
  EXPECT_EQ(*config->client.token(), "second-token");
  std::filesystem::remove(folder_ + "token");
  EXPECT_FALSE(config->client.token().ok());
}

TEST_F(InClusterTest, SaysWhatIsMissing) {
  environment_["KUBERNETES_SERVICE_PORT"] = "65536";
  EXPECT_THAT(Error(), HasSubstr("KUBERNETES_SERVICE_PORT is \"65536\""));
  environment_.clear();
  EXPECT_THAT(Error(), HasSubstr("not in a pod"));
}

TEST_F(InClusterTest, RefusesUnusableFilesWithoutQuotingTheToken) {
  for (const std::string& token : {std::string("secret one"), std::string("secret\r\nHost: x"),
                                   std::string("secret\0x", 8), std::string(100'000, 's')}) {
    Write("token", token);
    EXPECT_THAT(Error(), HasSubstr("token "));
    EXPECT_THAT(Error(), Not(HasSubstr("secret\r")));
    EXPECT_THAT(Error(), Not(HasSubstr("secret one")));
  }
  Write("token", "");
  EXPECT_THAT(Error(), HasSubstr("token is empty"));
  std::filesystem::remove(folder_ + "token");
  EXPECT_THAT(Error(), HasSubstr("automountServiceAccountToken"));
  Write("token", "t");
  std::filesystem::remove(folder_ + "ca.crt");
  EXPECT_THAT(Error(), HasSubstr("ca.crt"));
}

}  // namespace
}  // namespace railhead::kube
