// SPDX-License-Identifier: Apache-2.0
#include "operator/control/serve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <openssl/pem.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "kube/json.h"
#include "kube/testing/fake_api.h"
#include "kube/testing/http_client.h"
#include "kube/testing/soon.h"

namespace railhead::op {
namespace {

using kube::Json;
using kube::testing::Soon;
using ::testing::AllOf;
using ::testing::HasSubstr;

const kube::ObjectRef kSecret = {"v1", "secrets", "sys", "ca"};
const kube::ObjectRef kConfiguration = {"admissionregistration.k8s.io/v1",
                                        "mutatingwebhookconfigurations", "", "hook"};
constexpr char kServiceName[] = "op.sys.svc";

class ServeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    api_.Put(kSecret, {{"metadata", {{"name", "ca"}}}});
    PutConfiguration();
    InjectionConfig config;
    config.environment["NCCL_DEBUG"] = "INFO";
    operator_ = std::make_unique<Operator>(Options(), config, &api_);
  }

  static ServeOptions Options() {
    ServeOptions options;
    options.space = "sys";
    options.service = "op";
    options.webhook_configuration = "hook";
    options.ca_secret = "ca";
    options.lease = "op";
    options.identity = "me";
    options.address = "127.0.0.1";
    options.port = 0;
    options.health_port = 0;
    options.check_interval = absl::Milliseconds(20);
    options.retry_interval = absl::Milliseconds(20);
    return options;
  }

  void PutConfiguration() {
    api_.Put(kConfiguration, Json::parse(R"({"metadata": {"name": "hook"}, "webhooks": [
      {"name": "pods.railhead.io", "clientConfig": {"service": {"name": "op"}}}]})"));
  }

  int Health(const std::string& path, std::string* body = nullptr) const {
    const auto result = kube::testing::HttpClient("127.0.0.1", operator_->health_port()).Get(path);
    if (!result) return 0;
    if (body != nullptr) *body = result->body;
    return result->status;
  }

  std::string Holder() const {
    const std::vector<Json> leases = api_.In("/apis/coordination.k8s.io/v1/namespaces/sys/leases");
    return leases.empty() ? "" : kube::StringAt(leases[0], {"spec", "holderIdentity"});
  }

  // How many changes come back for a pod; -1 when the call failed.
  int AdmitPod() const {
    const Json patch = PatchFor();
    return patch.is_null() ? -1 : static_cast<int>(patch.size());
  }

  // Sends a pod the way the API server does: trusting the caBundle of the configuration, and
  // nothing else. Null when the call failed.
  Json PatchFor() const {
    std::string bundle;
    absl::Base64Unescape(
        kube::StringAt(api_.At(kConfiguration)["webhooks"][0], {"clientConfig", "caBundle"}),
        &bundle);
    BIO* bio = BIO_new_mem_buf(bundle.data(), static_cast<int>(bundle.size()));
    X509* authority = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
    BIO_free(bio);
    if (authority == nullptr) return nullptr;
    X509_STORE* store = X509_STORE_new();
    X509_STORE_add_cert(store, authority);
    X509_free(authority);
    httplib::SSLClient client(kServiceName, operator_->port());
    client.set_read_timeout(60);
    client.set_hostname_addr_map({{kServiceName, "127.0.0.1"}});
    client.set_ca_cert_store(store);
    const auto result = client.Post("/mutate?timeout=5s", R"({
      "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u",
      "kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE",
      "namespace": "train", "object":
      {"spec": {"containers": [{"name": "c", "resources": {"limits": {"rdma/hca": "1"}}}]}}}})",
                                    "application/json");
    if (!result || result->status != 200) return nullptr;
    std::string patch;
    absl::Base64Unescape(kube::StringAt(Json::parse(result->body), {"response", "patch"}), &patch);
    return Json::parse(patch);
  }

  kube::testing::FakeApi api_;
  std::unique_ptr<Operator> operator_;
};

