// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/grant/allocation_record.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/grant/cdi_spec.h"

namespace railhead::device_plugin {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kApiVersion[] = "railhead.io/v1alpha1";
constexpr char kKind[] = "Allocation";
constexpr size_t kMaxRecordText = size_t{1} << 20;
constexpr size_t kMaxIds = 4096;
constexpr int64_t kLatest = 8'000'000'000'000'000'000;  // in 2223; adding to it cannot overflow
// Kubelet calls every device plugin for each container of the pod in turn.
constexpr absl::Duration kLongestAdmission = absl::Minutes(5);

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("allocation: ", what));
}

// Returns "" if the field is not a string of valid UTF-8.
std::string Text(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

bool ReadIds(const Json& document, std::vector<std::string>& ids) {
  const auto list = document.find("ids");
  if (list == document.end() || !list->is_array() || list->size() > kMaxIds) return false;
  for (const Json& id : *list) {
    if (!id.is_string()) return false;
    ids.push_back(id.get<std::string>());
  }
  // Unique and sorted.
  return !ids.empty() && !ids.front().empty() &&
         std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end();
}

bool ReadBinding(const Json& document, Binding& binding) {
  const auto hcas = document.find("hcas");
  if (hcas == document.end() || !hcas->is_object() || hcas->size() > kMaxIds) return false;
  std::set<std::string> different;
  for (const auto& [named, hca] : hcas->items()) {
    if (!hca.is_string() || hca.get<std::string>().empty()) return false;
    binding[named] = hca.get<std::string>();
    if (!different.insert(binding[named]).second) return false;
  }
  return true;
}

// The field is optional.
bool ReadOthers(const Json& document, std::set<std::string>& others) {
  const auto list = document.find("others");
  if (list == document.end()) return true;
  if (!list->is_array() || list->size() > kMaxIds) return false;
  for (const Json& hca : *list) {
    if (!hca.is_string() || hca.get<std::string>().empty()) return false;
    others.insert(hca.get<std::string>());
  }
  return true;
}

bool NamesExactly(const Binding& binding, const std::vector<std::string>& ids) {
  std::set<std::string> named;
  for (const std::string& id : ids) named.insert(WholeHca(id));
  // Kubelet did not choose these HCAs.
  if (named.contains(kAllHcas)) return !binding.empty();
  return binding.size() == named.size() &&
         std::all_of(named.begin(), named.end(),
                     [&binding](const std::string& hca) { return binding.contains(hca); });
}

bool Holds(const AllocationRecord& record, const std::string& resource, const std::string& id) {
  return record.resource == resource &&
         std::binary_search(record.ids.begin(), record.ids.end(), id);
}

// Returns the record of a container that holds these ids, or null.
const AllocationRecord* RecordOf(const AllocationRecords& records, const std::string& resource,
                                 const std::vector<std::string>& ids, const std::string& id) {
  const std::set<std::string> all(ids.begin(), ids.end());
  const auto exact = std::find_if(records.rbegin(), records.rend(), [&](const auto& record) {
    return record.resource == resource && record.ids.size() == all.size() &&
           std::equal(all.begin(), all.end(), record.ids.begin());
  });
  if (exact != records.rend()) return &*exact;
  const auto latest = std::find_if(records.rbegin(), records.rend(),
                                   [&](const auto& record) { return Holds(record, resource, id); });
  return latest == records.rend() ? nullptr : &*latest;
}

}  // namespace

AllocationRecord NewRecord(std::string name, int64_t made, std::string resource,
                           std::vector<std::string> ids, const std::set<std::string>& all) {
  AllocationRecord record;
  record.name = std::move(name);
  record.made = made;
  record.resource = std::move(resource);
  record.ids = std::move(ids);
  std::sort(record.ids.begin(), record.ids.end());
  for (const std::string& id : record.ids) {
    const std::string whole = WholeHca(id);
    if (!IsAllHcas(id)) record.binding[whole] = whole;
  }
  for (const std::string& hca : all) record.binding[hca] = hca;
  return record;
}

