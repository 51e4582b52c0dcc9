// SPDX-License-Identifier: Apache-2.0
#include "cli/topology_svg.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/finding.h"
#include "cli/output/words.h"
#include "cli/svg_parts.h"
#include "cli/svg_text.h"
#include "cli/topology_summary.h"
#include "fabric/discovery/fusion.h"
#include "fabric/model/fabric_model.h"

namespace railhead::cli {
namespace {

using fabric::RailWire;

// All lengths are in pixels.
constexpr double kWidth = 1280;
constexpr double kMargin = 24;
constexpr double kGap = 14;
constexpr double kPad = 12;
constexpr double kRow = 22;
constexpr double kTile = 112;  // of a leaf that is folded
constexpr double kRail = 18;   // from rail to rail
constexpr double kName = 100;  // of a node
constexpr double kGpus = 88;
constexpr double kLetter = 5.2;  // a letter of a switch's name, aslant, upwards
constexpr size_t kMostDrawnNodes = 256;
constexpr size_t kMostFindings = 40;
constexpr size_t kMostDrawnSwitches = 6;
constexpr size_t kMostLetters = 16;
constexpr size_t kMostTitle = 32;

std::string Title(const std::string& level, const std::string& name) {
  return name == level ? name : absl::StrCat(level, " ", Shortened(name, kMostTitle));
}

class Drawing {
 public:
  explicit Drawing(const fabric::DiscoveredFabric& found)
      : found_(found),
        model_(found.model),
        fold_(model_.nodes.size() > kMostDrawnNodes),
        card_(std::max(260.0, 2 * kPad + kName + kRail * model_.rails + 16 + kGpus)) {}

  std::string Svg() {
    double y = kMargin + 18;
    const Summary all = Summarize(found_, 0, static_cast<int>(model_.nodes.size()));
    std::vector<std::string> parts = {fabric::TopologyName(model_.topology),
                                      Counted(model_.rails, "rail")};
    for (size_t level = 0; level < model_.levels.size(); ++level) {
      parts.push_back(
          Counted(static_cast<int>(model_.domains[level].size()), model_.levels[level]));
    }
    parts.push_back(SummaryText(all));
    body_ += SvgText(kMargin, y, "title", absl::StrCat("Fabric ", model_.name));
    body_ += SvgText(kMargin, y + 20, "sub", absl::StrJoin(parts, " · "));
    y += 36;
    body_ += SvgLegend(model_.rails, kMargin, y, kWidth);
    y = Domains(0, 0, static_cast<int>(model_.domains[0].size()), kMargin, y + 26,
                kWidth - 2 * kMargin);
    y = Findings(y + 20);
    return absl::StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kWidth,
                        "\" height=\"", y + kMargin, "\" viewBox=\"0 0 ", kWidth, " ", y + kMargin,
                        "\">\n<title>Fabric ", XmlText(model_.name), "</title>\n", SvgStyle(),
                        SvgBox(0, 0, kWidth, y + kMargin, "fill=\"#fff\""), body_, "</svg>\n");
  }

 private:
  bool Innermost(size_t level) const { return level + 1 == model_.levels.size(); }

  // Draws domains one below the other, and leaves side by side. Returns where they end.
  double Domains(size_t level, int first, int end, double x, double y, double width) {
    if (Innermost(level)) return Leaves(first, end, x, y, width);
    for (int i = first; i < end; ++i) {
      const auto index = static_cast<size_t>(i);
      const fabric::FabricDomain& domain = model_.domains[level][index];
      const NodeRange nodes = NodesOf(model_, level, index);
      const size_t before = body_.size();
      const std::string names = Switches(level, index);
      body_ += SvgText(x + kPad, y + 22, "domain", Title(model_.levels[level], domain.name));
      body_ += absl::StrCat(
          "<text x=\"", x + width - kPad, "\" y=\"", y + 22,
          "\" class=\"small\" text-anchor=\"end\">",
          XmlText(absl::StrCat(SummaryText(Summarize(found_, nodes.first, nodes.count)),
                               names.empty() ? "" : " · switches ", names)),
          "</text>\n");
      const double below = Domains(level + 1, domain.first, domain.first + domain.count, x + kPad,
                                   y + 34, width - 2 * kPad) +
                           kPad;
      body_.insert(before, SvgBox(x, y, width, below - y, "rx=\"8\" class=\"box\""));
      y = below + kGap;
    }
    return y - kGap;
  }

  std::string Switches(size_t level, size_t domain) const {
    if (found_.switches.empty()) return "";
    std::vector<std::string> names = found_.switches[level][domain];
    const size_t more = names.size() - std::min(names.size(), kMostDrawnSwitches);
    names.resize(names.size() - more);
    return absl::StrCat(absl::StrJoin(names, ", "),
                        more == 0 ? "" : absl::StrCat(" and ", more, " more"));
  }

