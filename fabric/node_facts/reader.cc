// SPDX-License-Identifier: Apache-2.0
#include "fabric/node_facts/reader.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/document_error.h"
#include "base/json/json_text.h"
#include "base/printable_text.h"
#include "fabric/inventory.h"
#include "fabric/node_facts/seen_rail.h"

namespace railhead::fabric {
namespace {

using Type = JsonValue::Type;

constexpr size_t kMaxText = size_t{256} << 10;  // of all annotations of an object
constexpr int kMaxGpus = 1024;
constexpr double kMaxGbps = 1e6;
constexpr size_t kMaxReason = 500;  // bytes of a message

SeenRail RailOf(JsonReader& reader, const JsonValue& value, const std::string& path) {
  SeenRail rail;
  if (const JsonValue* number = reader.Need(value, path, "rail", Type::kNumber)) {
    rail.rail = reader.Integer(*number, path + ".rail", 0, kHighestRail);
  }
  if (const JsonValue* device = reader.Need(value, path, "device", Type::kText)) {
    rail.device = reader.Name(*device, path + ".device");
  }
  const JsonValue* netdev = reader.Find(value, path, "netdev", Type::kText);
  if (netdev != nullptr && !netdev->text.empty()) {
    rail.netdev = reader.Name(*netdev, path + ".netdev");
  }
  const JsonValue* slaves = reader.Find(value, path, "slaves", Type::kList);
  for (size_t i = 0; slaves != nullptr && i < slaves->fields.size(); ++i) {
    rail.slaves.push_back(
        reader.Name(slaves->fields[i].value, absl::StrCat(path, ".slaves[", i, "]")));
  }
  if (const JsonValue* port = reader.Find(value, path, "port", Type::kNumber)) {
    rail.port = reader.Integer(*port, path + ".port", 0, kMaxIbPort);
  }
  const JsonValue* rate = reader.Find(value, path, "rateGbps", Type::kNumber);
  if (rate != nullptr &&
      (!absl::SimpleAtod(rate->text, &rail.gbps) || !(rail.gbps >= 0) || rail.gbps > kMaxGbps)) {
    reader.Fail(*rate, path + ".rateGbps", "must be a number of Gbit/s");
  }
  const JsonValue* layer = reader.Find(value, path, "linkLayer", Type::kText);
  if (layer != nullptr && !layer->text.empty()) {
    rail.link_layer = reader.Name(*layer, path + ".linkLayer");
  }
  if (const JsonValue* usable = reader.Need(value, path, "usable", Type::kBoolean)) {
    rail.usable = usable->text == "true";
  }
  const JsonValue* reason = reader.Find(value, path, "reason", Type::kText);
  if (reason != nullptr) rail.reason = PrintableText(reason->text, kMaxReason);
  // Older agents write only the gravest fault, as `reason`.
  const JsonValue* troubles = reader.Find(value, path, "troubles", Type::kList);
  std::vector<absl::string_view> texts;
  for (size_t i = 0; troubles != nullptr && i < troubles->fields.size(); ++i) {
    const std::string of_trouble = absl::StrCat(path, ".troubles[", i, "]");
    const JsonValue& trouble = troubles->fields[i].value;
    const JsonValue* text = reader.Need(trouble, of_trouble, "text", Type::kText);
    if (text != nullptr) texts.push_back(text->text);
  }
  if (!texts.empty()) rail.reason = PrintableText(absl::StrJoin(texts, "; "), kMaxReason);
  return rail;
}

}  // namespace

absl::StatusOr<NodeFacts> ReadNodeFacts(absl::string_view text, absl::string_view source) {
  if (text.size() > kMaxText) {
    return DocumentError(source, 0, "",
                         absl::StrCat("has ", text.size(), " bytes, more than ", kMaxText));
  }
  const absl::StatusOr<std::vector<JsonValue>> texts = ParseJsonTexts(text, source);
  if (!texts.ok()) return texts.status();
  if (texts->size() != 1) return DocumentError(source, 0, "", "must be one JSON object");
  const JsonValue& root = texts->front();
  JsonReader reader(source);
  NodeFacts facts;
  if (const JsonValue* version = reader.Need(root, "", "version", Type::kNumber)) {
    reader.Integer(*version, "version", 1, 1);
  }
  if (const JsonValue* rails = reader.Need(root, "", "rails", Type::kList)) {
    for (size_t i = 0; i < rails->fields.size(); ++i) {
      const std::string path = absl::StrCat("rails[", i, "]");
      facts.rails.push_back(RailOf(reader, rails->fields[i].value, path));
      const int number = facts.rails.back().rail;
      if (std::any_of(facts.rails.begin(), facts.rails.end() - 1,
                      [&](const SeenRail& other) { return other.rail == number; })) {
        reader.Fail(
            rails->fields[i].value, path + ".rail",
            absl::StrCat("rail ", number,
                         " is listed twice; correct `rails` in the node agent's configuration"));
      }
      if (!reader.status().ok()) return reader.status();
    }
  }
  if (const JsonValue* gpus = reader.Find(root, "", "gpus", Type::kList)) {
    facts.gpus = static_cast<int>(std::min<size_t>(gpus->fields.size(), kMaxGpus));
  }
  const JsonValue* direct = reader.Find(root, "", "gpuDirect", Type::kObject);
  if (direct != nullptr) {
    const JsonValue* trouble = reader.Find(*direct, "gpuDirect", "trouble", Type::kText);
    if (trouble != nullptr) facts.gpu_direct_trouble = PrintableText(trouble->text, kMaxReason);
  }
  if (!reader.status().ok()) return reader.status();
  std::sort(facts.rails.begin(), facts.rails.end(),
            [](const SeenRail& a, const SeenRail& b) { return a.rail < b.rail; });
  return facts;
}

std::vector<int> ReadRailsInUse(absl::string_view text) {
  std::set<int> rails;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int rail = 0;
    if (!absl::SimpleAtoi(part, &rail) || rail < 0 || rail > kHighestRail) return {};
    rails.insert(rail);
  }
  return {rails.begin(), rails.end()};
}

}  // namespace railhead::fabric
