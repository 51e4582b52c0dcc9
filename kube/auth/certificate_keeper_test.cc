// SPDX-License-Identifier: Apache-2.0
#include "kube/auth/certificate_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "kube/testing/fake_api.h"

namespace railhead::kube {
namespace {

using testing::FakeApi;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);
const ObjectRef kAuthority = {"v1", "secrets", "sys", "authority"};
const ObjectRef kConfiguration = {"admissionregistration.k8s.io/v1",
                                  "mutatingwebhookconfigurations", "", "hook"};
constexpr char kName[] = "op.sys.svc";

// One replica of the operator.
struct Replica {
  Replica(Api* api, absl::Time* now)
      : keeper({kAuthority, kConfiguration, "test authority", {kName}}, api, &identity,
               [now] { return *now; }) {}

  void MustReconcile() {
    const auto log = keeper.Reconcile();
    ASSERT_TRUE(log.ok()) << log.status();
  }

  TlsIdentity identity;
  CertificateKeeper keeper;
};

std::string Bundle(const FakeApi& api, int webhook) {
  std::string bundle;
  absl::Base64Unescape(
      StringAt(api.At(kConfiguration)["webhooks"][webhook], {"clientConfig", "caBundle"}), &bundle);
  return bundle;
}

// What the API server does with every call: does `bundle` vouch for what the replica shows?
bool ApiServerTrusts(const std::string& bundle, const TlsIdentity& identity, absl::Time now) {
  const std::shared_ptr<SSL_CTX> context = identity.context();
  if (context == nullptr) return false;
  X509_STORE* store = X509_STORE_new();
  BIO* bio = BIO_new_mem_buf(bundle.data(), static_cast<int>(bundle.size()));
  while (X509* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr)) {
    X509_STORE_add_cert(store, certificate);
    X509_free(certificate);
  }
  BIO_free(bio);
  X509_STORE_CTX* check = X509_STORE_CTX_new();
  X509_STORE_CTX_init(check, store, SSL_CTX_get0_certificate(context.get()), nullptr);
  X509_VERIFY_PARAM* param = X509_STORE_CTX_get0_param(check);
  X509_VERIFY_PARAM_set_time(param, absl::ToTimeT(now));
  X509_VERIFY_PARAM_set1_host(param, kName, 0);
  const bool trusted = X509_verify_cert(check) == 1;
  X509_STORE_CTX_free(check);
  X509_STORE_free(store);
  return trusted;
}

class CertificateKeeperTest : public ::testing::Test {
 protected:
  bool Trusts(const Replica& replica) {
    return ApiServerTrusts(Bundle(api_, 0), replica.identity, now_) &&
           ApiServerTrusts(Bundle(api_, 1), replica.identity, now_);
  }

  void SetUp() override {
    api_.Put(kAuthority, {{"metadata", {{"name", "authority"}}}, {"type", "Opaque"}});
    api_.Put(kConfiguration, Json::parse(R"({"metadata": {"name": "hook"}, "webhooks": [
               {"name": "pods.railhead.io", "clientConfig": {"service": {"name": "op"}}},
               {"name": "jobs.railhead.io", "clientConfig": {"service": {"name": "op"}}}]})"));
  }

  // Somebody replaces the authority in the Secret, and nothing else there.
  void PutAuthority(absl::Duration lifetime) {
    const auto made = MakeAuthority("another", now_, lifetime);
    ASSERT_TRUE(made.ok());
    Json secret = api_.At(kAuthority);
    secret["data"]["ca.crt"] = absl::Base64Escape(made->certificate);
    secret["data"]["ca.key"] = absl::Base64Escape(made->key);
    api_.Put(kAuthority, secret);
  }

  std::vector<std::string> Previous() {
    std::string list;
    EXPECT_TRUE(
        absl::Base64Unescape(StringAt(api_.At(kAuthority), {"data", "previous-ca.crt"}), &list));
    return SplitCertificates(list);
  }

  absl::Time now_ = kStart;
  FakeApi api_;
  Replica first_{&api_, &now_};
  Replica second_{&api_, &now_};
};

TEST_F(CertificateKeeperTest, FromNothingToTrustedInTwoRounds) {
  EXPECT_FALSE(first_.keeper.Trusted());
  EXPECT_EQ(first_.identity.context(), nullptr);
  first_.MustReconcile();
  EXPECT_TRUE(Trusts(first_));
  EXPECT_FALSE(first_.keeper.Trusted());  // put there, but not yet seen there
  first_.MustReconcile();
  EXPECT_TRUE(first_.keeper.Trusted());
  EXPECT_EQ(first_.keeper.authority_expiry(), now_ + absl::Hours(24 * 365));
  EXPECT_EQ(first_.keeper.serving_expiry(), now_ + absl::Hours(24 * 7));
}

