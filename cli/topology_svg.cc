// SPDX-License-Identifier: Apache-2.0
#include "cli/topology_svg.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "cli/svg_text.h"
#include "cli/topology_summary.h"
#include "cli/words.h"
#include "fabric/discovery/finding.h"
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
constexpr double kRail = 18;   // from rail to rail
constexpr double kName = 100;  // of a node
constexpr double kGpus = 88;
constexpr double kLetter = 5.2;  // a letter of a switch's name, aslant, upwards
constexpr size_t kMostNodes = 256;
constexpr size_t kMostFindings = 40;
constexpr size_t kMostSwitches = 6;
constexpr size_t kMostLetters = 16;
constexpr size_t kMostTitle = 32;

// Red is kept for trouble.
constexpr std::array<const char*, 8> kColours = {"#3b7dd8", "#f0922b", "#2fa36b", "#a05fc0",
                                                 "#23b1c4", "#d9b310", "#8c6d5a", "#e377a8"};

constexpr char kStyle[] =
    "<style>text{font-family:'DejaVu Sans','Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2933}"
    ".title{font-size:20px;font-weight:bold}.sub{font-size:12.5px;fill:#52606d}"
    ".domain{font-size:14px;font-weight:bold}.leaf{font-size:13px;font-weight:bold}"
    ".small{font-size:10.5px;fill:#52606d}.node{font-size:11.5px}.off{font-size:11.5px;fill:#"
    "9aa5b1}"
    ".switch{font-size:10px}.bad{font-size:12px;fill:#c81e1e;font-weight:bold}"
    ".finding{font-size:12px}.box{fill:#f5f7fa;stroke:#cbd2d9}.card{fill:#fff;stroke:#cbd2d9}"
    "</style>\n";

std::string Colour(int rail) { return kColours[static_cast<size_t>(rail) % kColours.size()]; }

std::string Line(double x1, double y1, double x2, double y2, absl::string_view look) {
  return absl::StrCat("<line x1=\"", x1, "\" y1=\"", y1, "\" x2=\"", x2, "\" y2=\"", y2, "\" ",
                      look, "/>\n");
}

std::string Box(double x, double y, double width, double height, absl::string_view look) {
  return absl::StrCat("<rect x=\"", x, "\" y=\"", y, "\" width=\"", width, "\" height=\"", height,
                      "\" ", look, "/>\n");
}

std::string Title(const std::string& level, const std::string& name) {
  return name == level ? name : absl::StrCat(level, " ", Shortened(name, kMostTitle));
}

