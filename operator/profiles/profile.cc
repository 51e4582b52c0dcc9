// SPDX-License-Identifier: Apache-2.0
#include "operator/profiles/profile.h"

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "operator/objects/fields.h"
#include "operator/objects/variable_name.h"
#include "operator/profiles/profile_settings.h"

namespace railhead::op {
namespace {

using kube::Json;

constexpr size_t kMostVariables = 64;
constexpr size_t kLongestValue = 4096;
constexpr int64_t kMostPriority = 1'000'000;
constexpr int kMostRoceServiceLevel = 7;  // on RoCE it is the priority in a VLAN's tag
constexpr char kSystemSpace[] = "kube-system";
constexpr char kSpaceName[] = "kubernetes.io/metadata.name";

constexpr std::array<std::pair<absl::string_view, Fabric>, 5> kFabrics = {
    {{"InfiniBand", Fabric::kInfiniBand},
     {"RoCE", Fabric::kRoce},
     {"iWARP", Fabric::kIwarp},
     {"EFA", Fabric::kEfa},
     {"TCP", Fabric::kTcp}}};
constexpr std::array<std::pair<absl::string_view, RequireRdma>, 3> kRequirements = {
    {{"fail", RequireRdma::kFail}, {"warn", RequireRdma::kWarn}, {"allow", RequireRdma::kAllow}}};

template <typename Value, size_t kCount>
absl::StatusOr<Value> ReadWord(const std::array<std::pair<absl::string_view, Value>, kCount>& words,
                               const Json& value, absl::string_view path) {
  std::vector<absl::string_view> allowed;
  for (const auto& [word, meaning] : words) {
    if (value.is_string() && word == absl::string_view(value.get_ref<const std::string&>())) {
      return meaning;
    }
    allowed.push_back(word);
  }
  return FieldError(path, absl::StrCat("must be one of ", absl::StrJoin(allowed, ", ")));
}

template <typename Value, size_t kCount>
absl::string_view WordFor(const std::array<std::pair<absl::string_view, Value>, kCount>& words,
                          Value wanted) {
  for (const auto& [word, meaning] : words) {
    if (meaning == wanted) return word;
  }
  return "";
}

// "16Gi": what fits an emptyDir, and no fractions or exponents.
bool IsSize(absl::string_view text) {
  for (const absl::string_view unit : {"Ki", "Mi", "Gi", "Ti"}) {
    if (absl::EndsWith(text, unit)) {
      text.remove_suffix(unit.size());
      break;
    }
  }
  return !text.empty() && text.size() <= 15 && text[0] != '0' &&
         text.find_first_not_of("0123456789") == absl::string_view::npos;
}

absl::Status ReadMetadata(const Json& object, RailProfile& profile) {
  const Json* metadata = Member(object, "metadata");
  const Json* name = metadata == nullptr ? nullptr : Member(*metadata, "name");
  if (name == nullptr) return FieldError("metadata.name", "is missing");
  absl::StatusOr<std::string> text = ReadString(*name, "metadata.name");
  if (!text.ok()) return text.status();
  // A name of the API is a DNS name; here it is enough that a stamp can carry it.
  if (text->empty() || text->size() > 253 ||
      text->find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") != std::string::npos) {
    return FieldError("metadata.name", "must be of small letters, digits, '-' and '.'");
  }
  profile.name = *std::move(text);
  if (const Json* generation = Member(*metadata, "generation"); generation != nullptr) {
    const absl::StatusOr<int64_t> number =
        ReadInteger(*generation, "metadata.generation", 0, INT64_MAX);
    if (!number.ok()) return number.status();
    profile.generation = *number;
  }
  return absl::OkStatus();
}

absl::Status ReadSelectors(const Json& spec, RailProfile& profile) {
  const Json* namespaces = Member(spec, "namespaceSelector");
  if (namespaces == nullptr) {
    return FieldError("spec.namespaceSelector",
                      "is missing: select the namespaces of this profile");
  }
  absl::StatusOr<LabelSelector> selector =
      ParseLabelSelector(*namespaces, "spec.namespaceSelector");
  if (!selector.ok()) return selector.status();
  // The labels that kube-system has in every cluster.
  if (selector->Matches({{kSpaceName, kSystemSpace}})) {
    return FieldError("spec.namespaceSelector",
                      absl::StrCat("would match kube-system: add {key: ", kSpaceName,
                                   ", operator: NotIn, values: [kube-system]}"));
  }
  profile.namespaces = *std::move(selector);
  if (const Json* pods = Member(spec, "podSelector"); pods != nullptr) {
    selector = ParseLabelSelector(*pods, "spec.podSelector");
    if (!selector.ok()) return selector.status();
    profile.pods = *std::move(selector);
  }
  return absl::OkStatus();
}

// One of spec.nccl, spec.ucx, spec.gloo, spec.railhead.
absl::Status ReadSection(const Json& spec, absl::string_view section, RailProfile& profile) {
  const Json* object = Member(spec, section);
  if (object == nullptr) return absl::OkStatus();
  const std::string path = JoinPath("spec", section);
  std::vector<absl::string_view> fields;
  for (const ProfileSetting& setting : ProfileSettings()) {
    if (section == setting.section) fields.emplace_back(setting.field);
  }
  if (absl::Status known = CheckMembers(*object, path, fields); !known.ok()) return known;
  for (const ProfileSetting& setting : ProfileSettings()) {
    if (section != setting.section) continue;
    const Json* value = Member(*object, setting.field);
    if (value == nullptr) continue;
    absl::StatusOr<std::string> said = ReadSetting(setting, *value, JoinPath(path, setting.field));
    if (!said.ok()) return said.status();
    profile.settings[setting.Name()] = *std::move(said);
  }
  return absl::OkStatus();
}

// Returns why a variable is not allowed in spec.env; "" if it is.
std::string WhyNot(const std::string& name) {
  if (!IsVariableName(name)) return "is not the name of an environment variable";
  if (IsComputedVariable(name)) return "cannot be set here: Railhead computes it for every pod";
  if (name == "RAILHEAD_FALLBACK" || name == "RAILHEAD_REQUIRE_RDMA") {
    return "cannot be set here: set spec.requireRDMA";
  }
  if (absl::EndsWith(name, "IB_GID_INDEX")) {
    return "cannot be right on all nodes: a GID's index differs from pod to pod; set "
           "spec.nccl.roceVersion and spec.nccl.addressFamily";
  }
  for (const ProfileSetting& setting : ProfileSettings()) {
    if (name == setting.variable && !setting.also_in_env) {
      return absl::StrCat("cannot be set here: set spec.", setting.Name());
    }
  }
  return "";
}

absl::Status ReadEnvironment(const Json& spec, RailProfile& profile) {
  const Json* environment = Member(spec, "env");
  if (environment == nullptr) return absl::OkStatus();
  if (!environment->is_object() || environment->size() > kMostVariables) {
    return FieldError("spec.env",
                      absl::StrCat("must be an object of at most ", kMostVariables, " variables"));
  }
  for (const auto& [name, value] : environment->items()) {
    const std::string path = absl::StrCat("spec.env[", name, "]");
    if (const std::string why = WhyNot(name); !why.empty()) return FieldError(path, why);
    absl::StatusOr<std::string> text = ReadString(value, path);
    if (!text.ok()) return text.status();
    if (text->size() > kLongestValue) {
      return FieldError(path, absl::StrCat("must be at most ", kLongestValue, " bytes"));
    }
    profile.environment[name] = *std::move(text);
  }
  return absl::OkStatus();
}

absl::Status ReadSharedMemory(const Json& spec, RailProfile& profile) {
  const Json* memory = Member(spec, "sharedMemory");
  if (memory == nullptr) return absl::OkStatus();
  if (absl::Status known = CheckMembers(*memory, "spec.sharedMemory", {"size"}); !known.ok()) {
    return known;
  }
  const Json* size = Member(*memory, "size");
  if (size == nullptr) return FieldError("spec.sharedMemory.size", "is missing");
  absl::StatusOr<std::string> text = ReadString(*size, "spec.sharedMemory.size");
  if (!text.ok()) return text.status();
  if (!IsSize(*text)) {
    return FieldError("spec.sharedMemory.size", "must be a size such as 16Gi or 512Mi");
  }
  profile.shared_memory_size = *std::move(text);
  return absl::OkStatus();
}

// SHARP is a feature of InfiniBand's switches.
absl::Status CheckSharp(const RailProfile& profile) {
  if (profile.fabric != Fabric::kInfiniBand) {
    if (HasCollNet(profile)) {
      return FieldError("spec.nccl.collnet",
                        "can be true only on fabric InfiniBand, whose switches have SHARP; set it "
                        "to false or remove it");
    }
    for (const char* name : {"nccl.collnetMinNodes", "nccl.collnetPlugin", "nccl.sharpLogLevel"}) {
      if (profile.settings.contains(name)) {
        return FieldError(JoinPath("spec", name),
                          "is valid only on fabric InfiniBand, whose switches have SHARP; remove "
                          "it");
      }
    }
  }
  if (!profile.settings.contains("nccl.collnetPlugin")) return absl::OkStatus();
  if (!profile.inject.plugin_image.empty()) {
    return FieldError("spec.nccl.collnetPlugin",
                      "cannot be set together with spec.inject.ncclPlugin, which sets "
                      "NCCL_NET_PLUGIN; remove one of them");
  }
  if (profile.environment.contains("NCCL_NET_PLUGIN")) {
    return FieldError("spec.env[NCCL_NET_PLUGIN]",
                      "cannot be set together with spec.nccl.collnetPlugin, which sets it; remove "
                      "one of them");
  }
  return absl::OkStatus();
}

absl::Status CheckContradictions(const RailProfile& profile) {
  if (!profile.inject.plugin_image.empty() && profile.environment.contains("NCCL_NET_PLUGIN")) {
    return FieldError("spec.env[NCCL_NET_PLUGIN]",
                      "cannot be set together with spec.inject.ncclPlugin, which sets it");
  }
  if (profile.inject.own_plugin() && profile.fabric == Fabric::kEfa) {
    return FieldError("spec.inject.ncclPlugin.library",
                      "is missing on fabric EFA, which Railhead's own plugin does not support");
  }
  if (profile.require_rdma == RequireRdma::kFail) {
    if (profile.fabric == Fabric::kTcp) {
      return FieldError("spec.requireRDMA", "cannot be fail on fabric TCP, which has no RDMA");
    }
    // The built-in networks of NCCL do not know EFA, so only the plugin's name keeps it from TCP.
    if (profile.fabric == Fabric::kEfa && profile.environment.count("NCCL_NET") == 0) {
      return FieldError("spec.requireRDMA",
                        "cannot be fail on fabric EFA without spec.env[NCCL_NET]: set it to the "
                        "name of the plugin's network in NCCL's log");
    }
  }
  if (profile.settings.count("nccl.roceVersion") > 0 && profile.fabric != Fabric::kRoce) {
    return FieldError("spec.nccl.roceVersion", "is valid only on fabric RoCE");
  }
  if (profile.fabric == Fabric::kRoce) {
    for (const absl::string_view section : {"nccl", "ucx", "railhead"}) {
      const std::string name = absl::StrCat(section, ".serviceLevel");
      const auto level = profile.settings.find(name);
      int number = 0;
      if (level != profile.settings.end() && absl::SimpleAtoi(level->second, &number) &&
          number > kMostRoceServiceLevel) {
        return FieldError(JoinPath("spec", name),
                          "must be at most 7 on fabric RoCE, where it is a VLAN priority");
      }
    }
  }
  return CheckSharp(profile);
}

}  // namespace

absl::string_view FabricName(Fabric fabric) { return WordFor(kFabrics, fabric); }

absl::string_view RequireRdmaName(RequireRdma require) { return WordFor(kRequirements, require); }

bool HasCollNet(const RailProfile& profile) {
  const auto collnet = profile.settings.find("nccl.collnet");
  return collnet != profile.settings.end() && collnet->second == "true";
}

absl::StatusOr<RailProfile> ParseRailProfile(const Json& object) {
  if (absl::Status known =
          CheckMembers(object, "", {"apiVersion", "kind", "metadata", "spec", "status"});
      !known.ok()) {
    return known;
  }
  if (kube::StringAt(object, {"apiVersion"}) != kProfileVersion) {
    return FieldError("apiVersion", absl::StrCat("must be ", kProfileVersion));
  }
  if (kube::StringAt(object, {"kind"}) != kProfileKind) {
    return FieldError("kind", absl::StrCat("must be ", kProfileKind));
  }
  RailProfile profile;
  if (absl::Status read = ReadMetadata(object, profile); !read.ok()) return read;
  const Json* spec = Member(object, "spec");
  if (spec == nullptr) return FieldError("spec", "is missing");
  if (absl::Status known =
          CheckMembers(*spec, "spec",
                       {"fabric", "namespaceSelector", "podSelector", "priority", "requireRDMA",
                        "sharedMemory", "inject", "nccl", "ucx", "gloo", "railhead", "env"});
      !known.ok()) {
    return known;
  }
  const Json* fabric = Member(*spec, "fabric");
  const absl::StatusOr<Fabric> read_fabric =
      ReadWord(kFabrics, fabric == nullptr ? Json() : *fabric, "spec.fabric");
  if (!read_fabric.ok()) return read_fabric.status();
  profile.fabric = *read_fabric;
  if (const Json* priority = Member(*spec, "priority"); priority != nullptr) {
    const absl::StatusOr<int64_t> number =
        ReadInteger(*priority, "spec.priority", -kMostPriority, kMostPriority);
    if (!number.ok()) return number.status();
    profile.priority = *number;
  }
  if (const Json* require = Member(*spec, "requireRDMA"); require != nullptr) {
    const absl::StatusOr<RequireRdma> word = ReadWord(kRequirements, *require, "spec.requireRDMA");
    if (!word.ok()) return word.status();
    profile.require_rdma = *word;
  }
  if (absl::Status read = ReadSelectors(*spec, profile); !read.ok()) return read;
  for (const absl::string_view section : {"nccl", "ucx", "gloo", "railhead"}) {
    if (absl::Status read = ReadSection(*spec, section, profile); !read.ok()) return read;
  }
  if (absl::Status read = ReadEnvironment(*spec, profile); !read.ok()) return read;
  if (absl::Status read = ReadSharedMemory(*spec, profile); !read.ok()) return read;
  if (const Json* inject = Member(*spec, "inject"); inject != nullptr) {
    absl::StatusOr<Injection> injection = ReadInjection(*inject, "spec.inject");
    if (!injection.ok()) return injection.status();
    profile.inject = *std::move(injection);
  }
  if (absl::Status checked = CheckContradictions(profile); !checked.ok()) return checked;
  return profile;
}

}  // namespace railhead::op
