// SPDX-License-Identifier: Apache-2.0
#include "kube/auth/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace railhead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
const std::vector<std::string> kNames = {"op.sys.svc", "op.sys.svc.cluster.local"};

X509* FromPem(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  return certificate;
}

// What a TLS client does: is `leaf`, at time `when`, a server of `name` under `root`?
bool ClientAccepts(const std::string& root, const std::string& leaf, const std::string& name,
                   absl::Time when) {
  X509* root_certificate = FromPem(root);
  X509* leaf_certificate = FromPem(leaf);
  X509_STORE* store = X509_STORE_new();
  X509_STORE_add_cert(store, root_certificate);
  X509_STORE_CTX* context = X509_STORE_CTX_new();
  X509_STORE_CTX_init(context, store, leaf_certificate, nullptr);
  X509_VERIFY_PARAM* param = X509_STORE_CTX_get0_param(context);
  X509_VERIFY_PARAM_set_time(param, absl::ToTimeT(when));
  X509_VERIFY_PARAM_set1_host(param, name.data(), name.size());
  X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
  const bool accepted = X509_verify_cert(context) == 1;
  X509_STORE_CTX_free(context);
  X509_STORE_free(store);
  X509_free(leaf_certificate);
  X509_free(root_certificate);
  return accepted;
}

TEST(CertificatesTest, AClientAcceptsTheServingCertificate) {
  const auto authority = MakeAuthority("railhead test authority", kNow, absl::Hours(24 * 365));
  ASSERT_TRUE(authority.ok()) << authority.status();
  const auto leaf = SignServingCertificate(*authority, kNames, kNow, absl::Hours(24 * 7));
  ASSERT_TRUE(leaf.ok()) << leaf.status();

  for (const std::string& name : kNames) {
    EXPECT_TRUE(ClientAccepts(authority->certificate, leaf->certificate, name, kNow));
  }
  EXPECT_TRUE(ClientAccepts(authority->certificate, leaf->certificate, kNames[0],
                            kNow - absl::Minutes(50)));
  EXPECT_FALSE(ClientAccepts(authority->certificate, leaf->certificate, "other.sys.svc", kNow));
  EXPECT_FALSE(ClientAccepts(authority->certificate, leaf->certificate, kNames[0],
                             kNow + absl::Hours(24 * 8)));
  const auto stranger = MakeAuthority("railhead test authority", kNow, absl::Hours(1));
  ASSERT_TRUE(stranger.ok());
  EXPECT_FALSE(ClientAccepts(stranger->certificate, leaf->certificate, kNames[0], kNow));
}

TEST(CertificatesTest, FactsSayWhatWasAsked) {
  const auto authority = MakeAuthority("authority", kNow, absl::Hours(100));
  ASSERT_TRUE(authority.ok());
  const auto authority_facts = InspectCertificate(authority->certificate);
  ASSERT_TRUE(authority_facts.ok()) << authority_facts.status();
  EXPECT_EQ(authority_facts->common_name, "authority");
  EXPECT_TRUE(authority_facts->is_authority);
  EXPECT_EQ(authority_facts->not_after, kNow + absl::Hours(100));

  const auto leaf = SignServingCertificate(*authority, kNames, kNow, absl::Hours(10));
  ASSERT_TRUE(leaf.ok());
  const auto facts = InspectCertificate(leaf->certificate);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_FALSE(facts->is_authority);
  EXPECT_THAT(facts->dns_names, ElementsAre(kNames[0], kNames[1]));
  EXPECT_EQ(facts->not_after, kNow + absl::Hours(10));
}

TEST(CertificatesTest, ALeafNeverOutlivesItsAuthority) {
  const auto authority = MakeAuthority("authority", kNow, absl::Hours(5));
  ASSERT_TRUE(authority.ok());
  const auto leaf = SignServingCertificate(*authority, kNames, kNow, absl::Hours(10));
  ASSERT_TRUE(leaf.ok());
  EXPECT_EQ(InspectCertificate(leaf->certificate)->not_after, kNow + absl::Hours(5));
}

