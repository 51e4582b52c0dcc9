// SPDX-License-Identifier: Apache-2.0
//
// Address of a PCI function in Linux' form domain:bus:device.function.
#ifndef RAILHEAD_FABRIC_PCI_ADDRESS_H_
#define RAILHEAD_FABRIC_PCI_ADDRESS_H_

#include <compare>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace railhead::fabric {

// Ordered by domain, bus, device, function.
struct PciAddress {
  uint32_t domain = 0;
  uint32_t bus = 0;
  uint32_t device = 0;
  uint32_t function = 0;

  auto operator<=>(const PciAddress&) const = default;  // NOLINT(modernize-use-nullptr): not one
};

// Parses "0000:18:00.0" (the domain may have up to eight digits: Intel VMD and Hyper-V use numbers
// above 0xffff). Nullopt for any other text.
std::optional<PciAddress> ParsePciAddress(absl::string_view text);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_PCI_ADDRESS_H_