  // Cards side by side, and below them a small tile for each leaf without anything to see.
  double Leaves(int first, int end, double x, double y, double width) {
    std::vector<size_t> cards;
    std::vector<size_t> tiles;
    for (int i = first; i < end; ++i) {
      const fabric::FabricDomain& leaf = model_.domains.back()[static_cast<size_t>(i)];
      const bool plain = fold_ && !Summarize(found_, leaf.first, leaf.count).Trouble();
      (plain ? tiles : cards).push_back(static_cast<size_t>(i));
    }
    double below = Grid(cards, x, y, width, card_, [this](size_t leaf, double at_x, double at_y) {
      return Leaf(leaf, at_x, at_y);
    });
    if (!cards.empty() && !tiles.empty()) below += kGap;
    return Grid(tiles, x, below, width, kTile,
                [this](size_t leaf, double at_x, double at_y) { return Tile(leaf, at_x, at_y); });
  }

  // `draw` returns where it ends, and so does this.
  static double Grid(const std::vector<size_t>& items, double x, double y, double width,
                     double item_width,
                     absl::FunctionRef<double(size_t item, double x, double y)> draw) {
    const auto columns =
        std::max<size_t>(1, static_cast<size_t>((width + kGap) / (item_width + kGap)));
    double below = y;
    double row = y;
    for (size_t i = 0; i < items.size(); ++i) {
      const size_t column = i % columns;
      if (column == 0) row = i == 0 ? y : below + kGap;
      below = std::max(below,
                       draw(items[i], x + static_cast<double>(column) * (item_width + kGap), row));
    }
    return below;
  }

  double Tile(size_t index, double x, double y) {
    const fabric::FabricDomain& leaf = model_.domains.back()[index];
    const Summary sum = Summarize(found_, leaf.first, leaf.count);
    body_ += absl::StrCat("<g><title>", XmlText(leaf.name), ": ", SummaryText(sum), "</title>\n");
    body_ += SvgBox(x, y, kTile, 30, "rx=\"4\" class=\"card\"");
    body_ += SvgText(x + 7, y + 14, "small", Shortened(leaf.name, 15));
    const double bar = kTile - 14;
    const double used = sum.gpus == 0 ? 0 : bar * sum.used_gpus / sum.gpus;
    body_ += SvgBox(x + 7, y + 19, bar, 6, "rx=\"2\" fill=\"#d5f0de\"");
    body_ += SvgBox(x + 7, y + 19, used, 6, "rx=\"2\" fill=\"#9fb3c8\"");
    body_ += "</g>\n";
    return y + 30;
  }

  double Leaf(size_t index, double x, double y) {
    const fabric::FabricDomain& leaf = model_.domains.back()[index];
    std::vector<size_t> rows;
    for (int i = leaf.first; i < leaf.first + leaf.count; ++i) {
      if (!fold_ || Summarize(found_, i, 1).Trouble()) rows.push_back(static_cast<size_t>(i));
    }
    const bool cables = !found_.switches.empty() && !rows.empty();
    const double top = y + 44 + (cables ? SwitchesHeight(index) : 4);
    const double height = top - y + static_cast<double>(rows.size()) * kRow +
                          (rows.size() < static_cast<size_t>(leaf.count) ? 20 : 6);
    body_ += SvgBox(x, y, card_, height, "rx=\"6\" class=\"card\"");
    body_ += SvgText(x + kPad, y + 20, "leaf", Title(model_.levels.back(), leaf.name));
    const Summary sum = Summarize(found_, leaf.first, leaf.count);
    body_ += SvgText(
        x + kPad, y + 36, "small",
        absl::StrCat(Counted(sum.nodes, "node"),
                     sum.gpus == 0 ? ""
                                   : absl::StrCat(", ", sum.gpus - sum.used_gpus, " of ", sum.gpus,
                                                  " GPUs free"),
                     sum.dead == 0 ? "" : absl::StrCat(", ", Counted(sum.dead, "dead rail"))));
    for (int rail = 0; rail < model_.rails && !rows.empty(); ++rail) {
      const double at = RailX(x, rail);
      const double bottom = top + static_cast<double>(rows.size()) * kRow - kRow / 2;
      body_ += SvgLine(at, top - (cables ? 10 : 0), at, bottom,
                       absl::StrCat(SvgStroke(rail, 3), " opacity=\"0.75\""));
      if (cables) SwitchName(index, rail, at, top - 14);
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      Node(rows[i], index, x, top + (static_cast<double>(i) + 0.5) * kRow);
    }
    if (rows.size() < static_cast<size_t>(leaf.count)) {
      body_ += SvgText(
          x + kPad, y + height - 8, "small",
          absl::StrCat(static_cast<size_t>(leaf.count) - rows.size(), " nodes without trouble"));
    }
    return y + height;
  }