TEST_F(CertificateKeeperTest, ALaterRoundOnlyLooks) {
  first_.MustReconcile();
  first_.MustReconcile();
  const auto identity = first_.identity.context();
  api_.TakeCalls();
  first_.MustReconcile();
  EXPECT_THAT(api_.TakeCalls(),
              ElementsAre("GET " + kConfiguration.Path(), "GET " + kAuthority.Path()));
  EXPECT_EQ(first_.identity.context(), identity);
}

TEST_F(CertificateKeeperTest, ReplicasShareOneAuthority) {
  first_.MustReconcile();
  const Json secret = api_.At(kAuthority);
  second_.MustReconcile();
  EXPECT_EQ(api_.At(kAuthority), secret);
  EXPECT_TRUE(Trusts(first_));
  EXPECT_TRUE(Trusts(second_));
  EXPECT_NE(first_.identity.context(), second_.identity.context());
}

TEST_F(CertificateKeeperTest, TheLoserOfARaceTakesTheWinnersAuthority) {
  api_.before_patch = [this] { second_.MustReconcile(); };
  first_.MustReconcile();
  EXPECT_TRUE(Trusts(first_));
  EXPECT_TRUE(Trusts(second_));
  first_.MustReconcile();
  second_.MustReconcile();
  EXPECT_TRUE(first_.keeper.Trusted());
  EXPECT_TRUE(second_.keeper.Trusted());
}

TEST_F(CertificateKeeperTest, AStaleReplicaCannotPutAnOldBundleBack) {
  first_.MustReconcile();
  second_.MustReconcile();
  // The first wants to repair the bundle; between its reading and its writing the second rotates.
  Json configuration = api_.At(kConfiguration);
  configuration["webhooks"][0]["clientConfig"].erase("caBundle");
  api_.Put(kConfiguration, configuration);
  api_.before_patch = [this] {
    Json secret = api_.At(kAuthority);
    secret.erase("data");
    api_.Put(kAuthority, secret);
    second_.MustReconcile();
  };
  first_.MustReconcile();
  EXPECT_TRUE(Trusts(first_));
  EXPECT_TRUE(Trusts(second_));
}

TEST_F(CertificateKeeperTest, RepairsABundleThatAnUpgradeReset) {
  first_.MustReconcile();
  first_.MustReconcile();
  Json configuration = api_.At(kConfiguration);
  configuration["webhooks"][1]["clientConfig"]["caBundle"] = "";
  api_.Put(kConfiguration, configuration);
  const auto log = first_.keeper.Reconcile();
  ASSERT_TRUE(log.ok());
  EXPECT_THAT(*log, ElementsAre(HasSubstr("into 1 webhooks")));
  EXPECT_TRUE(Trusts(first_));
  EXPECT_FALSE(first_.keeper.Trusted());
  first_.MustReconcile();
  EXPECT_TRUE(first_.keeper.Trusted());
}

TEST_F(CertificateKeeperTest, RenewsTheServingCertificateBeforeItExpires) {
  first_.MustReconcile();
  first_.MustReconcile();
  const auto before = first_.identity.context();
  now_ += absl::Hours(24 * 5);
  first_.MustReconcile();
  EXPECT_NE(first_.identity.context(), before);
  EXPECT_EQ(first_.keeper.serving_expiry(), now_ + absl::Hours(24 * 7));
  EXPECT_TRUE(first_.keeper.Trusted());
}

// Two years, every third day, with replicas that look at different times: at no moment is either of
// them not trusted.
TEST_F(CertificateKeeperTest, RotationsNeverLeaveAReplicaUntrusted) {
  first_.MustReconcile();
  second_.MustReconcile();
  const std::string first_authority = StringAt(api_.At(kAuthority), {"data", "ca.crt"});
  int rotations = 0;
  std::string authority = first_authority;
  for (int day = 0; day < 720; day += 3) {
    now_ += absl::Hours(24 * 3);
    for (int step = 0; step < 4; ++step) {
      now_ += absl::Seconds(10);
      (step % 2 == 1 ? second_ : first_).MustReconcile();
      ASSERT_TRUE(Trusts(first_)) << "day " << day << " step " << step;
      ASSERT_TRUE(Trusts(second_)) << "day " << day << " step " << step;
    }
    if (StringAt(api_.At(kAuthority), {"data", "ca.crt"}) != authority) {
      authority = StringAt(api_.At(kAuthority), {"data", "ca.crt"});
      ++rotations;
    }
  }
  EXPECT_EQ(rotations, 2);  // every 244 days
}

