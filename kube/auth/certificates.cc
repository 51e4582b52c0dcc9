// SPDX-License-Identifier: Apache-2.0
#include "kube/auth/certificates.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace railhead::kube {
namespace {

constexpr absl::Duration kClockSkew = absl::Hours(1);

struct Free {
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(BIGNUM* p) const { BN_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(X509_EXTENSION* p) const { X509_EXTENSION_free(p); }
  void operator()(GENERAL_NAMES* p) const { GENERAL_NAMES_free(p); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

// Takes OpenSSL's queued reason into a status, so that it does not leak into a later call's.
absl::Status CryptoError(absl::string_view what) {
  char reason[256] = "unknown reason";
  if (const unsigned long code = ERR_get_error(); code != 0) {  // NOLINT(google-runtime-int)
    ERR_error_string_n(code, reason, sizeof(reason));
  }
  ERR_clear_error();
  return absl::InternalError(absl::StrCat(what, ": ", reason));
}

absl::StatusOr<std::string> TakeText(BIO* bio) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio, &data);
  if (size <= 0) return CryptoError("writing PEM");
  return std::string(data, static_cast<size_t>(size));
}

absl::StatusOr<KeyedCertificate> ToPem(X509* certificate, EVP_PKEY* key) {
  const Owned<BIO> certificate_bio(BIO_new(BIO_s_mem()));
  const Owned<BIO> key_bio(BIO_new(BIO_s_secmem()));
  if (!certificate_bio || !key_bio || PEM_write_bio_X509(certificate_bio.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(key_bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return CryptoError("writing PEM");
  }
  absl::StatusOr<std::string> certificate_pem = TakeText(certificate_bio.get());
  if (!certificate_pem.ok()) return certificate_pem.status();
  absl::StatusOr<std::string> key_pem = TakeText(key_bio.get());
  if (!key_pem.ok()) return key_pem.status();
  return KeyedCertificate{*std::move(certificate_pem), *std::move(key_pem)};
}

// OpenSSL must never read the passphrase of a PEM key from the terminal.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return -1; }

Owned<X509> ReadCertificate(absl::string_view pem) {
  const Owned<BIO> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Owned<X509> certificate(bio ? PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr)
                              : nullptr);
  ERR_clear_error();
  return certificate;
}

Owned<EVP_PKEY> ReadKey(absl::string_view pem) {
  const Owned<BIO> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Owned<EVP_PKEY> key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr)
                          : nullptr);
  ERR_clear_error();
  return key;
}

bool AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool SetRandomSerial(X509* certificate) {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) return false;
  bytes[0] = (bytes[0] & 0x7f) | 0x40;  // positive, and always of the same length
  const Owned<BIGNUM> number(BN_bin2bn(bytes, sizeof(bytes), nullptr));
  return number != nullptr &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool SetLife(X509* certificate, absl::Time not_before, absl::Time not_after) {
  return ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(not_before)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(not_after)) != nullptr;
}

bool SetCommonName(X509* certificate, absl::string_view common_name) {
  // The upper bound of a common name is 64 characters; longer names live in the DNS names anyway.
  common_name = common_name.substr(0, 64);
  return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(common_name.data()),
                                    static_cast<int>(common_name.size()), -1, 0) == 1;
}

absl::StatusOr<absl::Time> ToTime(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return CryptoError("reading a certificate's validity");
  return absl::FromTimeT(timegm(&parts));
}

}  // namespace

