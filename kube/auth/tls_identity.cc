// SPDX-License-Identifier: Apache-2.0
#include "kube/auth/tls_identity.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <string>
#include <utility>

namespace railhead::kube {
namespace {

absl::Status Refuse(absl::string_view what) {
  ERR_clear_error();
  return absl::InvalidArgumentError(what);
}

BIO* View(const std::string& text) {
  return BIO_new_mem_buf(text.data(), static_cast<int>(text.size()));
}

}  // namespace

absl::Status TlsIdentity::Set(const KeyedCertificate& identity) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr) return Refuse("cannot create a TLS context");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);

  const std::unique_ptr<BIO, decltype(&BIO_free)> certificate_bio(View(identity.certificate),
                                                                  BIO_free);
  const std::unique_ptr<BIO, decltype(&BIO_free)> key_bio(View(identity.key), BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(certificate_bio.get(), nullptr, nullptr, nullptr), X509_free);
  if (certificate == nullptr || SSL_CTX_use_certificate(context.get(), certificate.get()) != 1) {
    return Refuse("the serving certificate is not PEM");
  }
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  if (key == nullptr || SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return Refuse("the serving key is not PEM or does not belong to the certificate");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  context_ = std::move(context);
  return absl::OkStatus();
}

std::shared_ptr<ssl_ctx_st> TlsIdentity::context() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return context_;
}

}  // namespace railhead::kube
