// SPDX-License-Identifier: Apache-2.0
//
// RailProfile, the kind railprofiles.railhead.io (v1alpha1): the environment of pods that request
// rdma/*. The API server validates it by the schema in charts/railhead; a profile from a file is
// validated here only. Both apply the same rules.
#ifndef RAILHEAD_OPERATOR_PROFILES_PROFILE_H_
#define RAILHEAD_OPERATOR_PROFILES_PROFILE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/json.h"
#include "operator/objects/label_selector.h"
#include "operator/profiles/injection.h"

namespace railhead::op {

inline constexpr absl::string_view kProfileVersion = "railhead.io/v1alpha1";
inline constexpr absl::string_view kProfileKind = "RailProfile";

enum class Fabric { kInfiniBand, kRoce, kIwarp, kEfa, kTcp };

// Behaviour of a job that requests RDMA and cannot get it.
enum class RequireRdma { kFail, kWarn, kAllow };

struct RailProfile {
  std::string name;
  int64_t generation = 0;  // 0 if not stored in the API server
  Fabric fabric = Fabric::kInfiniBand;
  LabelSelector namespaces;
  LabelSelector pods;    // default: matches all
  int64_t priority = 0;  // the highest one applies
  RequireRdma require_rdma = RequireRdma::kWarn;
  std::map<std::string, std::string> settings;     // by ProfileSetting::Name, from ReadSetting
  std::map<std::string, std::string> environment;  // spec.env
  std::string shared_memory_size;                  // of /dev/shm, a quantity; empty: unchanged
  Injection inject;

  bool operator==(const RailProfile&) const = default;
};

absl::string_view FabricName(Fabric fabric);
absl::string_view RequireRdmaName(RequireRdma require);

// Parses an object of this kind. Returns InvalidArgument, beginning with the path of the first
// invalid field. Rejects unknown fields, values out of range, contradictions, selectors that match
// kube-system, and variables in spec.env that Railhead computes or that have a field of their own.
absl::StatusOr<RailProfile> ParseRailProfile(const kube::Json& object);

// Returns true if spec.nccl.collnet is true: NCCL may let switches reduce.
bool HasCollNet(const RailProfile& profile);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_PROFILE_H_
