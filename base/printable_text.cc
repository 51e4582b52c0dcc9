// SPDX-License-Identifier: Apache-2.0
#include "base/printable_text.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace railhead {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

// In order.
constexpr Range kUnfit[] = {
    {0x0000, 0x001f},    // C0
    {0x007f, 0x009f},    // DEL and C1
    {0x00ad, 0x00ad},    // soft hyphen
    {0x061c, 0x061c},    // Arabic letter mark
    {0x180e, 0x180e},    // Mongolian vowel separator
    {0x200b, 0x200b},    // zero-width space; joiners stay, as words of some scripts need them
    {0x200e, 0x200f},    // left-to-right and right-to-left marks
    {0x2028, 0x202e},    // line and paragraph separators; embeddings and overrides
    {0x2060, 0x206f},    // invisible operators, isolates, deprecated formats
    {0xfdd0, 0xfdef},    // noncharacters
    {0xfeff, 0xfeff},    // byte order mark
    {0xfff9, 0xfffb},    // interlinear annotation
    {0xe0000, 0xe0fff},  // tags and variation selectors that are not seen
};

bool IsUnfit(uint32_t point) {
  if ((point & 0xfffeU) == 0xfffeU) return true;  // the last two of each plane are noncharacters
  const auto* const range =
      std::lower_bound(std::begin(kUnfit), std::end(kUnfit), point,
                       [](const Range& a, uint32_t value) { return a.last < value; });
  return range != std::end(kUnfit) && range->first <= point;
}

// The bytes of the character at the beginning of `text`, and its code point; 0 bytes where it is
// not UTF-8: overlong, a surrogate, beyond U+10FFFF, or not complete.
size_t Decode(absl::string_view text, uint32_t& point) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    point = first;
    return 1;
  }
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  point = first & (0x7fU >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return 0;
    point = point << 6U | (byte(i) & 0x3fU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kLeast[size] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return 0;
  return size;
}

std::string Escaped(uint32_t point) {
  switch (point) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  if (point < 0x100) return absl::StrCat("\\x", absl::Hex(point, absl::kZeroPad2));
  if (point < 0x10000) return absl::StrCat("\\u", absl::Hex(point, absl::kZeroPad4));
  return absl::StrCat("\\U", absl::Hex(point, absl::kZeroPad8));
}

std::string Printable(absl::string_view text, size_t max_bytes, bool lines) {
  constexpr absl::string_view kCut = "...";
  std::string shown;
  size_t fits = 0;  // how much of it leaves room for kCut
  while (!text.empty()) {
    uint32_t point = 0;
    size_t size = Decode(text, point);
    const bool stays = size > 0 && (!IsUnfit(point) || (lines && point == '\n'));
    if (size == 0) {
      size = 1;
      point = static_cast<unsigned char>(text[0]);
    }
    if (stays) {
      shown.append(text.data(), size);
    } else {
      shown += Escaped(point);
    }
    if (shown.size() > max_bytes) {
      shown.resize(fits);
      shown.append(kCut.data(), kCut.size());
      return shown;
    }
    if (max_bytes - shown.size() >= kCut.size()) fits = shown.size();
    text.remove_prefix(size);
  }
  return shown;
}

}  // namespace

std::string PrintableText(absl::string_view text, size_t max_bytes) {
  return Printable(text, max_bytes, false);
}

std::string PrintableLines(absl::string_view text) { return Printable(text, kNoTextLimit, true); }

bool IsPrintableText(absl::string_view text) { return PrintableText(text) == text; }

}  // namespace railhead
