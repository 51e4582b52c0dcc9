// SPDX-License-Identifier: Apache-2.0
//
// What a picture of a fabric is drawn with. Lengths are in pixels.
#ifndef RAILHEAD_CLI_SVG_PARTS_H_
#define RAILHEAD_CLI_SVG_PARTS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace railhead::cli {

// The classes of texts and boxes.
std::string SvgStyle();

// Of a rail; red is kept for trouble.
std::string Colour(int rail);

// The attributes of a line of that colour.
std::string SvgStroke(int rail, int width);

// `look` are further attributes.
std::string SvgLine(double x1, double y1, double x2, double y2, absl::string_view look);
std::string SvgBox(double x, double y, double width, double height, absl::string_view look);

// A NIC: crossed where it is dead; and the ring round one whose cable is wrong.
std::string SvgDot(double x, double y, absl::string_view colour, bool dead);
std::string SvgRing(double x, double y);

// What the signs mean, in a row from `x` on; of many rails as many as there is room for up to
// `end`.
std::string SvgLegend(int rails, double x, double y, double end);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_SVG_PARTS_H_
