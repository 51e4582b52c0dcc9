// SPDX-License-Identifier: Apache-2.0
#include "fabric/model/model_reader.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/document_error.h"
#include "base/yaml/document.h"
#include "base/yaml/reader.h"
#include "fabric/model/fabric_model.h"
#include "fabric/rail_limit.h"

namespace railhead::fabric {
namespace {

using Value = YamlReader::Value;
using Fields = YamlReader::Fields;

constexpr size_t kMaxLevels = 8;
constexpr int kMaxGpus = 1024;
constexpr size_t kMaxNodes = 131'072;
constexpr size_t kMaxDomains = kMaxNodes;  // of one level

class ModelReader {
 public:
  explicit ModelReader(YamlReader* reader) : reader_(*reader) {}

  FabricModel Read(Value root) {
    const Fields top = reader_.Mapping(root, "", {"apiVersion", "kind", "metadata", "spec"});
    model_.name = reader_.Header(top, root, "FabricModel");
    const std::optional<Value> spec =
        reader_.Need(top, root, "", "spec", "describe the fabric there");
    if (!spec) return std::move(model_);
    const Fields fields = reader_.Mapping(
        *spec, "spec", {"topology", "levels", "rails", "domains", "linkGbps", "globalLinks"});
    const auto need = [&](const char* name, const char* hint) {
      return reader_.Need(fields, *spec, "spec", name, hint);
    };
    if (const auto value = need("topology", "write fat-tree, rail-optimized or dragonfly")) {
      ReadTopology(*value);
    }
    if (const auto value = need("levels", "name them, outermost first: [spine, leaf]")) {
      ReadLevels(*value);
    }
    if (const auto value = need("rails", "give the number per node")) {
      model_.rails = reader_.Integer(*value, "spec.rails", 1, kHighestRail + 1,
                                     "it is the number of rails per node");
    }
    if (const auto value = need("domains", "list the domains of the outermost level")) {
      if (reader_.status().ok()) ReadDomains(*value, "spec.domains", 0, -1);
    }
    if (const auto value = fields.Find("linkGbps")) ReadLinkGbps(*value);
    if (const auto value = fields.Find("globalLinks")) ReadGlobalLinks(*value);
    return std::move(model_);
  }

 private:
  void ReadTopology(Value value) {
    const std::string topology =
        reader_.OneOf(value, "spec.topology", {"fat-tree", "rail-optimized", "dragonfly"});
    if (topology == "rail-optimized") model_.topology = FabricTopology::kRailOptimized;
    if (topology == "dragonfly") model_.topology = FabricTopology::kDragonfly;
  }

  void ReadLevels(Value value) {
    reader_.ForEach(value, "spec.levels", [&](Value item, const std::string& path) {
      std::string level = reader_.Text(item, path);
      if (level == "node") {
        reader_.Fail(item, path, "\"node\" is not a level of domains; remove it");
      } else if (LevelIndex(model_, level)) {
        reader_.Fail(item, path, absl::StrCat(QuotedText(level), " is listed twice; remove one"));
      }
      model_.levels.push_back(std::move(level));
    });
    if (model_.levels.empty() || model_.levels.size() > kMaxLevels) {
      reader_.Fail(value, "spec.levels",
                   absl::StrCat("must name 1 to ", kMaxLevels, " levels, outermost first"));
    }
    model_.domains.resize(model_.levels.size());
    names_.resize(model_.levels.size());
  }

  bool Innermost(size_t level) const { return level + 1 == model_.levels.size(); }

