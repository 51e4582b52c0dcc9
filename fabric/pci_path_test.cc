// SPDX-License-Identifier: Apache-2.0
#include "fabric/pci_path.h"

#include <gtest/gtest.h>

namespace railhead::fabric {
namespace {

TEST(PciPathTest, ReadsPathsAndLinkTexts) {
  const PciPath expected{"pci0000:00", {"0000:00:01.0", "0000:01:00.0"}};
  EXPECT_EQ(ParsePciPath("/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"), expected);
  EXPECT_EQ(ParsePciPath("../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0"), expected);
}

TEST(PciPathTest, EndsAtTheFunction) {
  const PciPath expected{"pci0000:00", {"0000:00:03.0"}};
  EXPECT_EQ(ParsePciPath("/sys/devices/pci0000:00/0000:00:03.0/virtio1/net/eth0"), expected);
  // An address that comes again further down is no part of the way.
  EXPECT_EQ(ParsePciPath("/sys/devices/pci0000:00/0000:00:03.0/x/0000:09:00.0"), expected);
}

TEST(PciPathTest, AHostBridgeBelowAnotherBeginsAnew) {
  const PciPath vmd{"pci10000:e0", {"10000:e0:01.0", "10000:e1:00.0"}};
  EXPECT_EQ(ParsePciPath("/sys/devices/pci0000:e2/0000:e2:00.5/pci10000:e0/10000:e0:01.0/"
                         "10000:e1:00.0"),
            vmd);
  const PciPath hyper_v{"pcia1b2:00", {"a1b2:00:02.0"}};
  EXPECT_EQ(ParsePciPath("/sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/"
                         "47505500-0001-0000-3130-444531303244/pcia1b2:00/a1b2:00:02.0"),
            hyper_v);
}

TEST(PciPathTest, IsEmptyForAnythingElse) {
  for (const char* text :
       {"", "/", "/sys/devices/virtual/infiniband/rxe0", "/sys/devices/pci0000:00",
        "../../../0000:18:00.0", "pci:00/0000:00:01.0", "pcizz:00/0000:00:01.0"}) {
    EXPECT_EQ(ParsePciPath(text), PciPath{}) << text;
  }
}

}  // namespace
}  // namespace railhead::fabric
