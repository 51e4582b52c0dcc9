// SPDX-License-Identifier: Apache-2.0
//
// X.509 for one purpose: a small certificate authority that signs the serving certificate of a
// webhook. Pure functions; the caller brings the time. Keys are ECDSA P-256.
#ifndef RAILHEAD_KUBE_CERTIFICATES_H_
#define RAILHEAD_KUBE_CERTIFICATES_H_

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

// What a certificate says of itself.
struct CertificateFacts {
  std::string common_name;
  absl::Time not_before;
  absl::Time not_after;
  bool is_authority = false;
  std::vector<std::string> dns_names;
};

// A new self-signed authority, valid from an hour before `now` (clocks differ) until `now` +
// `lifetime`.
absl::StatusOr<KeyedCertificate> MakeAuthority(absl::string_view common_name, absl::Time now,
                                               absl::Duration lifetime);

// A new serving certificate for `dns_names` (at least one), signed by `authority`. It never
// outlives the authority. InvalidArgument when the authority cannot be used.
absl::StatusOr<KeyedCertificate> SignServingCertificate(const KeyedCertificate& authority,
                                                        const std::vector<std::string>& dns_names,
                                                        absl::Time now, absl::Duration lifetime);

// Reads the first certificate of a PEM text. InvalidArgument when there is none.
absl::StatusOr<CertificateFacts> InspectCertificate(absl::string_view pem);

// The certificates of a PEM text, each as PEM, all written in the same way. What is none is left
// out.
std::vector<std::string> SplitCertificates(absl::string_view pem);

// OK when `authority` is a certificate authority, valid at `now`, whose key fits its certificate.
// InvalidArgument says which of these fails; the message never quotes the key.
absl::Status CheckAuthority(const KeyedCertificate& authority, absl::Time now);

// True once two thirds of the certificate's life are over, or before it has begun.
bool RenewalDue(const CertificateFacts& facts, absl::Time now);

// When RenewalDue turns true.
absl::Time RenewalTime(const CertificateFacts& facts);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_CERTIFICATES_H_
