// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/kubernetes_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/document_error.h"
#include "base/json/json_text.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/place_labels.h"
#include "fabric/node_facts/reader.h"

namespace railhead::fabric {
namespace {

using Type = JsonValue::Type;

// More on one node is an error. The number of shared HCAs is configured, so it has no limit here.
constexpr int kMaxGpus = 1024;
constexpr int kMaxShares = 1'000'000;
constexpr int kMaxPlanes = 64;
constexpr size_t kMaxNics = 1024;

struct Amounts {
  int gpus = 0;
  int hcas = 0;
  bool lists_gpus = false;
  bool stays = false;  // of a sidecar: an init container with restartPolicy Always
};

void Add(const Amounts& more, Amounts& all) {
  all.gpus = std::min(kMaxGpus, all.gpus + more.gpus);
  all.hcas = std::min(kMaxShares, all.hcas + more.hcas);
}

void Raise(const Amounts& least, Amounts& all) {
  all.gpus = std::max(all.gpus, least.gpus);
  all.hcas = std::max(all.hcas, least.hcas);
}

// Removes the suffix of a quantity: "2k" is 2 times 1000.
int64_t ConsumeUnit(absl::string_view& quantity) {
  constexpr std::pair<const char*, int64_t> kUnits[] = {{"k", 1'000},         {"M", 1'000'000},
                                                        {"G", 1'000'000'000}, {"Ki", 1LL << 10},
                                                        {"Mi", 1LL << 20},    {"Gi", 1LL << 30}};
  for (const auto& [suffix, unit] : kUnits) {
    if (absl::ConsumeSuffix(&quantity, suffix)) return unit;
  }
  return 1;
}

class KubernetesReader {
 public:
  KubernetesReader(absl::string_view source, const IsHca& is_hca)
      : reader_(source), is_hca_(is_hca) {}

  absl::StatusOr<Observations> Read(const std::vector<JsonValue>& texts) {
    for (const JsonValue& text : texts) Object(text, "");
    if (!reader_.status().ok()) return reader_.status();
    return std::move(seen_);
  }

 private:
  void Object(const JsonValue& object, const std::string& path) {
    const JsonValue* kind = reader_.Need(object, path, "kind", Type::kText);
    if (kind == nullptr) return;
    if (absl::EndsWith(kind->text, "List")) {
      if (!path.empty()) return;  // lists are not nested
      const JsonValue* items = reader_.Need(object, "", "items", Type::kList);
      for (size_t i = 0; items != nullptr && i < items->fields.size(); ++i) {
        Object(items->fields[i].value, absl::StrCat("items[", i, "]"));
        if (!reader_.status().ok()) return;
      }
    } else if (kind->text == "Node") {
      Node(object, path);
    } else if (kind->text == "Pod") {
      Pod(object, path);
    } else if (kind->text == "NicInterfaceNameTemplate") {
      NameTemplate(object, path);
    }
  }

  // Reads a template of NVIDIA's nic-configuration-operator
  // (configuration.net.nvidia.com/v1alpha1).
  void NameTemplate(const JsonValue& object, const std::string& path) {
    const JsonValue* metadata = reader_.Need(object, path, "metadata", Type::kObject);
    const JsonValue* spec = reader_.Need(object, path, "spec", Type::kObject);
    if (metadata == nullptr || spec == nullptr) return;
    SeenRailNames names;
    if (const JsonValue* name = reader_.Need(*metadata, path + ".metadata", "name", Type::kText)) {
      names.name = reader_.Name(*name, path + ".metadata.name");
      names.where = absl::StrCat(reader_.source(), ":", name->line);
    }
    const std::string spec_path = path + ".spec";
    const JsonValue* prefix = reader_.Find(*spec, spec_path, "rdmaDevicePrefix", Type::kText);
    if (prefix == nullptr || prefix->text.empty()) return;  // it names no RDMA devices
    names.pattern = reader_.Name(*prefix, spec_path + ".rdmaDevicePrefix");
    int planes = 1;
    if (const JsonValue* count = reader_.Find(*spec, spec_path, "pfsPerNic", Type::kNumber)) {
      planes = reader_.Integer(*count, spec_path + ".pfsPerNic", 1, kMaxPlanes);
    }
    size_t nics = 1;
    const JsonValue* rails = reader_.Find(*spec, spec_path, "railPciAddresses", Type::kList);
    for (size_t i = 0; rails != nullptr && i < rails->fields.size(); ++i) {
      nics = std::max(nics, std::min(kMaxNics, rails->fields[i].value.fields.size()));
    }
    names.devices = planes * static_cast<int>(nics);
    seen_.rail_names.push_back(std::move(names));
  }

  void Node(const JsonValue& object, const std::string& path) {
    SeenNode node;
    const JsonValue* metadata = reader_.Need(object, path, "metadata", Type::kObject);
    if (metadata == nullptr) return;
    const std::string metadata_path = path + ".metadata";
    if (const JsonValue* name = reader_.Need(*metadata, metadata_path, "name", Type::kText)) {
      node.name = reader_.Name(*name, metadata_path + ".name");
      node.where = absl::StrCat(reader_.source(), ":", name->line);
    }
    const JsonValue* uid = reader_.Find(*metadata, metadata_path, "uid", Type::kText);
    if (uid != nullptr) node.uid = uid->text;
    const JsonValue* labels = reader_.Find(*metadata, metadata_path, "labels", Type::kObject);
    if (labels != nullptr) node.places = Places(*labels, metadata_path + ".labels");
    const JsonValue* spec = reader_.Find(object, path, "spec", Type::kObject);
    const JsonValue* cordoned = spec == nullptr ? nullptr : spec->Find("unschedulable");
    if (cordoned != nullptr && cordoned->text == "true") node.unschedulable = "cordoned";
    const JsonValue* status = reader_.Find(object, path, "status", Type::kObject);
    if (status != nullptr) {
      if (node.unschedulable.empty() && !Ready(*status)) node.unschedulable = "not ready";
      const JsonValue* offered =
          reader_.Find(*status, path + ".status", "allocatable", Type::kObject);
      if (offered != nullptr) {
        const Amounts amounts = AmountsIn(*offered, path + ".status.allocatable");
        node.gpus = amounts.gpus;
        node.offers_gpus = amounts.lists_gpus;
        node.hcas = amounts.hcas;
      }
    }
    const JsonValue* annotations =
        reader_.Find(*metadata, metadata_path, "annotations", Type::kObject);
    const JsonValue* facts =
        annotations == nullptr ? nullptr : annotations->Find(kNodeFactsAnnotation);
    if (facts != nullptr) Facts(*facts, node);
    seen_.nodes.push_back(std::move(node));
  }

  // Invalid facts of one node do not affect the other nodes.
  static void Facts(const JsonValue& value, SeenNode& node) {
    const absl::StatusOr<NodeFacts> facts = ReadNodeFacts(value.text, node.name);
    if (!facts.ok()) {
      node.facts_fault = std::string(facts.status().message());
      return;
    }
    node.rails = facts->rails;
    // The number offered to pods takes precedence, also if it is 0: no pod gets one.
    if (!node.offers_gpus) node.gpus = facts->gpus;
  }

  std::vector<SeenPlace> Places(const JsonValue& labels, const std::string& path) {
    std::map<std::string, std::string> texts;
    for (const auto& [name, value] : labels.fields) {
      if (value.Is(Type::kText) && !value.text.empty()) {
        texts[name] = reader_.Name(value, absl::StrCat(path, "[", ShownText(name), "]"));
      }
    }
    return PlacesOf(texts);
  }

  static bool Ready(const JsonValue& status) {
    const JsonValue* conditions = status.Find("conditions");
    if (conditions == nullptr) return true;
    for (const auto& [unnamed, condition] : conditions->fields) {
      const JsonValue* type = condition.Find("type");
      const JsonValue* is = condition.Find("status");
      if (type != nullptr && type->text == "Ready" && is != nullptr) return is->text == "True";
    }
    return true;
  }

  // Quantities of extended resources are whole; Kubernetes writes 1,000 as "1k", and 1,000,000 as
  // "1M".
  Amounts AmountsIn(const JsonValue& resources, const std::string& path) {
    Amounts amounts;
    for (const auto& [name, value] : resources.fields) {
      const bool gpu = absl::EndsWith(name, "/gpu");
      if (!gpu && !is_hca_(name)) continue;
      amounts.lists_gpus = amounts.lists_gpus || gpu;
      absl::string_view digits = value.text;
      const int64_t unit = ConsumeUnit(digits);
      int64_t count = 0;
      if (!absl::SimpleAtoi(digits, &count) || count < 0) {
        reader_.Fail(value, absl::StrCat(path, "[", ShownText(name), "]"),
                     absl::StrCat(QuotedText(value.text), " is not an integer"));
        return amounts;
      }
      int& sum = gpu ? amounts.gpus : amounts.hcas;
      const int64_t most = gpu ? kMaxGpus : kMaxShares;
      sum = static_cast<int>(std::min(most, sum + std::min(most / unit + 1, count) * unit));
    }
    return amounts;
  }

  void Pod(const JsonValue& object, const std::string& path) {
    const JsonValue* spec = reader_.Need(object, path, "spec", Type::kObject);
    const JsonValue* node =
        spec == nullptr ? nullptr : reader_.Find(*spec, path + ".spec", "nodeName", Type::kText);
    if (node == nullptr || node->text.empty()) return;
    const JsonValue* status = object.Find("status");
    const JsonValue* phase = status == nullptr ? nullptr : status->Find("phase");
    if (phase != nullptr && (phase->text == "Succeeded" || phase->text == "Failed")) return;
    SeenUse use;
    use.node = reader_.Name(*node, path + ".spec.nodeName");
    Amounts running;
    for (const Amounts& container : Containers(*spec, path + ".spec", "containers")) {
      Add(container, running);
    }
    // Init containers release their resources before the next one starts, except sidecars, which
    // keep running.
    Amounts sidecars;
    Amounts starting;
    for (const Amounts& container : Containers(*spec, path + ".spec", "initContainers")) {
      Amounts now = sidecars;
      Add(container, now);
      Raise(now, starting);
      if (container.stays) sidecars = now;
    }
    Add(sidecars, running);
    Raise(starting, running);
    use.gpus = running.gpus;
    use.hcas = running.hcas;
    if (use.gpus > 0 || use.hcas > 0) seen_.uses.push_back(std::move(use));
  }

  std::vector<Amounts> Containers(const JsonValue& spec, const std::string& path,
                                  const std::string& name) {
    std::vector<Amounts> amounts;
    const JsonValue* list = reader_.Find(spec, path, name, Type::kList);
    for (size_t i = 0; list != nullptr && i < list->fields.size(); ++i) {
      const std::string item = absl::StrCat(path, ".", name, "[", i, "].resources");
      const JsonValue* resources = list->fields[i].value.Find("resources");
      const JsonValue* requests = resources == nullptr
                                      ? nullptr
                                      : reader_.Find(*resources, item, "requests", Type::kObject);
      if (requests == nullptr) continue;
      amounts.push_back(AmountsIn(*requests, item + ".requests"));
      const JsonValue* restart = list->fields[i].value.Find("restartPolicy");
      amounts.back().stays = restart != nullptr && restart->text == "Always";
    }
    return amounts;
  }

  JsonReader reader_;
  const IsHca& is_hca_;
  Observations seen_;
};

}  // namespace

bool IsOfRdma(absl::string_view resource) { return absl::StartsWith(resource, "rdma/"); }

bool IsKubernetes(const JsonValue& text) {
  const JsonValue* kind = text.Find("kind");
  const JsonValue* version = text.Find("apiVersion");
  return kind != nullptr && version != nullptr && version->text == "v1";
}

std::vector<absl::string_view> KubernetesFieldsNotRead() {
  return {"managedFields",
          "images",
          "volumes",
          "env",
          "volumeMounts",
          "containerStatuses",
          "initContainerStatuses",
          "ownerReferences",
          "tolerations",
          "affinity"};
}

absl::StatusOr<Observations> ReadKubernetes(const std::vector<JsonValue>& texts,
                                            absl::string_view source, const IsHca& is_hca) {
  return KubernetesReader(source, is_hca).Read(texts);
}

}  // namespace railhead::fabric
