// SPDX-License-Identifier: Apache-2.0
#include "placement/request_reader.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/yaml/document.h"
#include "base/yaml/reader.h"
#include "placement/request.h"

namespace railhead::placement {
namespace {

using Value = YamlReader::Value;
using Fields = YamlReader::Fields;

constexpr int kMaxPods = 1'000'000;
constexpr int kMaxGpus = 1024;
constexpr int kMaxHcas = 64;

void ReadParallelism(YamlReader& reader, Value value, PlacementRequest& request) {
  const Fields fields = reader.Mapping(value, "spec.parallelism", {"tp", "pp", "dp", "ep", "cp"});
  int64_t product = 1;
  for (const auto& [name, size] : fields.all()) {
    const std::string path = absl::StrCat("spec.parallelism.", name);
    const int number = reader.Integer(size, path, 1, kMaxPods, "it is a number of GPUs");
    if (__builtin_mul_overflow(product, int64_t{number}, &product)) product = -1;
    request.parallelism.emplace_back(name, number);
  }
  const int64_t gpus = int64_t{request.pods} * request.gpus_per_pod;
  if (reader.status().ok() && product != gpus) {
    reader.Fail(value, "spec.parallelism",
                absl::StrCat("the product of its sizes must be pods x gpusPerPod = ", gpus,
                             product < 0 ? "" : absl::StrCat(", not ", product)));
  }
}

}  // namespace

PlacementRequest ReadPlacementRequest(YamlReader& reader, Value root,
                                      const std::vector<std::string>& levels) {
  PlacementRequest request;
  const Fields top = reader.Mapping(root, "", {"apiVersion", "kind", "metadata", "spec"});
  request.name = reader.Header(top, root, "PlacementRequest");
  const std::optional<Value> spec = reader.Need(top, root, "", "spec", "describe the gang there");
  if (!spec) return request;
  const Fields fields = reader.Mapping(*spec, "spec",
                                       {"pods", "gpusPerPod", "hcasPerPod", "requireLevel",
                                        "preferLevel", "parallelism", "pattern", "sameRails"});
  const auto need = [&](const char* name, int low, int high, const char* hint) {
    const std::optional<Value> value = reader.Need(fields, *spec, "spec", name, hint);
    return value ? reader.Integer(*value, absl::StrCat("spec.", name), low, high, hint) : low;
  };
  request.pods = need("pods", 1, kMaxPods, "it is the number of pods in the gang");
  request.gpus_per_pod = need("gpusPerPod", 0, kMaxGpus, "it is the number of GPUs per pod");
  request.hcas_per_pod =
      need("hcasPerPod", 0, kMaxHcas, "it is the number of HCAs (rdma/hca) per pod");
  if (request.gpus_per_pod == 0 && request.hcas_per_pod == 0) {
    reader.Fail(*spec, "spec",
                "pods without GPUs and HCAs fit anywhere; set gpusPerPod or hcasPerPod");
  }
  const auto level = [&](const char* name, std::string& text) {
    const std::optional<Value> value = fields.Find(name);
    if (value) text = reader.OneOf(*value, absl::StrCat("spec.", name), levels);
  };
  level("requireLevel", request.require_level);
  level("preferLevel", request.prefer_level);
  if (const std::optional<Value> value = fields.Find("sameRails")) {
    request.same_rails = reader.OneOf(*value, "spec.sameRails", {"true", "false"}) == "true";
  }
  if (const std::optional<Value> value = fields.Find("pattern")) {
    const std::string pattern = reader.OneOf(*value, "spec.pattern", {"ring", "tree", "alltoall"});
    if (pattern == "tree") request.pattern = Pattern::kTree;
    if (pattern == "alltoall") request.pattern = Pattern::kAllToAll;
  }
  if (const std::optional<Value> value = fields.Find("parallelism")) {
    ReadParallelism(reader, *value, request);
  }
  return request;
}

absl::StatusOr<PlacementRequest> ParsePlacementRequest(absl::string_view yaml,
                                                       absl::string_view source,
                                                       const std::vector<std::string>& levels) {
  const absl::StatusOr<YamlDocument> document = YamlDocument::Parse(yaml, source);
  if (!document.ok()) return document.status();
  YamlReader reader(source);
  PlacementRequest request = ReadPlacementRequest(reader, document->root(), levels);
  if (!reader.status().ok()) return reader.status();
  return request;
}

}  // namespace railhead::placement
