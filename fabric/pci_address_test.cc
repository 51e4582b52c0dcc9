// SPDX-License-Identifier: Apache-2.0
#include "fabric/pci_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace railhead::fabric {
namespace {

TEST(PciAddress, ReadsWhatLinuxWrites) {
  EXPECT_EQ(ParsePciAddress("0000:18:00.0"), (PciAddress{0, 0x18, 0, 0}));
  EXPECT_EQ(ParsePciAddress("0001:ff:1f.7"), (PciAddress{1, 0xff, 0x1f, 7}));
  EXPECT_EQ(ParsePciAddress("10000:01:00.0"), (PciAddress{0x10000, 1, 0, 0}));
  EXPECT_EQ(ParsePciAddress("ffffffff:00:00.0"), (PciAddress{0xffffffff, 0, 0, 0}));
}

TEST(PciAddress, RefusesEverythingElse) {
  for (const std::string text :
       {"", "0000", "0000:18:00", "0000:18:00.8", "0000:18:20.0", "000:18:00.0", "0000:18:00.0 ",
        "0000:1g:00.0", "0000-18-00.0", "pci0000:00", "virtio2", "ABCD:00:00.0",
        "123456789:00:00.0", "mlx5_core.sf.2", "........:..:...", ":18:00.0"}) {
    EXPECT_EQ(ParsePciAddress(text), std::nullopt) << text;
  }
}

TEST(PciAddress, OrdersAsTheHardwareIs) {
  EXPECT_LT(ParsePciAddress("0000:09:00.0"), ParsePciAddress("0000:18:00.0"));
  EXPECT_LT(ParsePciAddress("0000:18:00.0"), ParsePciAddress("0000:18:00.1"));
  EXPECT_LT(ParsePciAddress("0000:ff:1f.7"), ParsePciAddress("0001:00:00.0"));
  EXPECT_LT(ParsePciAddress("ffff:00:00.0"), ParsePciAddress("10000:00:00.0"));
}

}  // namespace
}  // namespace railhead::fabric