absl::StatusOr<KeyedCertificate> MakeAuthority(absl::string_view common_name, absl::Time now,
                                               absl::Duration lifetime) {
  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const Owned<X509> certificate(X509_new());
  if (!key || !certificate) return CryptoError("creating an authority's key");
  X509* const cert = certificate.get();
  const bool made = X509_set_version(cert, X509_VERSION_3) == 1 && SetRandomSerial(cert) &&
                    SetLife(cert, now - kClockSkew, now + lifetime) &&
                    SetCommonName(cert, common_name) &&
                    X509_set_issuer_name(cert, X509_get_subject_name(cert)) == 1 &&
                    X509_set_pubkey(cert, key.get()) == 1 &&
                    AddExtension(cert, cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    AddExtension(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                    AddExtension(cert, cert, NID_subject_key_identifier, "hash") &&
                    X509_sign(cert, key.get(), EVP_sha256()) > 0;
  if (!made) return CryptoError(absl::StrCat("creating the authority \"", common_name, "\""));
  return ToPem(cert, key.get());
}

absl::StatusOr<KeyedCertificate> SignServingCertificate(const KeyedCertificate& authority,
                                                        const std::vector<std::string>& dns_names,
                                                        absl::Time now, absl::Duration lifetime) {
  if (dns_names.empty()) {
    return absl::InvalidArgumentError("a serving certificate needs at least one DNS name");
  }
  std::string alternative_names;
  for (const std::string& name : dns_names) {
    // The list is text to OpenSSL: a comma or colon inside a name would become another entry.
    if (name.empty() ||
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is not a DNS name"));
    }
    absl::StrAppend(&alternative_names, alternative_names.empty() ? "DNS:" : ",DNS:", name);
  }
  if (absl::Status usable = CheckAuthority(authority, now); !usable.ok()) return usable;
  const Owned<X509> issuer = ReadCertificate(authority.certificate);
  const Owned<EVP_PKEY> issuer_key = ReadKey(authority.key);
  absl::StatusOr<CertificateFacts> issuer_facts = InspectCertificate(authority.certificate);
  if (!issuer_facts.ok()) return issuer_facts.status();

  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const Owned<X509> certificate(X509_new());
  if (!key || !certificate) return CryptoError("creating a serving key");
  X509* const cert = certificate.get();
  const bool made =
      X509_set_version(cert, X509_VERSION_3) == 1 && SetRandomSerial(cert) &&
      SetLife(cert, std::max(now - kClockSkew, issuer_facts->not_before),
              std::min(now + lifetime, issuer_facts->not_after)) &&
      SetCommonName(cert, dns_names.front()) &&
      X509_set_issuer_name(cert, X509_get_subject_name(issuer.get())) == 1 &&
      X509_set_pubkey(cert, key.get()) == 1 &&
      AddExtension(cert, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") &&
      AddExtension(cert, issuer.get(), NID_key_usage, "critical,digitalSignature") &&
      AddExtension(cert, issuer.get(), NID_ext_key_usage, "serverAuth") &&
      AddExtension(cert, issuer.get(), NID_subject_key_identifier, "hash") &&
      AddExtension(cert, issuer.get(), NID_authority_key_identifier, "keyid:always") &&
      AddExtension(cert, issuer.get(), NID_subject_alt_name, alternative_names) &&
      X509_sign(cert, issuer_key.get(), EVP_sha256()) > 0;
  if (!made) {
    return CryptoError(absl::StrCat("signing a serving certificate for ", dns_names.front()));
  }
  return ToPem(cert, key.get());
}

std::vector<std::string> SplitCertificates(absl::string_view pem) {
  std::vector<std::string> found;
  const Owned<BIO> in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  while (in != nullptr) {
    const Owned<X509> certificate(PEM_read_bio_X509(in.get(), nullptr, NoPassphrase, nullptr));
    if (certificate == nullptr) break;
    const Owned<BIO> out(BIO_new(BIO_s_mem()));
    if (out == nullptr || PEM_write_bio_X509(out.get(), certificate.get()) != 1) break;
    absl::StatusOr<std::string> text = TakeText(out.get());
    if (!text.ok()) break;
    found.push_back(*std::move(text));
  }
  ERR_clear_error();
  return found;
}

absl::StatusOr<CertificateFacts> InspectCertificate(absl::string_view pem) {
  const Owned<X509> certificate = ReadCertificate(pem);
  if (!certificate) return absl::InvalidArgumentError("not a PEM certificate");
  CertificateFacts facts;
  char name[256];
  if (X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name,
                                sizeof(name)) > 0) {
    facts.common_name = name;
  }
  const absl::StatusOr<absl::Time> not_before = ToTime(X509_get0_notBefore(certificate.get()));
  if (!not_before.ok()) return not_before.status();
  const absl::StatusOr<absl::Time> not_after = ToTime(X509_get0_notAfter(certificate.get()));
  if (!not_after.ok()) return not_after.status();
  facts.not_before = *not_before;
  facts.not_after = *not_after;
  facts.is_authority = X509_check_ca(certificate.get()) == 1;
  const Owned<GENERAL_NAMES> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* entry = sk_GENERAL_NAME_value(names.get(), i);
    if (entry->type != GEN_DNS) continue;
    facts.dns_names.emplace_back(
        reinterpret_cast<const char*>(ASN1_STRING_get0_data(entry->d.dNSName)),
        static_cast<size_t>(ASN1_STRING_length(entry->d.dNSName)));
  }
  return facts;
}

absl::Status CheckAuthority(const KeyedCertificate& authority, absl::Time now) {
  const Owned<X509> certificate = ReadCertificate(authority.certificate);
  if (!certificate) return absl::InvalidArgumentError("the certificate is not PEM");
  const Owned<EVP_PKEY> key = ReadKey(authority.key);
  if (!key) return absl::InvalidArgumentError("the key is not PEM");
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError("the key does not belong to the certificate");
  }
  const absl::StatusOr<CertificateFacts> facts = InspectCertificate(authority.certificate);
  if (!facts.ok()) return facts.status();
  if (!facts->is_authority) {
    return absl::InvalidArgumentError("the certificate is not a certificate authority");
  }
  if (now < facts->not_before || now >= facts->not_after) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the certificate is valid from ", absl::FormatTime(facts->not_before, absl::UTCTimeZone()),
        " until ", absl::FormatTime(facts->not_after, absl::UTCTimeZone()), "; the time is now ",
        absl::FormatTime(now, absl::UTCTimeZone())));
  }
  return absl::OkStatus();
}

absl::Time RenewalTime(const CertificateFacts& facts) {
  return facts.not_before + (facts.not_after - facts.not_before) / 3 * 2;
}

bool RenewalDue(const CertificateFacts& facts, absl::Time now) {
  return now < facts.not_before || now >= RenewalTime(facts);
}

}  // namespace railhead::kube
