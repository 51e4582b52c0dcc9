// SPDX-License-Identifier: Apache-2.0
#include "operator/config/config.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/document_error.h"
#include "base/file.h"
#include "base/yaml/document.h"
#include "base/yaml/reader.h"
#include "base/yaml/scalar.h"
#include "jobs/job.h"
#include "operator/objects/variable_name.h"

namespace railhead::op {
namespace {

constexpr size_t kMaxConfigBytes = size_t{1} << 20;
// Aliases let a small text stand for an enormous one.
constexpr int kMaxValues = 100'000;

class Reader : public YamlReader {
 public:
  explicit Reader(absl::string_view source) : YamlReader(source, kMaxValues) {}

  InjectionConfig Read(Value document);

  void Environment(Value value, const std::string& path,
                   std::map<std::string, std::string>& environment) {
    const Fields fields = FreeMapping(value, path);
    for (const auto& [variable, entry] : fields.all()) {
      const std::string name(variable);
      const std::string field = absl::StrCat(path, ".", ShownText(name));
      if (!IsVariableName(name)) {
        Fail(entry, field,
             "is not the name of an environment variable; use letters, digits and _, no digit "
             "first");
      } else if (IsComputedVariable(name)) {
        Fail(entry, field, "cannot be set here: Railhead sets it for every pod; leave it out");
      } else {
        environment[name] = VariableValue(entry, field);
      }
    }
  }

  std::set<std::string> Names(Value value, const std::string& path) {
    std::set<std::string> names;
    ForEach(value, path,
            [&](Value item, const std::string& item_path) { names.insert(Text(item, item_path)); });
    return names;
  }

  std::set<std::string> Kinds(Value value, const std::string& path) {
    std::set<std::string> kinds;
    ForEach(value, path, [&](Value item, const std::string& item_path) {
      kinds.insert(OneOf(item, item_path, jobs::KindNames()));
    });
    return kinds;
  }

  RdmaResources Resources(Value value, const std::string& path) {
    std::vector<std::string> patterns;
    ForEach(value, path, [&](Value item, const std::string& item_path) {
      patterns.push_back(Text(item, item_path));
    });
    absl::StatusOr<RdmaResources> resources = RdmaResources::Parse(patterns);
    if (resources.ok()) return *std::move(resources);
    Fail(value, path, resources.status().message());
    return {};
  }

  absl::Duration Wait(Value value, const std::string& path) {
    absl::Duration wait;
    const bool is_text = value.type() == YamlDocument::Type::kScalar;
    if (is_text && value.text() == "never") return absl::InfiniteDuration();
    if (!is_text || !absl::ParseDuration(value.text(), &wait) || wait < absl::ZeroDuration() ||
        (!value.quoted() && IsYamlNumber(value.text()))) {
      Fail(value, path,
           absl::StrCat("must be a duration such as 10m or 1h30m, or never, not ",
                        ShownValue(value)));
    }
    return wait;
  }

