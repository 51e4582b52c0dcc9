// SPDX-License-Identifier: Apache-2.0
//
// The fields of a RailProfile that become environment variables, as one table: what may be said,
// and which variable says it to the library. The schema of the CRD must agree; a test holds the two
// together.
//
// What the variables mean, and the values that they take, is in NCCL's user guide ("Environment
// Variables"), in UCX's own help (ucx_info -c), in PyTorch's documentation of torch.distributed for
// gloo, and in runtime/config/env.cc for ours.
#ifndef RAILHEAD_OPERATOR_PROFILES_PROFILE_SETTINGS_H_
#define RAILHEAD_OPERATOR_PROFILES_PROFILE_SETTINGS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kube/json.h"

namespace railhead::op {

struct ProfileSetting {
  enum class Kind {
    kSwitch,        // true or false; the variable says 1 or 0
    kInteger,       // from min to max
    kWord,          // one of words
    kInterfaces,    // network interfaces by their exact names, or with '^' in front all others
    kTransports,    // names, or with '^' in front all others
    kPartitionKey,  // 0x8001
    kText,
  };

  const char* section;  // "nccl", below spec
  const char* field;    // "trafficClass"
  const char* variable;
  Kind kind;
  int64_t min = 0;
  int64_t max = 0;
  // "A|B=C": A is set as it is, B as C.
  const char* words = "";
  // The setting "nccl.trafficClass" that counts where this one is absent: the packets of a job
  // belong to one class, whichever library sends them.
  const char* otherwise = "";

  std::string Name() const;  // "nccl.trafficClass"
};

absl::Span<const ProfileSetting> ProfileSettings();

// What a profile says in a field, as text: "true", "106", "IPv4". InvalidArgument begins with
// `path` and says what is allowed.
absl::StatusOr<std::string> ReadSetting(const ProfileSetting& setting, const kube::Json& value,
                                        absl::string_view path);

// The same as the variable wants it: "1", "106", "AF_INET". Empty where the variable cannot say it:
// only NCCL can be told which interfaces not to use.
std::string VariableValue(const ProfileSetting& setting, const std::string& said);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_PROFILE_SETTINGS_H_
