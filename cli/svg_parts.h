// SPDX-License-Identifier: Apache-2.0
//
// Drawing primitives for SVG pictures of fabrics. Lengths in pixels.
#ifndef RAILHEAD_CLI_SVG_PARTS_H_
#define RAILHEAD_CLI_SVG_PARTS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace railhead::cli {

// Returns the style sheet: classes of texts and boxes.
std::string SvgStyle();

// Returns the colour of a rail; never red, which marks faults.
std::string Colour(int rail);

// Returns the attributes of a line in the rail's colour.
std::string SvgStroke(int rail, int width);

// `look`: further attributes.
std::string SvgLine(double x1, double y1, double x2, double y2, absl::string_view look);
std::string SvgBox(double x, double y, double width, double height, absl::string_view look);

// Draw a NIC, crossed out if dead, and the ring around one with a wrong cable.
std::string SvgDot(double x, double y, absl::string_view colour, bool dead);
std::string SvgRing(double x, double y);

// Draws the legend in a row from `x` on, with as many rails as fit before `end`.
std::string SvgLegend(int rails, double x, double y, double end);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_SVG_PARTS_H_
