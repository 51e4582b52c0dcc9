// SPDX-License-Identifier: Apache-2.0
#include "kube/auth/certificate_keeper.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace railhead::kube {
namespace {

// A write that meets another replica's is decided anew; more often than this in a row is not a
// race.
constexpr int kAttempts = 5;

constexpr char kCertificateKey[] = "ca.crt";
constexpr char kPrivateKey[] = "ca.key";
constexpr char kPreviousKey[] = "previous-ca.crt";

// Certificates that these authorities have issued stay valid. More rotations than this within the
// life of a serving certificate are not regular.
constexpr size_t kMostPrevious = 8;

// A value of the Secret, decoded; empty when absent or not base64.
std::string SecretValue(const Json& secret, absl::string_view key) {
  std::string value;
  if (!absl::Base64Unescape(StringAt(secret, {"data", key}), &value)) return "";
  return value;
}

// The certificates of these texts that are worth trusting a while longer beside `current`: each
// once, the first ones where there are too many.
std::string StillValid(std::initializer_list<absl::string_view> texts, const std::string& current,
                       absl::Time now) {
  std::vector<std::string> kept;
  for (const std::string& certificate : SplitCertificates(absl::StrJoin(texts, "\n"))) {
    const absl::StatusOr<CertificateFacts> facts = InspectCertificate(certificate);
    const bool counts = facts.ok() && facts->is_authority && now < facts->not_after &&
                        !absl::StrContains(current, certificate) &&
                        std::find(kept.begin(), kept.end(), certificate) == kept.end();
    if (counts && kept.size() < kMostPrevious) kept.push_back(certificate);
  }
  return absl::StrJoin(kept, "");
}

// Returns whether all webhooks of a configuration trust `issuer`.
bool AllTrust(const Json& configuration, const std::string& issuer) {
  const Json* webhooks = Find(configuration, "webhooks");
  if (issuer.empty() || webhooks == nullptr || !webhooks->is_array()) return false;
  return std::all_of(webhooks->begin(), webhooks->end(), [&issuer](const Json& webhook) {
    std::string bundle;
    return absl::Base64Unescape(StringAt(webhook, {"clientConfig", "caBundle"}), &bundle) &&
           absl::StrContains(bundle, issuer);
  });
}

std::string Utc(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

}  // namespace

CertificateKeeper::CertificateKeeper(CertificateKeeperOptions options, Api* api,
                                     TlsIdentity* identity, std::function<absl::Time()> clock)
    : options_(std::move(options)), api_(api), identity_(identity), clock_(std::move(clock)) {}

absl::StatusOr<std::vector<std::string>> CertificateKeeper::Reconcile() {
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<std::vector<std::string>> log = ReconcileOnce();
    if (log.ok() || !absl::IsAborted(log.status()) || attempt == kAttempts) return log;
  }
}

bool CertificateKeeper::Trusted() const { return trusted_ && clock_() < serving_expiry_; }

absl::StatusOr<std::vector<std::string>> CertificateKeeper::ReconcileOnce() {
  std::vector<std::string> log;
  // The configuration is read before the Secret. Were it the other way round, a replica could take
  // a bundle made from an older Secret and write it over the newer one of another replica.
  const absl::StatusOr<Json> configuration = Get(*api_, options_.configuration);
  if (absl::IsNotFound(configuration.status())) trusted_ = false;
  if (!configuration.ok()) return configuration.status();
  absl::Time created;
  if (absl::ParseTime(absl::RFC3339_full,
                      StringAt(*configuration, {"metadata", "creationTimestamp"}), &created,
                      nullptr)) {
    configuration_created_ = created;
  }
  trusted_ = AllTrust(*configuration, issuer_);
  const absl::StatusOr<Authorities> authorities = LoadAuthority(log);
  if (!authorities.ok()) return authorities.status();
  const std::string bundle = authorities->Bundle();
  if (absl::Status put = PutBundle(*configuration, bundle, log); !put.ok()) return put;
  if (bundle != bundle_) {
    bundle_ = bundle;
    bundle_since_ = clock_();
  }
  if (absl::Status served = ServeFrom(*authorities, log); !served.ok()) return served;
  trusted_ = AllTrust(*configuration, issuer_);
  if (!authorities->not_renewed.ok()) return authorities->not_renewed;
  return log;
}