std::string ToJson(const AllocationRecord& record) {
  Json hcas = Json::object();
  for (const auto& [named, hca] : record.binding) hcas[named] = hca;
  Json document = {{"apiVersion", kApiVersion},
                   {"kind", kKind},
                   {"name", record.name},
                   {"made", record.made},
                   {"resource", record.resource},
                   {"ids", record.ids},
                   {"hcas", hcas},
                   {"settled", record.settled}};
  if (!record.others.empty()) document["others"] = record.others;
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<AllocationRecord> ParseAllocationRecord(absl::string_view json) {
  if (json.size() > kMaxRecordText) return Bad("the text is longer than 1 MiB");
  const Json document =
      Json::parse(json.data(), json.data() + json.size(), nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return Bad("the text is not a JSON object");
  if (Text(document, "apiVersion") != kApiVersion || Text(document, "kind") != kKind) {
    return Bad(absl::StrCat("it is not a ", kApiVersion, " ", kKind));
  }
  AllocationRecord record;
  record.name = Text(document, "name");
  if (!IsCdiName(record.name)) return Bad("name must be the name of a CDI device");
  const auto made = document.find("made");
  if (made == document.end() || !made->is_number_integer() ||
      (made->is_number_unsigned() && made->get<uint64_t>() > kLatest) || made->get<int64_t>() < 0) {
    return Bad("made must be a time in nanoseconds since 1970");
  }
  record.made = made->get<int64_t>();
  record.resource = Text(document, "resource");
  if (record.resource.empty()) return Bad("resource must be a non-empty string");
  if (!ReadIds(document, record.ids)) {
    return Bad("ids must be a non-empty, sorted list of unique strings");
  }
  if (!ReadBinding(document, record.binding) || !NamesExactly(record.binding, record.ids)) {
    return Bad("hcas must give a different HCA for each HCA in ids, and for no other");
  }
  const auto settled = document.find("settled");
  if (settled == document.end() || !settled->is_boolean()) {
    return Bad("settled must be true or false");
  }
  record.settled = settled->get<bool>();
  if (!ReadOthers(document, record.others)) return Bad("others must be a list of HCAs");
  return record;
}

std::vector<ContainerDevices> AsBound(const AllocationRecords& records,
                                      std::vector<ContainerDevices> listed) {
  for (ContainerDevices& container : listed) {
    for (auto& [resource, ids] : container.devices) {
      const std::vector<std::string> all = ids;
      for (std::string& id : ids) {
        const AllocationRecord* record = RecordOf(records, resource, all, id);
        const std::string whole = WithoutSlot(id);
        if (record == nullptr || whole.empty()) continue;
        if (const auto bound = record->binding.find(whole); bound != record->binding.end()) {
          id = absl::StrCat(bound->second, id.substr(whole.size()));
        }
      }
    }
  }
  return listed;
}

std::map<std::string, std::string> BoundElsewhere(const AllocationRecords& records,
                                                  const std::vector<ContainerDevices>& listed,
                                                  const std::string& resource) {
  std::map<std::string, std::string> elsewhere;
  const std::vector<ContainerDevices> bound = AsBound(records, listed);
  for (size_t i = 0; i < listed.size(); ++i) {
    const auto ids = listed[i].devices.find(resource);
    if (ids == listed[i].devices.end()) continue;
    const std::vector<std::string>& has = bound[i].devices.at(resource);
    for (size_t k = 0; k < has.size(); ++k) {
      if (ids->second[k] != has[k]) elsewhere[ids->second[k]] = WholeHca(has[k]);
    }
  }
  return elsewhere;
}

bool IsGone(const AllocationRecords& records, size_t place,
            const std::map<std::string, std::set<std::string>>& held) {
  const AllocationRecord& record = records[place];
  const auto ids = held.find(record.resource);
  const bool any_held = ids != held.end() && std::any_of(record.ids.begin(), record.ids.end(),
                                                         [&ids](const std::string& id) {
                                                           return ids->second.contains(id);
                                                         });
  if (!any_held) return true;
  const auto later = records.begin() + static_cast<std::ptrdiff_t>(place) + 1;
  return std::any_of(later, records.end(), [&record](const AllocationRecord& other) {
    return other.made - record.made > absl::ToInt64Nanoseconds(kLongestAdmission) &&
           std::any_of(record.ids.begin(), record.ids.end(),
                       [&](const std::string& id) { return Holds(other, record.resource, id); });
  });
}

}  // namespace railhead::device_plugin
