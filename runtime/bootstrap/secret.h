// SPDX-License-Identifier: Apache-2.0
//
// What ranks of one job know and others do not, and what can be proven with it. The bytes stay
// inside: nothing here prints them, and no message is made of them.
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

// What is drawn at random for one handshake.
inline constexpr size_t kNonceSize = 32;

// Without a file and without a group's key it proves nothing, and everything else works alike.
class Secret {
 public:
  Secret() : Secret("", "") {}
  // Of the bytes of the job's secret file and of the random key in a group's id; either may be "".
  Secret(absl::string_view file, absl::string_view group_key);

  // Whether a secret file has gone into it.
  bool has_file() const { return has_file_; }
  // Whether there is anything that strangers do not know.
  bool proves() const { return proves_; }

  // The MAC under the secret (base/mac.h).
  std::string Mac(absl::string_view label, std::initializer_list<absl::string_view> parts) const;

  // The secret of one meeting of the ranks: what was proven in an earlier one is void in it.
  Secret ForSession(absl::string_view session) const;

 private:
  Secret(std::string key, bool has_file, bool proves)
      : key_(std::move(key)), has_file_(has_file), proves_(proves) {}

  std::string key_;
  bool has_file_ = false;
  bool proves_ = false;
};

// Reads a secret from its file; "" is no file and gives "". Line ends behind it do not count, so
// that `echo` makes the same secret as `printf`. A file that anybody may read is worth a warning
// only, because that is how Kubernetes mounts a Secret unless told otherwise. `set_by`: what has
// said which file, for messages.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path, const Logger& log,
                                           absl::string_view set_by = "RAILHEAD_SECRET_FILE");

// What a group calls itself at the rendezvous: not the key, which nobody on the way may see.
std::string GroupName(absl::string_view group_key);

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_SECRET_H_