class Drawing {
 public:
  explicit Drawing(const fabric::DiscoveredFabric& found)
      : found_(found),
        model_(found.model),
        fold_(model_.nodes.size() > kMostNodes),
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
    Legend(y);
    y = Domains(0, 0, static_cast<int>(model_.domains[0].size()), kMargin, y + 26,
                kWidth - 2 * kMargin);
    y = Findings(y + 20);
    return absl::StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kWidth,
                        "\" height=\"", y + kMargin, "\" viewBox=\"0 0 ", kWidth, " ", y + kMargin,
                        "\">\n<title>Fabric ", XmlText(model_.name), "</title>\n", kStyle,
                        Box(0, 0, kWidth, y + kMargin, "fill=\"#fff\""), body_, "</svg>\n");
  }

 private:
  bool Innermost(size_t level) const { return level + 1 == model_.levels.size(); }

  void Legend(double y) {
    double x = kMargin;
    for (int rail = 0; rail < std::min(model_.rails, 16); ++rail) {
      body_ += Line(x, y, x + 18, y, Stroke(rail, 3));
      body_ += SvgText(x + 22, y + 4, "small", absl::StrCat("rail ", rail));
      x += 66;
      if (x > kWidth - 420) break;
    }
    Dot(x + 10, y, {0, "", "", "", 0, true, false});
    body_ += SvgText(x + 20, y + 4, "small", "dead");
    Ring(x + 62, y);
    body_ += SvgText(x + 72, y + 4, "small", "wrong switch");
    body_ += Box(x + 156, y - 5, 10, 10, "rx=\"2\" fill=\"#9fb3c8\"");
    body_ += SvgText(x + 170, y + 4, "small", "GPU in use");
    body_ += Box(x + 240, y - 5, 10, 10, "rx=\"2\" fill=\"#d5f0de\" stroke=\"#57ae7c\"");
    body_ += SvgText(x + 254, y + 4, "small", "free");
  }

  static std::string Stroke(int rail, int width) {
    return absl::StrCat("stroke=\"", Colour(rail), "\" stroke-width=\"", width,
                        "\" stroke-linecap=\"round\"");
  }

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
      body_.insert(before, Box(x, y, width, below - y, "rx=\"8\" class=\"box\""));
      y = below + kGap;
    }
    return y - kGap;
  }

  std::string Switches(size_t level, size_t domain) const {
    if (found_.switches.empty()) return "";
    std::vector<std::string> names = found_.switches[level][domain];
    const size_t more = names.size() - std::min(names.size(), kMostSwitches);
    names.resize(names.size() - more);
    return absl::StrCat(absl::StrJoin(names, ", "),
                        more == 0 ? "" : absl::StrCat(" and ", more, " more"));
  }

  double Leaves(int first, int end, double x, double y, double width) {
    const auto columns = std::max(1, static_cast<int>((width + kGap) / (card_ + kGap)));
    double below = y;
    double row = y;
    for (int i = first; i < end; ++i) {
      const int column = (i - first) % columns;
      if (column == 0) row = i == first ? y : below + kGap;
      below = std::max(below, Leaf(static_cast<size_t>(i), x + column * (card_ + kGap), row));
    }
    return below;
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
    body_ += Box(x, y, card_, height, "rx=\"6\" class=\"card\"");
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
      body_ += Line(at, top - (cables ? 10 : 0), at, bottom,
                    absl::StrCat(Stroke(rail, 3), " opacity=\"0.75\""));
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

  // Of the names above the nodes of a leaf.
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
      body_ += Box(RailX(x, model_.rails) + 6 + gpu * width, y - 5, width - 2, 10,
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
      Dot(at, y, wire);
      Ring(at, y);
    } else {
      Dot(at, y, wire);
    }
    body_ += "</g>\n";
  }

  void Dot(double x, double y, const RailWire& wire) {
    body_ += absl::StrCat("<circle cx=\"", x, "\" cy=\"", y, "\" r=\"5\" fill=\"",
                          wire.dead ? "#fff" : Colour(wire.rail), "\" stroke=\"",
                          wire.dead ? "#e02424" : "#fff", "\" stroke-width=\"1.5\"/>\n");
    if (!wire.dead) return;
    const absl::string_view look = "stroke=\"#e02424\" stroke-width=\"1.8\"";
    body_ += Line(x - 3, y - 3, x + 3, y + 3, look);
    body_ += Line(x - 3, y + 3, x + 3, y - 3, look);
  }

  void Ring(double x, double y) {
    body_ += absl::StrCat("<circle cx=\"", x, "\" cy=\"", y,
                          "\" r=\"7\" fill=\"none\" stroke=\"#e02424\" stroke-width=\"2\"/>\n");
  }

  double Findings(double y) {
    if (found_.findings.empty()) return y;
    body_ += SvgText(kMargin, y + 12, "domain", "Findings");
    y += 32;
    const size_t shown = std::min(found_.findings.size(), kMostFindings);
    for (size_t i = 0; i < shown; ++i) {
      const fabric::Finding& finding = found_.findings[i];
      body_ +=
          SvgText(kMargin, y, finding.trouble ? "bad" : "small", fabric::FindingName(finding.kind));
      for (const std::string& line : Wrapped(finding.message, 150)) {
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
