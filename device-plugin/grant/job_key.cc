// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/grant/job_key.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kube/elements.h"
#include "kube/json.h"

namespace railhead::device_plugin {
namespace {

using kube::Json;
using kube::StringAt;

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

// A kind of job whose pods have different controllers, and the labels that identify them.
struct MarkedKind {
  const char* kind;
  const char* name;   // label with the job's name
  const char* uid;    // label with its uid, or ""
  const char* where;  // label and value that pods of this kind must have; "" for any
  const char* value;
};
constexpr MarkedKind kMarkedKinds[] = {
    {"JobSet", "jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/jobset-uid", "", ""},
    {"LeaderWorkerSet", "leaderworkerset.sigs.k8s.io/name", "", "", ""},
    {"MPIJob", "training.kubeflow.org/job-name", "", "training.kubeflow.org/operator-name",
     "mpi-operator"},
};

// Their pods are independent, or replicas of a service.
constexpr absl::string_view kNoJobs[] = {"ReplicaSet", "ReplicationController", "DaemonSet",
                                         "Node"};

std::string Label(const Json& pod, const char* name) {
  return name[0] == '\0' ? "" : StringAt(pod, {"metadata", "labels", name});
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

absl::StatusOr<std::string> JobOf(const Json& pod) {
  if (std::string said = StringAt(pod, {"metadata", "annotations", kJobAnnotation});
      !said.empty()) {
    return absl::StrCat("annotation/", said);
  }
  for (const MarkedKind& kind : kMarkedKinds) {
    const std::string name = Label(pod, kind.name);
    if (name.empty() || Label(pod, kind.where) != kind.value) continue;
    return absl::StrCat(kind.kind, "/", name, "/", Label(pod, kind.uid));
  }
  std::string owner;
  for (const Json& one : kube::ElementsAt(pod, {"metadata", "ownerReferences"})) {
    const Json* controls = kube::Find(one, "controller");
    if (controls == nullptr || *controls != true) continue;
    owner = StringAt(one, {"kind"});
    const std::string uid = StringAt(one, {"uid"});
    if (uid.empty() ||
        std::find(std::begin(kNoJobs), std::end(kNoJobs), owner) != std::end(kNoJobs)) {
      break;
    }
    return absl::StrCat("controller/", uid);
  }
  if (std::string gang = Label(pod, "railhead.io/gang"); !gang.empty()) {
    return absl::StrCat("gang/", gang);
  }
  return absl::NotFoundError(absl::StrCat(
      owner.empty() ? "the pod has no controller"
                    : absl::StrCat("the pods of a ", owner, " are not a job"),
      ": make an Indexed Job or a JobSet of the ranks, give them one value in the annotation ",
      kJobAnnotation, ", or set RAILHEAD_SECRET_FILE"));
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
