// SPDX-License-Identifier: Apache-2.0
#include "fabric/pod_rails.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "fabric/rail_limit.h"

namespace railhead::fabric {
namespace {

constexpr char kApiVersion[] = "railhead.io/v1alpha1";
constexpr char kKind[] = "PodRails";
constexpr size_t kMaxText = size_t{1} << 20;
constexpr size_t kMaxList = 64;

using Json = nlohmann::ordered_json;

// Reads the fields of one object and stores the first error, so that the caller checks once after
// all fields.
class FieldReader {
 public:
  FieldReader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  std::string Text(const char* name, bool required = false) {
    const Json* value = Find(name, required);
    if (value == nullptr) return "";
    if (!value->is_string()) {
      Fail(name, "must be a string");
      return "";
    }
    std::string text = value->get<std::string>();
    if (required && text.empty()) Fail(name, "must not be empty");
    return text;
  }

  int Integer(const char* name, int64_t low, int64_t high, int otherwise, bool required = false) {
    const Json* value = Find(name, required);
    if (value == nullptr) return otherwise;
    // An unsigned number beyond int64 must not wrap into the range.
    const bool fits = value->is_number_integer() &&
                      (!value->is_number_unsigned() || value->get<uint64_t>() <= INT32_MAX);
    const int64_t number = fits ? value->get<int64_t>() : low - 1;
    if (number < low || number > high) {
      Fail(name, absl::StrCat("must be a whole number from ", low, " to ", high));
      return otherwise;
    }
    return static_cast<int>(number);
  }

  double Number(const char* name, double otherwise) {
    const Json* value = Find(name, false);
    if (value == nullptr) return otherwise;
    const double number = value->is_number() ? value->get<double>() : -1;
    if (!std::isfinite(number) || number < 0) {
      Fail(name, "must be a number that is not negative");
      return otherwise;
    }
    return number;
  }

  std::vector<std::string> TextList(const char* name) {
    std::vector<std::string> list;
    const Json* value = Find(name, false);
    if (value == nullptr) return list;
    if (!value->is_array() || value->size() > kMaxList) {
      Fail(name, absl::StrCat("must be a list of at most ", kMaxList, " strings"));
      return list;
    }
    for (const Json& item : *value) {
      if (!item.is_string()) {
        Fail(name, "must contain only strings");
        return list;
      }
      list.push_back(item.get<std::string>());
    }
    return list;
  }

  const absl::Status& status() const { return status_; }

 private:
  const Json* Find(const char* name, bool required) {
    const auto it = object_.find(name);
    if (it != object_.end()) return &*it;
    if (required) Fail(name, "is missing");
    return nullptr;
  }

  void Fail(const char* name, absl::string_view what) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(absl::StrCat("rails.json: ", where_, name, " ", what));
  }

  const Json& object_;
  std::string where_;
  absl::Status status_;
};

absl::StatusOr<PodRail> ParseRail(const Json& object, size_t index) {
  const std::string where = absl::StrCat("rails[", index, "]");
  if (!object.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat("rails.json: ", where, " must be an object"));
  }
  FieldReader fields(object, where + ".");
  PodRail rail;
  rail.rail = fields.Integer("rail", 0, kHighestRail, 0, /*required=*/true);
  rail.device = fields.Text("device", /*required=*/true);
  rail.port = fields.Integer("port", 1, 255, 1, /*required=*/true);
  rail.link_layer = fields.Text("linkLayer");
  rail.rate_gbps = fields.Number("rateGbps", 0);
  rail.pci_address = fields.Text("pciAddress");
  rail.numa_node = fields.Integer("numaNode", -1, 65535, -1);
  rail.netdev = fields.Text("netdev");
  rail.char_devices = fields.TextList("charDevices");
  rail.nearest_gpus = fields.TextList("nearestGpus");
  if (!fields.status().ok()) return fields.status();
  return rail;
}

}  // namespace

std::string ToJson(const PodRails& pod_rails) {
  Json rails = Json::array();
  for (const PodRail& rail : pod_rails.rails) {
    rails.push_back({{"rail", rail.rail},
                     {"device", rail.device},
                     {"port", rail.port},
                     {"linkLayer", rail.link_layer},
                     {"rateGbps", rail.rate_gbps},
                     {"pciAddress", rail.pci_address},
                     {"numaNode", rail.numa_node},
                     {"netdev", rail.netdev},
                     {"charDevices", rail.char_devices},
                     {"nearestGpus", rail.nearest_gpus}});
  }
  const Json document = {
      {"apiVersion", kApiVersion}, {"kind", kKind}, {"node", pod_rails.node}, {"rails", rails}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<PodRails> ParsePodRails(absl::string_view json) {
  if (json.size() > kMaxText) {
    return absl::InvalidArgumentError(
        absl::StrCat("rails.json: ", json.size(), " bytes exceed the limit of ", kMaxText));
  }
  const Json document =
      Json::parse(json.data(), json.data() + json.size(), nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) {
    return absl::InvalidArgumentError("rails.json: the text is not a JSON object");
  }
  FieldReader fields(document, "");
  const std::string api_version = fields.Text("apiVersion", /*required=*/true);
  const std::string kind = fields.Text("kind", /*required=*/true);
  PodRails pod_rails;
  pod_rails.node = fields.Text("node", /*required=*/true);
  if (!fields.status().ok()) return fields.status();
  if (api_version != kApiVersion || kind != kKind) {
    return absl::InvalidArgumentError(
        absl::StrCat("rails.json: its version and kind are ", api_version, " ", kind,
                     ", but this program reads ", kApiVersion, " ", kKind));
  }
  const auto rails = document.find("rails");
  if (rails == document.end() || !rails->is_array() || rails->size() > kMaxRails) {
    return absl::InvalidArgumentError(
        absl::StrCat("rails.json: rails must be a list of at most ", kMaxRails, " objects"));
  }
  std::set<int> seen;
  for (const Json& object : *rails) {
    absl::StatusOr<PodRail> rail = ParseRail(object, pod_rails.rails.size());
    if (!rail.ok()) return rail.status();
    if (!seen.insert(rail->rail).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("rails.json: rail ", rail->rail, " appears twice"));
    }
    pod_rails.rails.push_back(*std::move(rail));
  }
  return pod_rails;
}

}  // namespace railhead::fabric