TEST_F(CertificateKeeperTest, KeepsTheOldServingCertificateUntilTheBundleHasSettled) {
  first_.MustReconcile();
  first_.MustReconcile();
  const auto before = first_.identity.context();
  now_ += absl::Hours(24 * 3);
  Json secret = api_.At(kAuthority);
  secret.erase("data");  // somebody forces a new authority
  api_.Put(kAuthority, secret);
  first_.MustReconcile();
  EXPECT_EQ(first_.identity.context(), before);
  EXPECT_TRUE(Trusts(first_));
  EXPECT_TRUE(first_.keeper.Trusted());  // replicas stay ready through a rotation
  now_ += absl::Seconds(10);
  first_.MustReconcile();
  EXPECT_NE(first_.identity.context(), before);
  EXPECT_TRUE(Trusts(first_));
}

TEST_F(CertificateKeeperTest, AnAuthorityThatSomebodyPutThereIsTakenWithoutAMomentOfDistrust) {
  first_.MustReconcile();
  second_.MustReconcile();
  const auto others = MakeAuthority("another", now_, absl::Hours(24 * 90));
  ASSERT_TRUE(others.ok());
  for (const std::string& key : {others->key, std::string("of another certificate")}) {
    const auto before = first_.identity.context();
    Json secret = api_.At(kAuthority);
    secret["data"] = {{"ca.crt", absl::Base64Escape(others->certificate)},
                      {"ca.key", absl::Base64Escape(key)}};
    api_.Put(kAuthority, secret);
    for (int step = 0; step < 6; ++step) {
      (step % 2 == 1 ? second_ : first_).MustReconcile();
      ASSERT_TRUE(Trusts(first_)) << "step " << step;
      ASSERT_TRUE(Trusts(second_)) << "step " << step;
      now_ += absl::Seconds(5);
    }
    EXPECT_NE(first_.identity.context(), before);
    const std::string authority = StringAt(api_.At(kAuthority), {"data", "ca.crt"});
    EXPECT_EQ(authority == absl::Base64Escape(others->certificate), key == others->key);
  }
}

TEST_F(CertificateKeeperTest, TwoRotationsInARowKeepBothWhoServeFromTheLastOnes) {
  first_.MustReconcile();
  PutAuthority(absl::Hours(24 * 90));
  first_.MustReconcile();   // waits until the new bundle has settled
  second_.MustReconcile();  // has just started, and serves from the new one at once
  PutAuthority(absl::Hours(24 * 90));
  for (int step = 0; step < 6; ++step) {
    (step % 2 == 0 ? second_ : first_).MustReconcile();
    ASSERT_TRUE(Trusts(first_)) << "step " << step;
    ASSERT_TRUE(Trusts(second_)) << "step " << step;
    now_ += absl::Seconds(1);
  }
  EXPECT_EQ(Previous().size(), 2U);
  // Nobody has anything left to write, however many there were.
  const Json secret = api_.At(kAuthority);
  second_.MustReconcile();
  first_.MustReconcile();
  EXPECT_EQ(api_.At(kAuthority), secret);
}

TEST_F(CertificateKeeperTest, PreviousAuthoritiesAreBoundedAndThoseThatExpiredGo) {
  first_.MustReconcile();
  for (int rotation = 0; rotation < 12; ++rotation) {
    PutAuthority(absl::Hours(24 * 30));
    first_.MustReconcile();
    now_ += absl::Seconds(10);
    first_.MustReconcile();
    ASSERT_TRUE(Trusts(first_)) << "rotation " << rotation;
  }
  EXPECT_EQ(Previous().size(), 8U);
  EXPECT_EQ(SplitCertificates(Bundle(api_, 0)).size(), 9U);
  // All of them have expired, and so has the one in use: there is a new one.
  now_ += absl::Hours(24 * 31);
  first_.MustReconcile();
  EXPECT_EQ(SplitCertificates(Bundle(api_, 0)).size(), 1U);
  EXPECT_TRUE(Previous().empty());
  EXPECT_TRUE(Trusts(first_));
}

TEST_F(CertificateKeeperTest, AnAuthorityThatComesBackIsNotItsOwnPredecessor) {
  first_.MustReconcile();
  const Json own = api_.At(kAuthority)["data"];
  PutAuthority(absl::Hours(24 * 90));
  first_.MustReconcile();
  now_ += absl::Seconds(10);
  first_.MustReconcile();
  Json secret = api_.At(kAuthority);
  secret["data"]["ca.crt"] = own["ca.crt"];
  secret["data"]["ca.key"] = own["ca.key"];
  api_.Put(kAuthority, secret);
  first_.MustReconcile();
  EXPECT_TRUE(Trusts(first_));
  EXPECT_EQ(SplitCertificates(Bundle(api_, 0)).size(), 2U);
}

