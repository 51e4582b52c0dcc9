// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/grant/job_key.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace railhead::device_plugin {
namespace {

constexpr size_t kKeySize = 32;
// The length of the derived keys.
constexpr size_t kShortestMaster = 32;
constexpr size_t kLongestMaster = 4096;

// Prefixes the text with its length in four bytes, so that different lists of texts give different
// bytes.
std::string Prefixed(absl::string_view text) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>((text.size() >> shift) & 0xFFU));
  }
  out.append(text.data(), text.size());
  return out;
}

}  // namespace

absl::StatusOr<std::string> Hkdf(absl::string_view key, absl::string_view salt,
                                 absl::string_view info, size_t length) {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(
      EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_HKDF, nullptr), EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(
      EVP_KDF_CTX_new(kdf.get()), EVP_KDF_CTX_free);
  // OpenSSL only reads the values, although its interface is not const.
  std::string digest = "SHA256";
  std::vector<OSSL_PARAM> parameters = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
  };
  const auto add = [&parameters](const char* name, absl::string_view value) {
    parameters.push_back(
        OSSL_PARAM_construct_octet_string(name, const_cast<char*>(value.data()), value.size()));
  };
  add(OSSL_KDF_PARAM_KEY, key);
  // An empty salt or info counts as absent (RFC 5869); OpenSSL rejects an empty parameter.
  if (!salt.empty()) add(OSSL_KDF_PARAM_SALT, salt);
  if (!info.empty()) add(OSSL_KDF_PARAM_INFO, info);
  parameters.push_back(OSSL_PARAM_construct_end());
  std::string out(length, '\0');
  if (context == nullptr ||
      EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()), out.size(),
                     parameters.data()) <= 0) {
    const unsigned long code = ERR_get_error();  // NOLINT(google-runtime-int)
    ERR_clear_error();
    const char* const reason = ERR_reason_error_string(code);
    return absl::InternalError(
        absl::StrCat("OpenSSL cannot derive ", length, " bytes by HKDF-SHA256 from a key of ",
                     key.size(), " (", reason != nullptr ? reason : "no reason given", ")"));
  }
  return out;
}

absl::StatusOr<std::string> ParseMasterKey(absl::string_view contents) {
  const size_t end = contents.find_last_not_of("\r\n");
  const absl::string_view key = contents.substr(0, end == absl::string_view::npos ? 0 : end + 1);
  if (key.size() >= kShortestMaster && key.size() <= kLongestMaster) return std::string(key);
  return absl::InvalidArgumentError(absl::StrCat("has ", key.size(), " bytes, not ",
                                                 kShortestMaster, " to ", kLongestMaster,
                                                 ": create one with 'openssl rand -hex 32'"));
}

absl::StatusOr<std::string> JobKey(absl::string_view master, absl::string_view pod_namespace,
                                   absl::string_view job) {
  const absl::StatusOr<std::string> key =
      Hkdf(master, "railhead job secret 1", absl::StrCat(Prefixed(pod_namespace), Prefixed(job)),
           kKeySize);
  if (!key.ok()) return key.status();
  return absl::StrCat(absl::BytesToHexString(*key), "\n");
}

}  // namespace railhead::device_plugin
