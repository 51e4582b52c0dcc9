// SPDX-License-Identifier: Apache-2.0
#include "operator/config.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/document_error.h"
#include "base/file.h"
#include "kube/json.h"
#include "kube/yaml.h"
#include "operator/gangs/workload.h"
#include "operator/variable_name.h"

namespace railhead::op {
namespace {

using kube::Json;

const std::vector<std::string>& Fields() {
  static const auto& fields = *new std::vector<std::string>{
      "environment",   "rendezvousPort", "excludedNamespaces", "verdicts",         "tellMissedPods",
      "memlockRaised", "gangs",          "gangKinds",          "gangReserveAfter", "rdmaResources",
      "topology",      "publishTopology"};
  return fields;
}
constexpr size_t kMaxConfigBytes = size_t{1} << 20;

class Reader {
 public:
  explicit Reader(absl::string_view source) : source_(source) {}

  absl::StatusOr<InjectionConfig> Read(const Json& document) const {
    if (!document.is_object()) return Error("", "must be a mapping with fields");
    InjectionConfig config;
    for (const auto& [field, value] : document.items()) {
      absl::Status status;
      if (field == "environment") {
        status = ReadEnvironment(value, config.environment);
      } else if (field == "rendezvousPort") {
        status = ReadPort(value, config.rendezvous_port);
      } else if (field == "excludedNamespaces") {
        status = ReadNamespaces(value, config.excluded_namespaces);
      } else if (field == "verdicts") {
        status = ReadSwitch(field, value, config.verdicts);
      } else if (field == "tellMissedPods") {
        status = ReadSwitch(field, value, config.tell_missed_pods);
      } else if (field == "memlockRaised") {
        status = ReadSwitch(field, value, config.memlock_raised);
      } else if (field == "gangs") {
        status = ReadSwitch(field, value, config.gangs);
      } else if (field == "gangKinds") {
        status = ReadKinds(value, config.gang_kinds);
      } else if (field == "gangReserveAfter") {
        status = ReadWait(field, value, config.gang_reserve_after);
      } else if (field == "rdmaResources") {
        status = ReadRdmaResources(value, config.rdma_resources);
      } else if (field == "topology") {
        status = ReadSwitch(field, value, config.topology);
      } else if (field == "publishTopology") {
        status = ReadSwitch(field, value, config.publish_topology);
      } else {
        const std::string nearest = NearestText(field, Fields());
        status =
            Error(field, absl::StrCat("is not known",
                                      nearest.empty() ? "." : "; did you mean " + nearest + "?",
                                      " The fields are ", absl::StrJoin(Fields(), ", ")));
      }
      if (!status.ok()) return status;
    }
    if (config.publish_topology && !config.topology) {
      return Error("publishTopology", "needs topology: true");
    }
    return config;
  }

 private:
  absl::Status Error(absl::string_view field, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(source_, ": ", field.empty() ? "the configuration" : field, " ", what));
  }

  absl::Status ReadEnvironment(const Json& value,
                               std::map<std::string, std::string>& environment) const {
    if (value.is_null()) return absl::OkStatus();
    if (!value.is_object()) {
      return Error("environment", "must be a mapping of names to values");
    }
    for (const auto& [name, entry] : value.items()) {
      const std::string field = absl::StrCat("environment.", name);
      if (!IsVariableName(name)) {
        return Error(field, "is not the name of an environment variable");
      }
      if (IsComputedVariable(name)) {
        return Error(field, "cannot be set here: Railhead decides it for every pod");
      }
      if (entry.is_string()) {
        environment[name] = entry.get<std::string>();
        if (environment[name].find('\0') != std::string::npos) {
          return Error(field, "must not contain a zero byte");
        }
      } else if (entry.is_number_integer() || entry.is_boolean()) {
        environment[name] = kube::DumpJson(entry);
      } else {
        return Error(field, "must be a string; put it in quotes");
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadSwitch(absl::string_view field, const Json& value, bool& is_on) const {
    if (!value.is_boolean()) return Error(field, "must be true or false");
    is_on = value.get<bool>();
    return absl::OkStatus();
  }

  absl::Status ReadKinds(const Json& value, std::set<std::string>& kinds) const {
    const bool is_list =
        value.is_array() && std::all_of(value.begin(), value.end(), [](auto& kind) {
          return kind.is_string() && gangs::IsWorkloadKind(kind.template get<std::string>());
        });
    if (!is_list) {
      return Error("gangKinds",
                   "must be a list of kinds of jobs: Job, JobSet, LeaderWorkerSet, PodGroup, or of "
                   "Kubeflow JAXJob, MPIJob, PaddleJob, PyTorchJob, TFJob, XGBoostJob");
    }
    kinds = value.get<std::set<std::string>>();
    return absl::OkStatus();
  }

  absl::Status ReadRdmaResources(const Json& value, RdmaResources& resources) const {
    const bool is_list =
        value.is_array() &&
        std::all_of(value.begin(), value.end(), [](auto& name) { return name.is_string(); });
    if (!is_list) return Error("rdmaResources", "must be a list of names of resources");
    absl::StatusOr<RdmaResources> read =
        RdmaResources::Parse(value.get<std::vector<std::string>>());
    if (!read.ok()) return Error("rdmaResources", read.status().message());
    resources = *std::move(read);
    return absl::OkStatus();
  }

  absl::Status ReadWait(absl::string_view field, const Json& value, absl::Duration& wait) const {
    if (value == "never") {
      wait = absl::InfiniteDuration();
      return absl::OkStatus();
    }
    if (!value.is_string() || !absl::ParseDuration(value.get<std::string>(), &wait) ||
        wait < absl::ZeroDuration()) {
      return Error(field, "must be a time such as 10m or 1h30m, or never");
    }
    return absl::OkStatus();
  }

  absl::Status ReadPort(const Json& value, int& port) const {
    if (!value.is_number_integer() || value < 1 || value > 65535) {
      return Error("rendezvousPort", "must be a number from 1 to 65535");
    }
    port = value.get<int>();
    return absl::OkStatus();
  }

  absl::Status ReadNamespaces(const Json& value, std::set<std::string>& namespaces) const {
    const bool is_list =
        value.is_array() && std::all_of(value.begin(), value.end(), [](auto& name) {
          return name.is_string() && !name.template get<std::string>().empty();
        });
    if (!is_list) return Error("excludedNamespaces", "must be a list of names of namespaces");
    namespaces = value.get<std::set<std::string>>();
    return absl::OkStatus();
  }

  absl::string_view source_;
};

}  // namespace

absl::StatusOr<InjectionConfig> ParseInjectionConfig(absl::string_view text,
                                                     absl::string_view source) {
  const absl::StatusOr<std::vector<Json>> documents = kube::ParseYaml(text, source);
  if (!documents.ok()) return documents.status();
  if (documents->empty()) return InjectionConfig();
  if (documents->size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": must be one YAML document"));
  }
  return Reader(source).Read(documents->front());
}

absl::StatusOr<InjectionConfig> LoadInjectionConfig(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadInput(path, kMaxConfigBytes);
  if (!text.ok()) return text.status();
  return ParseInjectionConfig(*text, path);
}

}  // namespace railhead::op
