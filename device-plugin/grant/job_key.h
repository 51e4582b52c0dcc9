// SPDX-License-Identifier: Apache-2.0
//
// The key of a job: derived from the cluster's master key, the namespace and the job, so that all
// node agents give the pods of one job the same key without talking to each other. Pure. Used by
// JobSecrets.
//
// The namespace comes from the API server. Labels and the annotation are the user's to set, so they
// count inside the pod's own namespace only: no pod can name itself into a job of another
// namespace.
#ifndef RAILHEAD_DEVICE_PLUGIN_GRANT_JOB_KEY_H_
#define RAILHEAD_DEVICE_PLUGIN_GRANT_JOB_KEY_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::device_plugin {

// Returns `length` bytes (at most 255 * 32) of HKDF-SHA256 (RFC 5869), or OpenSSL's error.
absl::StatusOr<std::string> Hkdf(absl::string_view key, absl::string_view salt,
                                 absl::string_view info, size_t length);

// Returns the key in the contents of a master key file: all of it but line ends behind it. The
// error gives the size, the allowed range, and the command that creates a key.
absl::StatusOr<std::string> ParseMasterKey(absl::string_view contents);

// Returns the key of a job (jobs::IdentityOf), as the contents of a file: 64 hexadecimal digits and
// a line end. Internal if OpenSSL cannot derive it.
absl::StatusOr<std::string> JobKey(absl::string_view master, absl::string_view pod_namespace,
                                   absl::string_view job);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_GRANT_JOB_KEY_H_
