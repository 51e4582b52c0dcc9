// SPDX-License-Identifier: Apache-2.0
//
// Table of the RailProfile fields that become environment variables: allowed values, and the
// variable. The schema of the CRD must match; a test compares them.
//
// Sources for the variables and their values: NCCL's user guide ("Environment Variables"), NVIDIA's
// SHARP manual ("Running NCCL with SHARP"), ucx_info -c of UCX, PyTorch's documentation of
// torch.distributed for gloo, and runtime/config/env.cc for Railhead.
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
    kSwitch,        // true or false; the variable has 1 or 0
    kInteger,       // from min to max
    kWord,          // one of words
    kInterfaces,    // exact interface names; with '^' first: all others
    kTransports,    // names; with '^' first: all others
    kPartitionKey,  // 0x8001
    kLibraries,     // names or paths of plugins, between commas
    kText,
  };

  const char* section;  // "nccl", below spec
  const char* field;    // "trafficClass"
  const char* variable;
  Kind kind;
  int64_t min = 0;
  int64_t max = 0;
  // "A|B=C": A is passed unchanged, B as C.
  const char* words = "";
  // Name of the setting that is used if this one is absent, such as "nccl.trafficClass": all
  // packets of a job belong to one class, whichever library sends them.
  const char* otherwise = "";
  // The variable may be in spec.env, too, if this field is absent: it has other uses.
  bool also_in_env = false;

  std::string Name() const;  // "nccl.trafficClass"
};

absl::Span<const ProfileSetting> ProfileSettings();

// Returns the value of a profile's field as text: "true", "106", "IPv4". Returns InvalidArgument
// with the allowed values, beginning with `path`.
absl::StatusOr<std::string> ReadSetting(const ProfileSetting& setting, const kube::Json& value,
                                        absl::string_view path);

// Converts such a text to the variable's value: "1", "106", "AF_INET". Empty if the variable cannot
// express it: only NCCL can exclude interfaces.
std::string VariableValue(const ProfileSetting& setting, const std::string& said);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_PROFILE_SETTINGS_H_
