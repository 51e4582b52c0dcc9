// SPDX-License-Identifier: Apache-2.0
//
// Creates and rotates the certificates of a webhook. All replicas share the CA in a Secret. Used by
// the operator.
#ifndef RAILHEAD_KUBE_AUTH_CERTIFICATE_KEEPER_H_
#define RAILHEAD_KUBE_AUTH_CERTIFICATE_KEEPER_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/auth/certificates.h"
#include "kube/auth/tls_identity.h"
#include "kube/client.h"

namespace railhead::kube {

struct CertificateKeeperOptions {
  ObjectRef secret;         // Secret of the CA; must exist, may be empty
  ObjectRef configuration;  // Mutating- or ValidatingWebhookConfiguration to put the CA into
  std::string authority_name;
  std::vector<std::string> dns_names;  // DNS names of the webhook's service
  absl::Duration authority_lifetime = absl::Hours(24 * 365);
  absl::Duration serving_lifetime = absl::Hours(24 * 7);
  // Time within which API servers load a new caBundle. Until then a certificate of the previous CA
  // stays in use; the bundle still contains that CA.
  absl::Duration settle = absl::Seconds(10);
};

// Each replica signs its own serving certificate and keeps it in memory only. The webhook
// configuration's caBundle contains the CA and, after rotations, up to eight previous CAs that are
// still valid.
//
// Call Reconcile every few seconds: each call checks everything and repairs what is wrong. Replicas
// may do so concurrently: every write carries the resourceVersion it was decided on, and a replica
// whose write conflicts starts over.
//
// Not thread-safe, except for the TlsIdentity that it sets.
class CertificateKeeper {
 public:
  // `api` and `identity` must outlive the keeper.
  CertificateKeeper(CertificateKeeperOptions options, Api* api, TlsIdentity* identity,
                    std::function<absl::Time()> clock);

  // Returns one line for the log per action. After an error, the state is as good as before.
  absl::StatusOr<std::vector<std::string>> Reconcile();

  // Returns true if the API server was last read (not just written) to trust the certificate in
  // use, and that certificate is valid. Becomes true one round after a change at the earliest,
  // which gives API servers time to load it. Outages of API servers do not change it.
  bool Trusted() const;

  // Returns the creation time of the configuration, by the API server's clock; nullopt if never
  // read.
  std::optional<absl::Time> configuration_created() const { return configuration_created_; }

  // Zero time until there is a certificate.
  absl::Time authority_expiry() const { return authority_expiry_; }
  absl::Time serving_expiry() const { return serving_expiry_; }

 private:
  struct Authorities {
    KeyedCertificate current;
    std::string previous;  // certificates only, newest first; empty if none is valid
    // Why `current`, whose renewal is due, could not be replaced; it signs until it expires.
    absl::Status not_renewed = absl::OkStatus();

    std::string Bundle() const { return current.certificate + previous; }
  };

  absl::StatusOr<std::vector<std::string>> ReconcileOnce();
  // Reads the Secret; creates and stores a new CA if it contains no usable one.
  absl::StatusOr<Authorities> LoadAuthority(std::vector<std::string>& log);
  // Writes these values into the Secret; fails if it changed since it was read as `secret`.
  absl::Status Store(const Json& secret, const std::map<std::string, std::string>& values);
  // Keeps this replica's CA valid after another writer replaced it: adds it as a previous one.
  absl::Status KeepOurs(const Json& secret, Authorities& found, std::vector<std::string>& log);
  // Makes every webhook trust `bundle`.
  absl::Status PutBundle(const Json& configuration, const std::string& bundle,
                         std::vector<std::string>& log);
  absl::Status ServeFrom(const Authorities& authorities, std::vector<std::string>& log);

  const CertificateKeeperOptions options_;
  Api* const api_;
  TlsIdentity* const identity_;
  const std::function<absl::Time()> clock_;

  std::optional<absl::Time> configuration_created_;
  bool trusted_ = false;  // the configuration, as last read, trusts the certificate in use
  std::string bundle_;    // last confirmed bundle
  absl::Time bundle_since_ = absl::InfinitePast();  // time of its first confirmation
  std::string issuer_;        // certificate of the CA that signed the one in use
  CertificateFacts serving_;  // of the certificate in use
  absl::Time authority_expiry_ = absl::UnixEpoch();
  absl::Time serving_expiry_ = absl::UnixEpoch();
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_AUTH_CERTIFICATE_KEEPER_H_
