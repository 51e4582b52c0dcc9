// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_KUBE_CERTIFICATE_KEEPER_H_
#define RAILHEAD_KUBE_CERTIFICATE_KEEPER_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/certificates.h"
#include "kube/client.h"
#include "kube/tls_identity.h"

namespace railhead::kube {

struct CertificateKeeperOptions {
  ObjectRef secret;         // holds the authority; it exists already, possibly empty
  ObjectRef configuration;  // the Mutating- or ValidatingWebhookConfiguration that must trust it
  std::string authority_name;
  std::vector<std::string> dns_names;  // of the webhook's service
  absl::Duration authority_lifetime = absl::Hours(24 * 365);
  absl::Duration serving_lifetime = absl::Hours(24 * 7);
  // How long the API servers may take to notice a new caBundle: until then a serving certificate of
  // the last authority stays in use, which the bundle still holds.
  absl::Duration settle = absl::Seconds(10);
};

// Keeps a webhook trusted without any outside help. The authority lives in a Secret that all
// replicas share; every replica signs its own serving certificate, which never leaves its memory;
// the webhook configuration's caBundle gets the authority, and after rotations also those before,
// as long as they are valid (the last eight).
//
// One call of Reconcile looks at everything and repairs what is wrong, so it is simply repeated:
// every few seconds, forever. Several replicas may do so at once: every write carries the
// resourceVersion it was decided on, and whoever loses starts over.
//
// Not thread-safe but for the TlsIdentity it sets.
class CertificateKeeper {
 public:
  // `api` and `identity` must outlive the keeper.
  CertificateKeeper(CertificateKeeperOptions options, Api* api, TlsIdentity* identity,
                    std::function<absl::Time()> clock);

  // What a round did, one line each, for the log. An error leaves things as good as it found them.
  absl::StatusOr<std::vector<std::string>> Reconcile();

  // The API server was last found (not just made) to trust the certificate being served, and that
  // certificate is still valid. So it takes a second round after a change, which gives the API
  // servers time to notice. Their outages do not change it.
  bool Trusted() const;

  // When the configuration was created, by the API server's clock; nothing while it was never seen.
  std::optional<absl::Time> configuration_created() const { return configuration_created_; }

  // Zero time until there is one.
  absl::Time authority_expiry() const { return authority_expiry_; }
  absl::Time serving_expiry() const { return serving_expiry_; }

 private:
  struct Authorities {
    KeyedCertificate current;
    std::string previous;  // certificates only, the last one first; empty when none still counts

    std::string Bundle() const { return current.certificate + previous; }
  };

  absl::StatusOr<std::vector<std::string>> ReconcileOnce();
  // Reads the Secret; makes and stores a new authority where it has none worth keeping.
  absl::StatusOr<Authorities> LoadAuthority(std::vector<std::string>& log);
  // Writes these values into the Secret, unless it has changed since it was read as `secret`.
  absl::Status Store(const Json& secret, const std::map<std::string, std::string>& values);
  // What is served stays trusted when somebody replaced the authority: it becomes a previous one.
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
  bool trusted_ = false;  // the configuration, as last read, trusts what is served
  std::string bundle_;    // the one last confirmed
  absl::Time bundle_since_ = absl::InfinitePast();  // when it was first seen confirmed
  std::string issuer_;                              // certificate that signed the one served
  CertificateFacts serving_;                        // the one served
  absl::Time authority_expiry_ = absl::UnixEpoch();
  absl::Time serving_expiry_ = absl::UnixEpoch();
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_CERTIFICATE_KEEPER_H_
