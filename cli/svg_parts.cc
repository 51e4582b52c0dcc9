// SPDX-License-Identifier: Apache-2.0
#include "cli/svg_parts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/svg_text.h"

namespace railhead::cli {

std::string SvgStyle() {
  return "<style>text{font-family:'DejaVu Sans','Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2933}"
         ".title{font-size:20px;font-weight:bold}.sub{font-size:12.5px;fill:#52606d}"
         ".domain{font-size:14px;font-weight:bold}.leaf{font-size:13px;font-weight:bold}"
         ".small{font-size:10.5px;fill:#52606d}.node{font-size:11.5px}.off{font-size:11.5px;fill:#"
         "9aa5b1}"
         ".switch{font-size:10px}.bad{font-size:12px;fill:#c81e1e;font-weight:bold}"
         ".finding{font-size:12px}.box{fill:#f5f7fa;stroke:#cbd2d9}.card{fill:#fff;stroke:#cbd2d9}"
         "</style>\n";
}

std::string Colour(int rail) {
  constexpr std::array<const char*, 8> kColours = {"#3b7dd8", "#f0922b", "#2fa36b", "#a05fc0",
                                                   "#23b1c4", "#d9b310", "#8c6d5a", "#e377a8"};
  return kColours[static_cast<size_t>(rail) % kColours.size()];
}

std::string SvgLine(double x1, double y1, double x2, double y2, absl::string_view look) {
  return absl::StrCat("<line x1=\"", x1, "\" y1=\"", y1, "\" x2=\"", x2, "\" y2=\"", y2, "\" ",
                      look, "/>\n");
}

std::string SvgBox(double x, double y, double width, double height, absl::string_view look) {
  return absl::StrCat("<rect x=\"", x, "\" y=\"", y, "\" width=\"", width, "\" height=\"", height,
                      "\" ", look, "/>\n");
}

std::string SvgDot(double x, double y, absl::string_view colour, bool dead) {
  std::string dot =
      absl::StrCat("<circle cx=\"", x, "\" cy=\"", y, "\" r=\"5\" fill=\"", dead ? "#fff" : colour,
                   "\" stroke=\"", dead ? "#e02424" : "#fff", "\" stroke-width=\"1.5\"/>\n");
  if (!dead) return dot;
  const absl::string_view look = "stroke=\"#e02424\" stroke-width=\"1.8\"";
  return absl::StrCat(dot, SvgLine(x - 3, y - 3, x + 3, y + 3, look),
                      SvgLine(x - 3, y + 3, x + 3, y - 3, look));
}

std::string SvgRing(double x, double y) {
  return absl::StrCat("<circle cx=\"", x, "\" cy=\"", y,
                      "\" r=\"7\" fill=\"none\" stroke=\"#e02424\" stroke-width=\"2\"/>\n");
}

std::string SvgStroke(int rail, int width) {
  return absl::StrCat("stroke=\"", Colour(rail), "\" stroke-width=\"", width,
                      "\" stroke-linecap=\"round\"");
}

std::string SvgLegend(int rails, double x, double y, double end) {
  std::string body;
  for (int rail = 0; rail < std::min(rails, 16); ++rail) {
    body += SvgLine(x, y, x + 18, y, SvgStroke(rail, 3));
    body += SvgText(x + 22, y + 4, "small", absl::StrCat("rail ", rail));
    x += 66;
    if (x > end - 420) break;
  }
  body += SvgDot(x + 10, y, Colour(0), true);
  body += SvgText(x + 20, y + 4, "small", "dead");
  body += SvgRing(x + 62, y);
  body += SvgText(x + 72, y + 4, "small", "wrong switch");
  body += SvgBox(x + 156, y - 5, 10, 10, "rx=\"2\" fill=\"#9fb3c8\"");
  body += SvgText(x + 170, y + 4, "small", "GPU in use");
  body += SvgBox(x + 240, y - 5, 10, 10, "rx=\"2\" fill=\"#d5f0de\" stroke=\"#57ae7c\"");
  body += SvgText(x + 254, y + 4, "small", "free");
  return body;
}

}  // namespace railhead::cli
