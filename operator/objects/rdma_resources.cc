// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/rdma_resources.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/document_error.h"

namespace railhead::op {
namespace {

constexpr size_t kMaxPatterns = 32;
constexpr size_t kMaxDomain = 253;
constexpr size_t kMaxName = 63;

// Resources that device plugins of RDMA NICs usually offer.
constexpr absl::string_view kUsual[] = {"rdma/*",
                                        "rdma/hca",
                                        "nvidia.com/hostdev",
                                        "nvidia.com/rdma-vf",
                                        "openshift.io/*",
                                        "mellanox.com/*",
                                        "intel.com/*",
                                        "vpc.amazonaws.com/efa",
                                        "aliyun/erdma",
                                        "k8s.volcengine.com/rdma"};

// Resources that a pattern must not mean, as it would take every GPU for a NIC.
constexpr absl::string_view kGpuResources[] = {"nvidia.com/gpu",
                                               "amd.com/gpu",
                                               "gpu.intel.com/i915",
                                               "nvidia.com/mig-1g.5gb",
                                               "deviceclass.resource.kubernetes.io/gpu.nvidia.com",
                                               "deviceclass.resource.kubernetes.io/mig.nvidia.com",
                                               "deviceclass.resource.kubernetes.io/gpu.amd.com",
                                               "deviceclass.resource.kubernetes.io/gpu.intel.com"};

bool IsLower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool IsDomain(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxDomain && IsLower(text.front()) &&
         IsLower(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return IsLower(c) || c == '-' || c == '.';
         });
}

// The part behind the domain, without the '*'.
bool IsName(absl::string_view text) {
  return text.size() <= kMaxName && std::all_of(text.begin(), text.end(), [](char c) {
           return IsLower(c) || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
         });
}

bool PatternMatches(absl::string_view pattern, absl::string_view resource) {
  return absl::ConsumeSuffix(&pattern, "*") ? absl::StartsWith(resource, pattern)
                                            : resource == pattern;
}

// "" or what is wrong with it.
std::string PatternFault(absl::string_view pattern) {
  const size_t slash = pattern.find('/');
  absl::string_view name = pattern.substr(slash == absl::string_view::npos ? 0 : slash + 1);
  const bool prefix = absl::ConsumeSuffix(&name, "*");
  if (slash == absl::string_view::npos || !IsDomain(pattern.substr(0, slash)) || !IsName(name) ||
      (name.empty() && !prefix)) {
    return "must be the name of a resource, such as rdma/hca, or end with *, such as rdma/*";
  }
  const absl::string_view domain = pattern.substr(0, slash);
  if (!absl::StartsWith(pattern, kDeviceClassDomain) &&
      (domain == "kubernetes.io" || absl::EndsWith(domain, ".kubernetes.io"))) {
    return "belongs to Kubernetes itself, whose resources are not RDMA devices";
  }
  for (const absl::string_view gpu : kGpuResources) {
    if (PatternMatches(pattern, gpu)) return absl::StrCat("also matches ", gpu, ", which is a GPU");
  }
  return "";
}

}  // namespace

absl::StatusOr<RdmaResources> RdmaResources::Parse(const std::vector<std::string>& patterns) {
  if (patterns.empty() || patterns.size() > kMaxPatterns) {
    return absl::InvalidArgumentError(
        absl::StrCat("must list 1 to ", kMaxPatterns, " names of resources, such as rdma/*"));
  }
  std::set<absl::string_view> seen;
  for (const std::string& pattern : patterns) {
    if (const std::string why = PatternFault(pattern); !why.empty()) {
      const std::string nearest = NearestText(pattern, {std::begin(kUsual), std::end(kUsual)});
      return absl::InvalidArgumentError(
          absl::StrCat("'", pattern, "' ", why,
                       nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?")));
    }
    if (!seen.insert(pattern).second) {
      return absl::InvalidArgumentError(absl::StrCat("'", pattern, "' appears twice"));
    }
  }
  RdmaResources resources;
  resources.patterns_ = patterns;
  return resources;
}

bool RdmaResources::Contains(absl::string_view resource) const {
  return std::any_of(patterns_.begin(), patterns_.end(), [resource](const std::string& pattern) {
    return PatternMatches(pattern, resource);
  });
}

}  // namespace railhead::op