  void ReadDomains(Value list, const std::string& list_path, size_t level, int parent) {
    // The contents of a domain are consecutive in the next level, so they start at that level's
    // current end; reading them adds to deeper levels only.
    reader_.ForEach(list, list_path, [&](Value item, const std::string& path) {
      const std::string& level_name = model_.levels[level];
      // Accepts both names, so that contents at the wrong depth get a specific error.
      const Fields fields = reader_.Mapping(item, path, {"name", "domains", "nodes"});
      if (model_.domains[level].size() >= kMaxDomains) {
        reader_.Fail(
            item, path,
            absl::StrCat("is one more than the ", kMaxDomains, " domains that a level may have"));
      }
      const std::optional<Value> name =
          reader_.Need(fields, item, path, "name", absl::StrCat("name the ", level_name));
      const char* inner = Innermost(level) ? "nodes" : "domains";
      const char* other = Innermost(level) ? "domains" : "nodes";
      if (const auto wrong = fields.Find(other)) {
        reader_.Fail(
            *wrong, absl::StrCat(path, ".", other),
            Innermost(level)
                ? absl::StrCat("a ", level_name, " is of the innermost level and contains ",
                               "nodes; spec.levels has ", model_.levels.size(),
                               " levels, one for each nesting of domains")
                : absl::StrCat("a ", level_name, " contains domains of level ",
                               model_.levels[level + 1],
                               "; only the innermost level contains nodes"));
      }
      const std::optional<Value> held =
          reader_.Need(fields, item, path, inner, "write [] if it is empty");
      if (!reader_.status().ok()) return;
      FabricDomain domain;
      domain.name = reader_.Name(*name, path + ".name");
      domain.parent = parent;
      CheckName(*name, path + ".name", level, domain.name);
      domain.first = static_cast<int>(Innermost(level) ? model_.nodes.size()
                                                       : model_.domains[level + 1].size());
      const auto index = static_cast<int>(model_.domains[level].size());
      model_.domains[level].push_back(std::move(domain));
      around_.push_back(model_.domains[level].back().name);
      if (Innermost(level)) {
        ReadNodes(*held, path + ".nodes");
      } else {
        ReadDomains(*held, path + ".domains", level + 1, index);
      }
      around_.pop_back();
      FabricDomain& done = model_.domains[level][static_cast<size_t>(index)];
      const size_t end = Innermost(level) ? model_.nodes.size() : model_.domains[level + 1].size();
      done.count = static_cast<int>(end) - done.first;
    });
  }

  void CheckName(Value value, const std::string& path, size_t level, const std::string& name) {
    if (std::find(around_.begin(), around_.end(), name) != around_.end()) {
      reader_.Fail(value, path,
                   absl::StrCat(QuotedText(name), " would contain itself: an outer domain has the ",
                                "same name; give each a unique name"));
    } else if (!names_[level].insert(name).second) {
      reader_.Fail(value, path,
                   absl::StrCat(QuotedText(name), " is already the name of another ",
                                model_.levels[level], "; give each a unique name"));
    }
  }

  void ReadNodes(Value list, const std::string& list_path) {
    reader_.ForEach(list, list_path, [&](Value item, const std::string& path) {
      if (model_.nodes.size() >= kMaxNodes) {
        reader_.Fail(
            item, path,
            absl::StrCat("is one more than the ", kMaxNodes, " nodes that a fabric may have"));
      }
      FabricNode node = ReadNode(item, path);
      if (reader_.status().ok()) model_.nodes.push_back(std::move(node));
    });
  }

  FabricNode ReadNode(Value item, const std::string& path) {
    FabricNode node;
    const Fields fields = reader_.Mapping(item, path,
                                          {"name", "gpus", "hcas", "usedGpus", "usedHcas",
                                           "deadRails", "usedRails", "unschedulable"});
    const auto name = reader_.Need(fields, item, path, "name", "name the node");
    const auto gpus = reader_.Need(fields, item, path, "gpus", "give their number, such as 8");
    const auto hcas = reader_.Need(fields, item, path, "hcas", "give their number, such as 8");
    if (!reader_.status().ok()) return node;
    node.name = reader_.Name(*name, path + ".name");
    node.gpus =
        reader_.Integer(*gpus, path + ".gpus", 0, kMaxGpus, "it is the number of the node's GPUs");
    node.hcas = reader_.Integer(*hcas, path + ".hcas", 0, model_.rails,
                                "a node has at most one per rail (spec.rails); omit those that are "
                                "not rails, such as storage NICs");
    if (const auto used = fields.Find("usedGpus")) {
      node.used_gpus = reader_.Integer(*used, path + ".usedGpus", 0, node.gpus,
                                       "it cannot exceed the node's GPUs");
    }
    if (const auto dead = fields.Find("deadRails")) {
      node.dead_rails = ReadRails(*dead, path + ".deadRails", node.hcas);
    }
    if (const auto used = fields.Find("usedRails")) {
      node.used_rails = ReadRails(*used, path + ".usedRails", node.hcas);
    }
    // usedRails also gives the number of used HCAs.
    node.used_hcas = static_cast<int>(
        std::count_if(node.used_rails.begin(), node.used_rails.end(), [&](int rail) {
          return !std::binary_search(node.dead_rails.begin(), node.dead_rails.end(), rail);
        }));
    if (const auto used = fields.Find("usedHcas")) {
      node.used_hcas = reader_.Integer(
          *used, path + ".usedHcas", node.used_hcas, node.hcas,
          "it must not be less than the number of usedRails or more than the node's HCAs");
    }
    if (const auto why = fields.Find("unschedulable")) {
      node.unschedulable = reader_.Text(*why, path + ".unschedulable");
    }
    const auto [same, is_new] = node_lines_.emplace(node.name, name->line());
    if (!is_new) {
      reader_.Fail(*name, path + ".name",
                   absl::StrCat(QuotedText(node.name), " is already the name of the node in line ",
                                same->second, "; a node has one place"));
    }
    return node;
  }