absl::StatusOr<CertificateKeeper::Authorities> CertificateKeeper::LoadAuthority(
    std::vector<std::string>& log) {
  const absl::Time now = clock_();
  const absl::StatusOr<Json> secret = Get(*api_, options_.secret);
  if (absl::IsNotFound(secret.status())) {
    return absl::NotFoundError(absl::StrCat(secret.status().message(),
                                            "; the chart creates this Secret empty: recreate "
                                            "it with helm upgrade"));
  }
  if (!secret.ok()) return secret.status();
  Authorities found;
  found.current = {absl::StrJoin(SplitCertificates(SecretValue(*secret, kCertificateKey)), ""),
                   SecretValue(*secret, kPrivateKey)};
  found.previous = StillValid({SecretValue(*secret, kPreviousKey)}, found.current.certificate, now);

  const absl::Status usable = CheckAuthority(found.current, now);
  if (usable.ok()) {
    const absl::StatusOr<CertificateFacts> facts = InspectCertificate(found.current.certificate);
    if (!facts.ok()) return facts.status();
    authority_expiry_ = facts->not_after;
    if (!RenewalDue(*facts, now)) {
      if (absl::Status kept = KeepOurs(*secret, found, log); !kept.ok()) return kept;
      return found;
    }
    log.push_back(absl::StrCat("the authority expires ", Utc(facts->not_after), ": renewing it"));
  } else if (found.current.certificate.empty() && found.current.key.empty()) {
    log.push_back(absl::StrCat(options_.secret.ToString(), " is empty: creating an authority"));
  } else {
    log.push_back(absl::StrCat("the authority in ", options_.secret.ToString(), " is unusable (",
                               usable.message(), "): creating a new one"));
  }

  absl::StatusOr<KeyedCertificate> made =
      MakeAuthority(options_.authority_name, now, options_.authority_lifetime);
  if (!made.ok()) return made.status();
  // Replicas still serve from an authority that the Secret has lost, as when a user emptied or
  // replaced it.
  std::string previous =
      StillValid({issuer_, found.current.certificate, found.previous}, made->certificate, now);
  absl::Status stored = Store(
      *secret,
      {{kCertificateKey, made->certificate}, {kPrivateKey, made->key}, {kPreviousKey, previous}});
  if (!stored.ok()) {
    if (!usable.ok() || absl::IsAborted(stored)) return stored;
    found.not_renewed = std::move(stored);
    return found;
  }
  authority_expiry_ = now + options_.authority_lifetime;
  log.push_back(absl::StrCat("stored a new authority, valid until ", Utc(authority_expiry_)));
  return Authorities{*std::move(made), std::move(previous)};
}

absl::Status CertificateKeeper::Store(const Json& secret,
                                      const std::map<std::string, std::string>& values) {
  Json data = Json::object();
  for (const auto& [key, value] : values) data[key] = absl::Base64Escape(value);
  const Json patch = {
      {"metadata", {{"resourceVersion", StringAt(secret, {"metadata", "resourceVersion"})}}},
      {"data", std::move(data)}};
  return Patch(*api_, options_.secret, PatchType::kMerge, patch).status();
}

absl::Status CertificateKeeper::KeepOurs(const Json& secret, Authorities& found,
                                         std::vector<std::string>& log) {
  const std::string& current = found.current.certificate;
  const std::string ours = StillValid({issuer_}, current, clock_());
  if (ours.empty() || absl::StrContains(found.previous, ours)) return absl::OkStatus();
  std::string previous = StillValid({ours, found.previous}, current, clock_());
  if (absl::Status stored = Store(secret, {{kPreviousKey, previous}}); !stored.ok()) return stored;
  found.previous = std::move(previous);
  log.push_back(absl::StrCat("another writer replaced the authority in ",
                             options_.secret.ToString(),
                             ": keeping the previous one for the certificates that it signed"));
  return absl::OkStatus();
}

absl::Status CertificateKeeper::PutBundle(const Json& configuration, const std::string& bundle,
                                          std::vector<std::string>& log) {
  const Json* webhooks = Find(configuration, "webhooks");
  if (webhooks == nullptr || !webhooks->is_array() || webhooks->empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(options_.configuration.ToString(), " has no webhooks"));
  }
  const std::string wanted = absl::Base64Escape(bundle);
  Json patch = Json::array();
  for (size_t i = 0; i < webhooks->size(); ++i) {
    if (StringAt((*webhooks)[i], {"clientConfig", "caBundle"}) == wanted) continue;
    patch.push_back({{"op", "add"},
                     {"path", absl::StrCat("/webhooks/", i, "/clientConfig/caBundle")},
                     {"value", wanted}});
  }
  if (patch.empty()) return absl::OkStatus();
  // Makes the patch apply to the very configuration that was read, or not at all.
  patch.push_back({{"op", "add"},
                   {"path", "/metadata/resourceVersion"},
                   {"value", StringAt(configuration, {"metadata", "resourceVersion"})}});
  const size_t webhooks_patched = patch.size() - 1;
  const absl::StatusOr<Json> patched =
      Patch(*api_, options_.configuration, PatchType::kJson, patch);
  if (!patched.ok()) return patched.status();
  log.push_back(absl::StrCat("wrote the authority into ", webhooks_patched, " webhooks of ",
                             options_.configuration.ToString()));
  return absl::OkStatus();
}

absl::Status CertificateKeeper::ServeFrom(const Authorities& authorities,
                                          std::vector<std::string>& log) {
  const absl::Time now = clock_();
  const bool serving = !issuer_.empty() && now < serving_.not_after;
  if (serving && issuer_ == authorities.current.certificate && !RenewalDue(serving_, now)) {
    return absl::OkStatus();
  }
  const bool old_one_is_trusted = serving && absl::StrContains(authorities.Bundle(), issuer_);
  if (issuer_ != authorities.current.certificate && old_one_is_trusted &&
      now - bundle_since_ < options_.settle) {
    return absl::OkStatus();
  }
  const absl::StatusOr<KeyedCertificate> signed_one = SignServingCertificate(
      authorities.current, options_.dns_names, now, options_.serving_lifetime);
  if (!signed_one.ok()) return signed_one.status();
  const absl::StatusOr<CertificateFacts> facts = InspectCertificate(signed_one->certificate);
  if (!facts.ok()) return facts.status();
  if (absl::Status set = identity_->Set(*signed_one); !set.ok()) return set;
  serving_ = *facts;
  serving_expiry_ = facts->not_after;
  issuer_ = authorities.current.certificate;
  log.push_back(absl::StrCat("serving with a new certificate for ", options_.dns_names.front(),
                             ", valid until ", Utc(serving_expiry_)));
  return absl::OkStatus();
}

}  // namespace railhead::kube
