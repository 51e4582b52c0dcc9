// SPDX-License-Identifier: Apache-2.0
//
// RailProfile, the kind railprofiles.railhead.io (v1alpha1): which environment pods that ask for
// rdma/* get. The API server checks it by the schema in charts/railhead; a profile from a file is
// checked here alone, so both hold the same rules.
#ifndef RAILHEAD_OPERATOR_PROFILES_PROFILE_H_
#define RAILHEAD_OPERATOR_PROFILES_PROFILE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/json.h"
#include "operator/label_selector.h"
#include "operator/profiles/injection.h"

namespace railhead::op {

inline constexpr absl::string_view kProfileVersion = "railhead.io/v1alpha1";
inline constexpr absl::string_view kProfileKind = "RailProfile";

enum class Fabric { kInfiniBand, kRoce, kIwarp, kEfa, kTcp };

// What a job is told to do where RDMA was asked for and cannot be had.
enum class RequireRdma { kFail, kWarn, kAllow };

struct RailProfile {
  std::string name;
  int64_t generation = 0;  // 0 for one that the API server has not stored
  Fabric fabric = Fabric::kInfiniBand;
  LabelSelector namespaces;
  LabelSelector pods;    // matches all by default
  int64_t priority = 0;  // the highest wins
  RequireRdma require_rdma = RequireRdma::kWarn;
  std::map<std::string, std::string> settings;     // by ProfileSetting::Name, as ReadSetting
  std::map<std::string, std::string> environment;  // spec.env
  std::string shared_memory_size;                  // of /dev/shm, a quantity; empty: as it is
  Injection inject;

  bool operator==(const RailProfile&) const = default;
};

absl::string_view FabricName(Fabric fabric);
absl::string_view RequireRdmaName(RequireRdma require);

// Reads an object of this kind. InvalidArgument begins with the path of the first wrong field:
// unknown fields, values out of range, contradictions, variables in spec.env that Railhead computes
// or that have a field of their own, and selectors that would match kube-system.
absl::StatusOr<RailProfile> ParseRailProfile(const kube::Json& object);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_PROFILE_H_
