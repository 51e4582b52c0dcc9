// SPDX-License-Identifier: Apache-2.0
//
// Serving certificate of a server, replaceable at runtime: new connections use the new one, open
// connections keep theirs. Set by CertificateKeeper, read by HttpServer.
#ifndef RAILHEAD_KUBE_AUTH_TLS_IDENTITY_H_
#define RAILHEAD_KUBE_AUTH_TLS_IDENTITY_H_

#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "kube/auth/certificates.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace railhead::kube {

// Thread-safe.
class TlsIdentity {
 public:
  // Keeps the old identity and returns InvalidArgument if certificate and key are not PEM or do not
  // match.
  absl::Status Set(const KeyedCertificate& identity);

  // Null until the first Set.
  std::shared_ptr<ssl_ctx_st> context() const;

 private:
  mutable std::mutex mutex_;  // guards context_
  std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_AUTH_TLS_IDENTITY_H_