 private:
  // Integers and booleans need no quotes. Other numbers do: 1.50 may reach us as 1.5.
  std::string VariableValue(Value value, const std::string& path) {
    const bool plain = value.type() == YamlDocument::Type::kScalar && !value.quoted();
    const bool as_written =
        plain && (IsYamlBoolean(value.text()) ||
                  value.text().find_first_not_of("-0123456789") == absl::string_view::npos);
    std::string text = as_written ? std::string(value.text()) : AnyText(value, path);
    if (text.find('\0') != std::string::npos) {
      Fail(value, path, "contains a zero byte, which a variable cannot have; remove it");
    }
    return text;
  }
};

using Value = YamlReader::Value;

template <bool InjectionConfig::*kSwitch>
void ReadSwitch(Reader& reader, Value value, const std::string& path, InjectionConfig& config) {
  config.*kSwitch = reader.Boolean(value, path);
}

struct Field {
  const char* name;
  void (*read)(Reader& reader, Value value, const std::string& path, InjectionConfig& config);
};
constexpr Field kFields[] = {
    {"environment",
     [](Reader& reader, Value value, const std::string& path, InjectionConfig& config) {
       reader.Environment(value, path, config.environment);
     }},
    {"rendezvousPort",
     [](Reader& reader, Value value, const std::string& path, InjectionConfig& config) {
       config.rendezvous_port = reader.Integer(value, path, 1, 65535, "the default is 29500");
     }},
    {"excludedNamespaces",
     [](Reader& reader, Value value, const std::string& path, InjectionConfig& config) {
       config.excluded_namespaces = reader.Names(value, path);
     }},
    {"namespaces", [](Reader& reader, Value value, const std::string& path,
                      InjectionConfig& config) { config.namespaces = reader.Names(value, path); }},
    {"verdicts", ReadSwitch<&InjectionConfig::verdicts>},
    {"tellMissedPods", ReadSwitch<&InjectionConfig::tell_missed_pods>},
    {"memlockRaised", ReadSwitch<&InjectionConfig::memlock_raised>},
    {"gangs", ReadSwitch<&InjectionConfig::gangs>},
    {"gangKinds", [](Reader& reader, Value value, const std::string& path,
                     InjectionConfig& config) { config.gang_kinds = reader.Kinds(value, path); }},
    {"gangReserveAfter",
     [](Reader& reader, Value value, const std::string& path, InjectionConfig& config) {
       config.gang_reserve_after = reader.Wait(value, path);
     }},
    {"rdmaResources",
     [](Reader& reader, Value value, const std::string& path, InjectionConfig& config) {
       config.rdma_resources = reader.Resources(value, path);
     }},
    {"topology", ReadSwitch<&InjectionConfig::topology>},
    {"publishTopology", ReadSwitch<&InjectionConfig::publish_topology>},
};

InjectionConfig Reader::Read(Value document) {
  InjectionConfig config;
  if (document.type() == YamlDocument::Type::kNull) return config;
  YamlReader::Names known;
  std::transform(std::begin(kFields), std::end(kFields), std::back_inserter(known),
                 [](const Field& field) { return field.name; });
  const Fields fields = Mapping(document, "", known);
  for (const Field& field : kFields) {
    const std::optional<Value> value = fields.Find(field.name);
    if (value && status().ok()) field.read(*this, *value, field.name, config);
  }
  if (config.publish_topology && !config.topology) {
    Fail(*fields.Find("publishTopology"), "publishTopology", "needs topology; set topology: true");
  }
  if (config.gangs && !config.namespaces.empty()) {
    Fail(*fields.Find("namespaces"), "namespaces",
         "cannot be set with gangs: true, because pods of any namespace may take the room of a "
         "gang; remove it, or set gangs: false");
  }
  return config;
}

}  // namespace

absl::StatusOr<InjectionConfig> ParseInjectionConfig(absl::string_view text,
                                                     absl::string_view source) {
  const absl::StatusOr<YamlDocument> document = YamlDocument::Parse(text, source);
  if (!document.ok()) return document.status();
  Reader reader(source);
  InjectionConfig config = reader.Read(document->root());
  if (!reader.status().ok()) return reader.status();
  return config;
}

absl::StatusOr<InjectionConfig> LoadInjectionConfig(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadInput(path, kMaxConfigBytes);
  if (!text.ok()) return text.status();
  return ParseInjectionConfig(*text, path);
}

std::optional<RdmaResources> ReadRdmaResources(const kube::Json& config_map) {
  const std::string component =
      kube::StringAt(config_map, {"metadata", "labels", "app.kubernetes.io/component"});
  const std::string text = kube::StringAt(config_map, {"data", "operator.yaml"});
  if (component != "operator" || text.empty()) return std::nullopt;
  absl::StatusOr<InjectionConfig> config = ParseInjectionConfig(text, "operator.yaml");
  if (!config.ok()) return std::nullopt;
  return std::move(config->rdma_resources);
}

}  // namespace railhead::op
