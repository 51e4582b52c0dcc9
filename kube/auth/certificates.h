// SPDX-License-Identifier: Apache-2.0
//
// X.509 functions for one purpose: a small CA that signs the serving certificate of a webhook.
// Pure; the caller passes the time. Keys are ECDSA P-256. Used by CertificateKeeper.
#ifndef RAILHEAD_KUBE_AUTH_CERTIFICATES_H_
#define RAILHEAD_KUBE_AUTH_CERTIFICATES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace railhead::kube {

// A certificate and its private key, both PEM (the key PKCS #8). The key is a secret: never log it.
struct KeyedCertificate {
  std::string certificate;
  std::string key;
};

// Fields of a certificate.
struct CertificateFacts {
  std::string common_name;
  absl::Time not_before;
  absl::Time not_after;
  bool is_authority = false;
  std::vector<std::string> dns_names;
};

// Returns a new self-signed CA, valid from an hour before `now` (clocks differ) to `now` +
// `lifetime`.
absl::StatusOr<KeyedCertificate> MakeAuthority(absl::string_view common_name, absl::Time now,
                                               absl::Duration lifetime);

// Returns a new serving certificate for `dns_names` (at least one), signed by `authority`. It never
// outlives the CA. InvalidArgument if the CA cannot be used.
absl::StatusOr<KeyedCertificate> SignServingCertificate(const KeyedCertificate& authority,
                                                        const std::vector<std::string>& dns_names,
                                                        absl::Time now, absl::Duration lifetime);

// Reads the first certificate of a PEM text. InvalidArgument if there is none.
absl::StatusOr<CertificateFacts> InspectCertificate(absl::string_view pem);

// Returns the certificates of a PEM text, each as normalized PEM. Skips all other blocks.
std::vector<std::string> SplitCertificates(absl::string_view pem);

// Returns OK if `authority` is a CA, valid at `now`, whose key matches its certificate.
// InvalidArgument names the check that failed; the message never contains the key.
absl::Status CheckAuthority(const KeyedCertificate& authority, absl::Time now);

// Returns true after two thirds of the certificate's lifetime, or before its start.
bool RenewalDue(const CertificateFacts& facts, absl::Time now);

// Returns the time at which RenewalDue becomes true.
absl::Time RenewalTime(const CertificateFacts& facts);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_AUTH_CERTIFICATES_H_