TEST(CertificatesTest, SplitsAListInWhateverFormItIsWritten) {
  const auto a = MakeAuthority("a", kNow, absl::Hours(1));
  const auto b = MakeAuthority("b", kNow, absl::Hours(1));
  ASSERT_TRUE(a.ok() && b.ok());
  const std::string other = absl::StrReplaceAll(b->certificate, {{"\n", "\r\n"}});
  EXPECT_THAT(SplitCertificates(absl::StrCat("# a comment\n", a->certificate, a->key, "\n", other)),
              ElementsAre(a->certificate, b->certificate));
  EXPECT_TRUE(SplitCertificates("").empty());
  EXPECT_TRUE(SplitCertificates("garbage").empty());
  EXPECT_TRUE(SplitCertificates(a->certificate.substr(0, 200)).empty());
}

TEST(CertificatesTest, LivesBeyond2050) {
  const absl::Time later = absl::FromUnixSeconds(3'000'000'000);
  const auto authority = MakeAuthority("authority", later, absl::Hours(24 * 365));
  ASSERT_TRUE(authority.ok());
  EXPECT_EQ(InspectCertificate(authority->certificate)->not_after, later + absl::Hours(24 * 365));
}

TEST(CertificatesTest, RefusesNamesThatWouldBecomeOtherEntries) {
  const auto authority = MakeAuthority("authority", kNow, absl::Hours(5));
  ASSERT_TRUE(authority.ok());
  for (const std::string& name : {std::string(), std::string("a,DNS:b"), std::string("a b"),
                                  std::string("a\nb"), std::string("a:b")}) {
    const auto leaf = SignServingCertificate(*authority, {name}, kNow, absl::Hours(1));
    EXPECT_EQ(leaf.status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_FALSE(SignServingCertificate(*authority, {}, kNow, absl::Hours(1)).ok());
}

TEST(CertificatesTest, CheckAuthorityNamesTheDefect) {
  const auto authority = MakeAuthority("authority", kNow, absl::Hours(5));
  const auto other = MakeAuthority("authority", kNow, absl::Hours(5));
  ASSERT_TRUE(authority.ok() && other.ok());
  const auto leaf = SignServingCertificate(*authority, kNames, kNow, absl::Hours(1));
  ASSERT_TRUE(leaf.ok());
  EXPECT_TRUE(CheckAuthority(*authority, kNow).ok());

  const auto reason = [](const KeyedCertificate& pair, absl::Time now) {
    return std::string(CheckAuthority(pair, now).message());
  };
  EXPECT_THAT(reason({"", ""}, kNow), HasSubstr("certificate is not PEM"));
  EXPECT_THAT(reason({"garbage \x01\xff", authority->key}, kNow), HasSubstr("not PEM"));
  EXPECT_THAT(reason({authority->certificate, "garbage"}, kNow), HasSubstr("key is not PEM"));
  EXPECT_THAT(reason({authority->certificate, other->key}, kNow), HasSubstr("does not belong"));
  EXPECT_THAT(reason(*leaf, kNow), HasSubstr("not a certificate authority"));
  EXPECT_THAT(reason(*authority, kNow + absl::Hours(6)), HasSubstr("valid from"));
  EXPECT_THAT(reason(*authority, kNow - absl::Hours(2)), HasSubstr("valid from"));
}

TEST(CertificatesTest, RenewalIsDueAfterTwoThirdsOfTheLife) {
  CertificateFacts facts;
  facts.not_before = kNow;
  facts.not_after = kNow + absl::Hours(30);
  EXPECT_TRUE(RenewalDue(facts, kNow - absl::Seconds(1)));
  EXPECT_FALSE(RenewalDue(facts, kNow));
  EXPECT_FALSE(RenewalDue(facts, kNow + absl::Hours(20) - absl::Seconds(1)));
  EXPECT_TRUE(RenewalDue(facts, kNow + absl::Hours(20)));
  EXPECT_TRUE(RenewalDue(facts, kNow + absl::Hours(40)));
}

}  // namespace
}  // namespace railhead::kube
