// SPDX-License-Identifier: Apache-2.0
//
// Shared secret of a job's ranks, and proofs with it. The bytes never leave this class: they are
// neither printed nor part of messages.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_SECRET_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_SECRET_H_

#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/log.h"
#include "runtime/base/mac.h"
#include "runtime/base/random.h"

namespace railhead::bootstrap {

// Random bytes per handshake.
inline constexpr size_t kNonceSize = 32;

// Without a file or group key it proves nothing; all else works the same.
class Secret {
 public:
  Secret() : Secret("", "") {}
  // Made of the bytes of the job's secret file and the random key in a group's id; either may be
  // "".
  Secret(absl::string_view file, absl::string_view group_key);

  // Returns true if it includes a secret file.
  bool has_file() const { return has_file_; }
  // Returns true if it contains anything secret.
  bool proves() const { return proves_; }

  // Returns the MAC under the secret (base/mac.h).
  std::string Mac(absl::string_view label, std::initializer_list<absl::string_view> parts) const;

  // Returns the secret of one rendezvous: proofs of earlier ones are invalid in it.
  Secret ForSession(absl::string_view session) const;

 private:
  Secret(std::string key, bool has_file, bool proves)
      : key_(std::move(key)), has_file_(has_file), proves_(proves) {}

  std::string key_;
  bool has_file_ = false;
  bool proves_ = false;
};

// Reads a secret from its file; "" returns "". Ignores trailing line ends, so that `echo` and
// `printf` give the same secret. Only warns about a world-readable file, because Kubernetes mounts
// Secrets so by default. `set_by` names the setting of the path, for messages.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path, const Logger& log,
                                           absl::string_view set_by = "RAILHEAD_SECRET_FILE");

// Reads a secret that the node agent has written for all users of the container (job_secret.h).
absl::StatusOr<std::string> ReadGivenSecretFile(const std::string& path);

// Returns a group's public name at the rendezvous: not the key, which must stay secret.
std::string GroupName(absl::string_view group_key);

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_SECRET_H_
