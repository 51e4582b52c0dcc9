// SPDX-License-Identifier: Apache-2.0
#include "fabric/pci_address.h"

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace railhead::fabric {
namespace {

// Parses `text`, which must be 1 to 8 hexadecimal digits.
std::optional<uint32_t> ParseHex(absl::string_view text) {
  uint32_t value = 0;
  for (const char c : text) {
    uint32_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<uint32_t>(c - 'a') + 10;
    } else {
      return std::nullopt;
    }
    value = value * 16 + digit;
  }
  return value;
}

}  // namespace

std::optional<PciAddress> ParsePciAddress(absl::string_view text) {
  // The tail ":bb:dd.f" has a fixed length; the part before it is the domain.
  constexpr size_t kTail = 8;
  if (text.size() < kTail + 4 || text.size() > kTail + 8) return std::nullopt;
  const absl::string_view domain = text.substr(0, text.size() - kTail);
  const absl::string_view tail = text.substr(text.size() - kTail);
  if (tail[0] != ':' || tail[3] != ':' || tail[6] != '.') return std::nullopt;
  const std::optional<uint32_t> d = ParseHex(domain);
  const std::optional<uint32_t> b = ParseHex(tail.substr(1, 2));
  const std::optional<uint32_t> v = ParseHex(tail.substr(4, 2));
  const std::optional<uint32_t> f = ParseHex(tail.substr(7, 1));
  if (!d || !b || !v || !f || *v > 0x1f || *f > 7) return std::nullopt;
  return PciAddress{*d, *b, *v, *f};
}

}  // namespace railhead::fabric