  // Returns the height of the switch names above a leaf's nodes.
  double SwitchesHeight(size_t leaf) const {
    size_t longest = 0;
    for (const std::string& name : found_.switches.back()[leaf]) {
      longest = std::max(longest, std::min(name.size(), kMostLetters));
    }
    return 20 + kLetter * static_cast<double>(longest);
  }

  static double RailX(double x, int rail) { return x + kPad + kName + kRail * (rail + 0.5); }

  // Aslant, so that long names have room.
  void SwitchName(size_t leaf, int rail, double x, double y) {
    const std::string& name = found_.switches.back()[leaf][static_cast<size_t>(rail)];
    if (name.empty()) return;
    body_ += absl::StrCat("<text transform=\"translate(", x + 3, ",", y,
                          ") rotate(-62)\" class=\"switch\">",
                          XmlText(Shortened(name, kMostLetters)), "</text>\n");
  }

  void Node(size_t index, size_t leaf, double x, double y) {
    const fabric::FabricNode& node = model_.nodes[index];
    body_ += absl::StrCat("<g><title>", XmlText(node.name), node.unschedulable.empty() ? "" : ": ",
                          XmlText(node.unschedulable), "</title>",
                          SvgText(x + kPad, y + 4, node.unschedulable.empty() ? "node" : "off",
                                  Shortened(node.name, 15)),
                          "</g>\n");
    for (const RailWire& wire : found_.wires[index]) Nic(wire, leaf, x, y);
    const double width = std::min(10.5, kGpus / std::max(1, node.gpus));
    for (int gpu = 0; gpu < node.gpus; ++gpu) {
      body_ += SvgBox(RailX(x, model_.rails) + 6 + gpu * width, y - 5, std::max(0.5, width - 2), 10,
                      gpu < node.used_gpus ? "rx=\"2\" fill=\"#9fb3c8\""
                                           : "rx=\"2\" fill=\"#d5f0de\" stroke=\"#57ae7c\" "
                                             "stroke-width=\"0.7\"");
    }
  }

  void Nic(const RailWire& wire, size_t leaf, double x, double y) {
    const double at = RailX(x, wire.rail);
    body_ += absl::StrCat("<g><title>rail ", wire.rail, wire.nic.empty() ? "" : ": ",
                          XmlText(wire.nic), wire.at.empty() ? "" : " at ", XmlText(wire.at),
                          wire.port.empty() ? "" : " port ", XmlText(wire.port),
                          wire.gbps > 0 ? absl::StrCat(", ", wire.gbps, " Gbit/s") : "",
                          wire.dead ? ", dead" : "", "</title>\n");
    if (wire.miswired) {
      const std::vector<std::string>& right = found_.switches.back()[leaf];
      const auto there = std::find(right.begin(), right.end(), wire.at);
      if (there != right.end()) {
        const double to = RailX(x, static_cast<int>(there - right.begin()));
        body_ +=
            absl::StrCat("<path d=\"M", at, " ", y, " Q", (at + to) / 2, " ", y - 16, " ", to, " ",
                         y, "\" fill=\"none\" stroke=\"#e02424\" stroke-width=\"1.6\"/>\n");
      }
      body_ += SvgDot(at, y, Colour(wire.rail), wire.dead);
      body_ += SvgRing(at, y);
    } else {
      body_ += SvgDot(at, y, Colour(wire.rail), wire.dead);
    }
    body_ += "</g>\n";
  }

  double Findings(double y) {
    if (found_.findings.empty()) return y;
    body_ += SvgText(kMargin, y + 12, "domain", "Findings");
    y += 32;
    const size_t shown = std::min(found_.findings.size(), kMostFindings);
    for (size_t i = 0; i < shown; ++i) {
      const Finding& finding = found_.findings[i];
      body_ +=
          SvgText(kMargin, y, finding.severity == Severity::kFail ? "bad" : "small", finding.check);
      for (const std::string& line : Wrapped(FindingLine(finding), 150)) {
        body_ += SvgText(kMargin + 110, y, "finding", line);
        y += 17;
      }
      y += 4;
    }
    if (shown < found_.findings.size()) {
      body_ += SvgText(kMargin + 110, y, "small",
                       absl::StrCat("and ", found_.findings.size() - shown, " more"));
      y += 17;
    }
    return y;
  }

  const fabric::DiscoveredFabric& found_;
  const fabric::FabricModel& model_;
  const bool fold_;
  const double card_;
  std::string body_;
};

}  // namespace

std::string TopologySvg(const fabric::DiscoveredFabric& found) { return Drawing(found).Svg(); }

}  // namespace railhead::cli