TEST_F(CertificateKeeperTest, ReplacesAnAuthorityThatCannotBeUsed) {
  Json secret = api_.At(kAuthority);
  secret["data"] = {{"ca.crt", "!not base64!"}, {"ca.key", 7}, {"previous-ca.crt", "Z2FyYmFnZQ=="}};
  api_.Put(kAuthority, secret);
  first_.MustReconcile();
  EXPECT_TRUE(Trusts(first_));

  secret = api_.At(kAuthority);
  secret["data"]["ca.key"] = absl::Base64Escape("garbage");
  api_.Put(kAuthority, secret);
  const auto log = first_.keeper.Reconcile();
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_THAT(log->front(), HasSubstr("the key is not PEM"));
  EXPECT_TRUE(Trusts(first_));
}

TEST_F(CertificateKeeperTest, TellsWhenAnAuthorityExpiresThatItMayNotReplace) {
  PutAuthority(absl::Hours(24 * 90));
  now_ += absl::Hours(24 * 80);
  api_.before_patch = [this] { api_.SetOutage(absl::PermissionDeniedError("may not patch")); };
  EXPECT_EQ(first_.keeper.Reconcile().status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(first_.keeper.authority_expiry(), now_ + absl::Hours(24 * 10));
  api_.SetOutage(absl::OkStatus());
  first_.MustReconcile();
  EXPECT_EQ(first_.keeper.authority_expiry(), now_ + absl::Hours(24 * 365));
}

// An API server that lets the Secret be read only.
class ReadOnlySecret final : public Api {
 public:
  explicit ReadOnlySecret(Api* api) : api_(api) {}

  absl::StatusOr<Json> Call(const ApiRequest& request) override {
    if (request.method == "PATCH" && request.path == kAuthority.Path()) {
      return absl::PermissionDeniedError("may not patch");
    }
    return api_->Call(request);
  }
  absl::Status Stream(const StreamRequest& request,
                      const std::function<absl::Status(absl::string_view)>& on_bytes) override {
    return api_->Stream(request, on_bytes);
  }

 private:
  Api* const api_;
};

// The authority is due on day 60 of 90; certificates for a week must still come from it.
TEST_F(CertificateKeeperTest, AnAuthorityThatItMayNotReplaceServesUntilItExpires) {
  PutAuthority(absl::Hours(24 * 90));
  ReadOnlySecret read_only(&api_);
  Replica replica(&read_only, &now_);
  for (int day = 0; day < 90; ++day, now_ += absl::Hours(24)) {
    if (day == 75) {  // an upgrade of the chart
      Json configuration = api_.At(kConfiguration);
      for (Json& webhook : configuration["webhooks"]) webhook["clientConfig"].erase("caBundle");
      api_.Put(kConfiguration, configuration);
    }
    const auto first = replica.keeper.Reconcile();
    const auto second = replica.keeper.Reconcile();
    EXPECT_EQ(first.ok(), second.ok());
    if (!second.ok()) {
      EXPECT_EQ(second.status().code(), absl::StatusCode::kPermissionDenied);
    }
    EXPECT_TRUE(replica.keeper.Trusted()) << day;
    EXPECT_TRUE(Trusts(replica)) << day;
  }
  EXPECT_FALSE(replica.keeper.Reconcile().ok());
  EXPECT_FALSE(replica.keeper.Trusted());
}

TEST_F(CertificateKeeperTest, AnOutageChangesNothingUntilTheCertificateExpires) {
  first_.MustReconcile();
  first_.MustReconcile();
  api_.SetOutage(absl::UnavailableError("connection refused"));
  EXPECT_EQ(first_.keeper.Reconcile().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(first_.keeper.Trusted());
  now_ += absl::Hours(24 * 7);
  EXPECT_FALSE(first_.keeper.Trusted());
  api_.SetOutage(absl::OkStatus());
  first_.MustReconcile();
  EXPECT_TRUE(first_.keeper.Trusted());
}

TEST_F(CertificateKeeperTest, SaysWhatIsMissing) {
  const Json secret = api_.At(kAuthority);
  api_.Remove(kAuthority);
  EXPECT_THAT(std::string(first_.keeper.Reconcile().status().message()), HasSubstr("helm upgrade"));
  api_.Put(kAuthority, secret);
  first_.MustReconcile();
  first_.MustReconcile();
  ASSERT_TRUE(first_.keeper.Trusted());

  const Json configuration = api_.At(kConfiguration);
  api_.Remove(kConfiguration);
  EXPECT_EQ(first_.keeper.Reconcile().status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(first_.keeper.Trusted());
  for (const char* webhooks : {"null", "[]", "\"text\""}) {
    Json empty = configuration;
    empty["webhooks"] = Json::parse(webhooks);
    api_.Put(kConfiguration, empty);
    EXPECT_THAT(std::string(first_.keeper.Reconcile().status().message()),
                HasSubstr("has no webhooks"));
  }
}

}  // namespace
}  // namespace railhead::kube
