// SPDX-License-Identifier: Apache-2.0
#include "fabric/model/model_yaml.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/yaml/scalar.h"
#include "fabric/model/fabric_model.h"

namespace railhead::fabric {
namespace {

// Omits quotes if no YAML reader can misread the text; otherwise writes a JSON string, which is
// also valid YAML.
std::string Text(const std::string& text) {
  const auto plain = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  };
  const bool word = !text.empty() && absl::ascii_isalpha(static_cast<unsigned char>(text[0])) &&
                    std::all_of(text.begin(), text.end(), plain);
  const std::string lower = absl::AsciiStrToLower(text);
  const std::vector<std::string> meant = {"null", "yes", "no", "on", "off", "y", "n"};
  if (word && !IsYamlBoolean(text) && !IsYamlNumber(text) &&
      std::find(meant.begin(), meant.end(), lower) == meant.end()) {
    return text;
  }
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string NodeLine(const FabricNode& node) {
  std::string line =
      absl::StrCat("{name: ", Text(node.name), ", gpus: ", node.gpus, ", hcas: ", node.hcas);
  if (node.used_gpus > 0) absl::StrAppend(&line, ", usedGpus: ", node.used_gpus);
  if (node.used_hcas > 0) absl::StrAppend(&line, ", usedHcas: ", node.used_hcas);
  if (!node.dead_rails.empty()) {
    absl::StrAppend(&line, ", deadRails: [", absl::StrJoin(node.dead_rails, ", "), "]");
  }
  if (!node.used_rails.empty()) {
    absl::StrAppend(&line, ", usedRails: [", absl::StrJoin(node.used_rails, ", "), "]");
  }
  if (!node.unschedulable.empty()) {
    absl::StrAppend(&line, ", unschedulable: ", Text(node.unschedulable));
  }
  return line + "}";
}

void Domains(const FabricModel& model, size_t level, int first, int count, std::string& text) {
  const std::string indent(2 + 2 * level, ' ');
  for (int i = first; i < first + count; ++i) {
    const FabricDomain& domain = model.domains[level][static_cast<size_t>(i)];
    const bool innermost = level + 1 == model.levels.size();
    absl::StrAppend(&text, indent, "- name: ", Text(domain.name), "\n", indent, "  ",
                    innermost ? "nodes:" : "domains:", domain.count == 0 ? " []\n" : "\n");
    if (!innermost) {
      Domains(model, level + 1, domain.first, domain.count, text);
      continue;
    }
    for (int node = domain.first; node < domain.first + domain.count; ++node) {
      absl::StrAppend(&text, indent, "  - ", NodeLine(model.nodes[static_cast<size_t>(node)]),
                      "\n");
    }
  }
}

}  // namespace

std::string ToYaml(const FabricModel& model) {
  const auto name = [](std::string* out, const std::string& text) { out->append(Text(text)); };
  std::string text = absl::StrCat(
      "apiVersion: railhead.io/v1alpha1\nkind: FabricModel\nmetadata: {name: ", Text(model.name),
      "}\nspec:\n  topology: ", TopologyName(model.topology), "\n  levels: [",
      absl::StrJoin(model.levels, ", ", name), "]\n  rails: ", model.rails, "\n");
  if (!model.link_gbps.empty()) {
    const auto link = [](std::string* out, const auto& entry) {
      absl::StrAppend(out, Text(entry.first), ": ", nlohmann::json(entry.second).dump());
    };
    absl::StrAppend(&text, "  linkGbps: {", absl::StrJoin(model.link_gbps, ", ", link), "}\n");
  }
  if (!model.global_links.empty()) absl::StrAppend(&text, "  globalLinks:\n");
  for (const GlobalLink& link : model.global_links) {
    absl::StrAppend(&text, "  - {a: ", Text(link.a), ", b: ", Text(link.b),
                    ", gbps: ", nlohmann::json(link.gbps).dump(), "}\n");
  }
  absl::StrAppend(&text, "  domains:", model.domains[0].empty() ? " []\n" : "\n");
  Domains(model, 0, 0, static_cast<int>(model.domains[0].size()), text);
  return text;
}

}  // namespace railhead::fabric