  // Reads rails of a node with `hcas` HCAs; ascending.
  std::vector<int> ReadRails(Value list, const std::string& list_path, int hcas) {
    std::vector<int> rails;
    reader_.ForEach(list, list_path, [&](Value item, const std::string& path) {
      const int rail = reader_.Integer(item, path, 0, model_.rails - 1,
                                       "rails are numbered from 0; spec.rails is their number");
      if (std::find(rails.begin(), rails.end(), rail) != rails.end()) {
        reader_.Fail(item, path, absl::StrCat("rail ", rail, " is listed twice; remove one"));
      }
      rails.push_back(rail);
    });
    if (rails.size() > static_cast<size_t>(hcas)) {
      reader_.Fail(list, list_path,
                   absl::StrCat("names ", rails.size(), " rails, but the node has ", hcas,
                                " HCAs, including dead ones"));
    }
    std::sort(rails.begin(), rails.end());
    return rails;
  }

  void ReadLinkGbps(Value value) {
    YamlReader::Names known = model_.levels;
    known.emplace_back("node");
    const Fields fields = reader_.Mapping(value, "spec.linkGbps", known);
    for (const auto& [name, gbps] : fields.all()) {
      model_.link_gbps[std::string(name)] = reader_.Positive(
          gbps, absl::StrCat("spec.linkGbps.", name), "it is Gbit/s in one direction");
    }
  }

  void ReadGlobalLinks(Value value) {
    if (model_.topology != FabricTopology::kDragonfly) {
      reader_.Fail(value, "spec.globalLinks",
                   absl::StrCat("only a dragonfly has global links, but spec.topology is ",
                                TopologyName(model_.topology), "; correct one of them"));
      return;
    }
    std::set<std::pair<std::string, std::string>> seen;
    reader_.ForEach(value, "spec.globalLinks", [&](Value item, const std::string& path) {
      const Fields fields = reader_.Mapping(item, path, {"a", "b", "gbps"});
      GlobalLink link;
      const auto end = [&](const char* name, std::string& text) {
        const auto field = reader_.Need(fields, item, path, name, "name a group");
        if (!field) return;
        const std::string field_path = absl::StrCat(path, ".", name);
        text = reader_.Name(*field, field_path);
        if (reader_.status().ok() && names_[0].count(text) == 0) {
          reader_.Fail(*field, field_path,
                       absl::StrCat(QuotedText(text), " is not the name of a ", model_.levels[0],
                                    " in spec.domains"));
        }
      };
      end("a", link.a);
      end("b", link.b);
      if (const auto gbps = reader_.Need(fields, item, path, "gbps", "give its speed")) {
        link.gbps = reader_.Positive(*gbps, path + ".gbps", "it is Gbit/s in one direction");
      }
      if (!reader_.status().ok()) return;
      if (link.a == link.b) {
        reader_.Fail(item, path, "goes from a group to itself; name two different groups");
      } else if (!seen.insert(std::minmax(link.a, link.b)).second) {
        reader_.Fail(item, path,
                     absl::StrCat("the link between ", link.a, " and ", link.b,
                                  " is listed twice; write one, with the total Gbit/s"));
      }
      model_.global_links.push_back(std::move(link));
    });
  }

  YamlReader& reader_;
  FabricModel model_;
  std::vector<std::unordered_set<std::string>> names_;  // of each level's domains
  std::vector<std::string> around_;                     // names of the domains being read
  std::unordered_map<std::string, int> node_lines_;
};

}  // namespace

FabricModel ReadFabricModel(YamlReader& reader, YamlReader::Value root) {
  return ModelReader(&reader).Read(root);
}

absl::StatusOr<FabricModel> ParseFabricModel(absl::string_view yaml, absl::string_view source) {
  const absl::StatusOr<YamlDocument> document = YamlDocument::Parse(yaml, source);
  if (!document.ok()) return document.status();
  YamlReader reader(source);
  FabricModel model = ReadFabricModel(reader, document->root());
  if (!reader.status().ok()) return reader.status();
  return model;
}

}  // namespace railhead::fabric