TEST_F(ServeTest, BecomesReadyServesDrainsAndStops) {
  ASSERT_TRUE(operator_->Start().ok());
  EXPECT_EQ(Health("/healthz"), 200);
  ASSERT_TRUE(Soon([&] { return Health("/readyz") == 200; }));
  EXPECT_EQ(AdmitPod(), 3);
  std::string metrics;
  EXPECT_EQ(Health("/metrics", &metrics), 200);
  EXPECT_THAT(metrics, AllOf(HasSubstr("railhead_webhook_trusted 1"),
                             HasSubstr("{kind=\"Pod\",result=\"mutated\"} 1"),
                             HasSubstr("railhead_certificate_checks_total{result=\"ok\"}")));
  EXPECT_EQ(Health("/"), 404);

  EXPECT_TRUE(Soon([&] { return Holder() == "me"; }));

  operator_->Drain();
  EXPECT_TRUE(Soon([&] { return Holder().empty(); }));  // another one may lead at once
  std::string reason;
  EXPECT_EQ(Health("/readyz", &reason), 503);
  EXPECT_EQ(reason, "not ready: stopping\n");
  EXPECT_EQ(AdmitPod(), 3);
  operator_->Stop();
  EXPECT_EQ(Health("/healthz"), 0);
  EXPECT_EQ(AdmitPod(), -1);
}

TEST_F(ServeTest, SaysWhyItIsNotReady) {
  api_.Remove(kConfiguration);
  ASSERT_TRUE(operator_->Start().ok());
  std::string reason;
  ASSERT_TRUE(Soon([&] {
    return Health("/readyz", &reason) == 503 && reason.find("404") != std::string::npos;
  })) << reason;
  EXPECT_THAT(reason, HasSubstr("mutatingwebhookconfigurations hook"));
  EXPECT_EQ(Health("/healthz"), 200);
  PutConfiguration();
  EXPECT_TRUE(Soon([&] { return Health("/readyz") == 200; }));
}

TEST_F(ServeTest, IsReadyOnlyWithTheProfilesAndAppliesThemWhileTheServerIsAway) {
  const Json profile = Json::parse(R"({"apiVersion": "railhead.io/v1alpha1", "kind": "RailProfile",
    "metadata": {"name": "p", "generation": 3}, "spec": {"fabric": "RoCE",
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "train"}}}})");
  api_.Put({"railhead.io/v1alpha1", "railprofiles", "", "p"}, profile);
  ASSERT_TRUE(operator_->Start().ok());
  ASSERT_TRUE(Soon([&] { return Health("/readyz") == 200; }));
  EXPECT_THAT(PatchFor().dump(), HasSubstr("p@3"));
  api_.SetOutage(absl::UnavailableError("nobody there"));
  EXPECT_THAT(PatchFor().dump(), HasSubstr("p@3"));
  EXPECT_EQ(Health("/readyz"), 200);
}

TEST_F(ServeTest, SaysThatItDoesNotKnowTheClusterYet) {
  api_.SetOutage(absl::UnavailableError("nobody there"));
  ASSERT_TRUE(operator_->Start().ok());
  std::string reason;
  ASSERT_TRUE(Soon([&] {
    return Health("/readyz", &reason) == 503 &&
           reason.find("namespaces is not complete: nobody there") != std::string::npos;
  })) << reason;
  EXPECT_EQ(Health("/healthz"), 200);
  EXPECT_EQ(AdmitPod(), -1);
  api_.SetOutage(absl::OkStatus());
  EXPECT_TRUE(Soon([&] { return Health("/readyz") == 200; }));
}

TEST_F(ServeTest, RepairsAnUpgradedConfiguration) {
  ASSERT_TRUE(operator_->Start().ok());
  ASSERT_TRUE(Soon([&] { return Health("/readyz") == 200; }));
  PutConfiguration();
  EXPECT_TRUE(Soon([&] { return AdmitPod() == 3; }));
}

TEST_F(ServeTest, SaysThatAPortIsTaken) {
  ASSERT_TRUE(operator_->Start().ok());
  ServeOptions options = Options();
  options.health_port = operator_->health_port();
  Operator second(options, {}, &api_);
  const absl::Status status = second.Start();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Address already in use"));
}

}  // namespace
}  // namespace railhead::op
