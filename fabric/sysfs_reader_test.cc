// SPDX-License-Identifier: Apache-2.0
#include "fabric/sysfs_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "fabric/gpu_uuids.h"
#include "fabric/inventory.h"
#include "fabric/inventory_json.h"
#include "fabric/root_files.h"
#include "fabric/testing/machines.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

testing::FakeHca Rxe(int n) {
  testing::FakeHca rxe;
  rxe.name = absl::StrCat("rxe", n);
  rxe.rate = "2.5 Gb/sec (1X SDR)";
  rxe.link_layer = "Ethernet";
  rxe.uverbs = n;
  rxe.pci = absl::StrCat("0000:00:0", 3 + n, ".0");
  rxe.numa_node = "-1";
  rxe.netdev = absl::StrCat("eth", 1 + n);
  return rxe;
}

testing::FakeHca Mlx(int n) {
  testing::FakeHca mlx;
  mlx.name = absl::StrCat("mlx5_", n);
  mlx.uverbs = n;
  mlx.pci = absl::StrCat("0000:1", 8 + n, ":00.0");
  mlx.netdev = absl::StrCat("ibp", 24 + n, "s0");
  return mlx;
}

class SysfsReaderTest : public ::testing::Test {
 protected:
  NodeInventory Read() {
    absl::StatusOr<NodeInventory> inventory = ReadInventory(tree_.root());
    EXPECT_TRUE(inventory.ok()) << inventory.status();
    return inventory.value_or(NodeInventory{});
  }

  testing::SysfsTree tree_;
};

TEST_F(SysfsReaderTest, ReadsAPairOfRxeDevices) {
  tree_.AddRxe(Rxe(1));
  tree_.AddRxe(Rxe(0));
  tree_.Write("/dev/infiniband/rdma_cm", "");
  const NodeInventory inventory = Read();
  EXPECT_TRUE(inventory.rdma_cm);
  ASSERT_EQ(inventory.hcas.size(), 2u);
  Hca expected;
  expected.name = "rxe0";
  expected.pci_address = "0000:00:03.0";
  expected.path = {"pci0000:00", {"0000:00:03.0"}};
  expected.numa_node = -1;
  expected.netdev = "eth1";
  expected.ports = {HcaPort{1, "ACTIVE", "Ethernet", 2.5}};
  expected.rail = 0;
  expected.char_devices = {"/dev/infiniband/uverbs0"};
  expected.part = "soft";
  expected.role = HcaRole::kSoftware;
  expected.interface_here = true;
  EXPECT_EQ(inventory.hcas[0], expected);
  EXPECT_EQ(inventory.hcas[1].name, "rxe1");
  EXPECT_EQ(inventory.hcas[1].pci_address, "0000:00:04.0");
  EXPECT_EQ(inventory.hcas[1].rail, 1);
}

TEST_F(SysfsReaderTest, AdviceFitsWhatIsWrongWithThePort) {
  testing::FakeHca hca;
  hca.name = "mlx5_0";
  hca.pci = "0000:01:00.0";
  hca.netdev = "eth0";
  hca.state = "2: INIT";
  tree_.AddHca(hca);
  EXPECT_THAT(Read().hcas[0].health.reason(), HasSubstr("subnet manager"));
  EXPECT_THAT(Read().hcas[0].health.reason(), Not(HasSubstr("cable")));
  tree_.SetState("mlx5_0", "1: DOWN");
  EXPECT_THAT(Read().hcas[0].health.reason(), HasSubstr("check the cable"));
  tree_.Write("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
  tree_.Write("/sys/class/net/eth0/flags", "0x1003\n");
  EXPECT_THAT(Read().hcas[0].health.reason(), HasSubstr("check the cable"));
  tree_.Write("/sys/class/net/eth0/flags", "0x1002\n");
  EXPECT_THAT(Read().hcas[0].health.reason(), HasSubstr("ip link set eth0 up"));
}

TEST_F(SysfsReaderTest, TellsVirtualFunctionsAndSubfunctions) {
  testing::FakeHca physical;
  physical.name = "mlx5_0";
  physical.pci = "0000:01:00.0";
  testing::FakeHca virtual_function = physical;
  virtual_function.name = "mlx5_1";
  virtual_function.pci = "0000:01:00.1";
  tree_.AddHca(physical);
  virtual_function.uverbs = 1;
  tree_.AddHca(virtual_function);
  tree_.Link("/sys/bus/pci/devices/0000:01:00.1/physfn", "../0000:01:00.0");
  EXPECT_TRUE(Read().hcas[1].orphan) << "its PF is not on the bus";
  EXPECT_THAT(Read().hcas[1].health.reason(), HasSubstr("virtual function of 0000:01:00.0"));
  tree_.MakeFolder("/sys/bus/pci/devices/0000:01:00.0");
  const std::string sf = "/sys/devices/pci0000:00/0000:01:00.0/mlx5_core.sf.4";
  tree_.Write(sf + "/sfnum", "88\n");
  tree_.Write(sf + "/infiniband/mlx5_2/ports/1/state", "4: ACTIVE\n");
  tree_.Link(sf + "/infiniband/mlx5_2/device", "../../../mlx5_core.sf.4");
  tree_.Link("/sys/class/infiniband/mlx5_2",
             "../../devices/pci0000:00/0000:01:00.0/"
             "mlx5_core.sf.4/infiniband/mlx5_2");
  std::map<std::string, Hca> by_name;
  for (const Hca& hca : Read().hcas) by_name[hca.name] = hca;
  EXPECT_EQ(by_name["mlx5_0"].physical_function + by_name["mlx5_0"].part, "");
  EXPECT_EQ(by_name["mlx5_1"].physical_function, "0000:01:00.0");
  EXPECT_EQ(by_name["mlx5_2"].pci_address, "0000:01:00.0");
  EXPECT_EQ(by_name["mlx5_2"].part, "sf88");
  EXPECT_FALSE(by_name["mlx5_1"].orphan);
  EXPECT_TRUE(by_name["mlx5_0"].health.usable()) << by_name["mlx5_0"].health.reason();
}

// In exclusive mode it is seen in its pod alone; its device node stays in /dev.
TEST_F(SysfsReaderTest, TellsTheDeviceNodesOfWhatIsInAnotherNamespace) {
  tree_.AddHca(Mlx(0));
  tree_.AddHca(Mlx(1));
  EXPECT_TRUE(Read().moved.empty());
  tree_.Remove("/sys/class/infiniband/mlx5_1");
  EXPECT_THAT(Read().moved,
              ElementsAre(::testing::Pair("mlx5_1", ElementsAre("/dev/infiniband/uverbs1"))));
}

// siw names its interface nowhere: its GID is the interface's Ethernet address.
TEST_F(SysfsReaderTest, ReadsAnIwarpDevice) {
  testing::FakeHca siw = Rxe(0);
  siw.name = "siw0";
  tree_.AddRxe(Rxe(1));
  tree_.AddRxe(siw);
  const std::string folder = "/sys/devices/virtual/infiniband/siw0";
  tree_.Write(folder + "/parent", "");
  tree_.Write(folder + "/node_type", "4: RNIC\n");
  tree_.Write(folder + "/ports/1/gids/0", "5254:0000:0101:0000:0000:0000:0000:0000\n");
  tree_.Write("/sys/class/net/eth1/address", "52:54:00:00:01:01\n");
  tree_.Write("/sys/class/net/eth2/address", "52:54:00:00:02:01\n");
  const NodeInventory inventory = Read();
  ASSERT_EQ(inventory.hcas.size(), 2u);
  EXPECT_EQ(inventory.hcas[0].name, "siw0");
  EXPECT_EQ(inventory.hcas[0].netdev, "eth1");
  EXPECT_EQ(inventory.hcas[0].pci_address, "0000:00:03.0");
  EXPECT_TRUE(inventory.hcas[0].health.usable()) << inventory.hcas[0].health.reason();
  tree_.Write("/sys/class/net/eth1/address", "52:54:00:00:09:01\n");
  EXPECT_EQ(Read().hcas[1].netdev, "");
}

TEST_F(SysfsReaderTest, ABondHasTheInterfacesOfItsCables) {
  tree_.AddRxe(Rxe(0));
  EXPECT_TRUE(Read().hcas[0].slaves.empty());
  tree_.Write("/sys/class/net/eth1/bonding/slaves", "ens1f0np0 ../ens1 ens1f1np1\n");
  EXPECT_EQ(Read().hcas[0].slaves, (std::vector<std::string>{"ens1f0np0", "ens1f1np1"}));
}

TEST_F(SysfsReaderTest, ReadsAPciDevice) {
  tree_.AddHca(Mlx(0));
  const NodeInventory inventory = Read();
  EXPECT_FALSE(inventory.rdma_cm);
  Hca expected;
  expected.name = "mlx5_0";
  expected.pci_address = "0000:18:00.0";
  expected.path = {"pci0000:00", {"0000:18:00.0"}};
  expected.numa_node = 0;
  expected.netdev = "ibp24s0";
  expected.ports = {HcaPort{1, "ACTIVE", "InfiniBand", 400}};
  expected.rail = 0;
  expected.char_devices = {"/dev/infiniband/uverbs0"};
  EXPECT_THAT(inventory.hcas, ElementsAre(expected));
}

TEST_F(SysfsReaderTest, ReadsWhatSelectorsLookAt) {
  testing::Build(testing::Machines()[1], tree_);
  const NodeInventory inventory = Read();
  ASSERT_FALSE(inventory.hcas.empty());
  EXPECT_EQ(inventory.hcas[0].vendor, "15b3");
  EXPECT_EQ(inventory.hcas[0].device, "1021");
  EXPECT_EQ(inventory.hcas[0].driver, "mlx5_core");
}

TEST_F(SysfsReaderTest, AVirtualFunctionOfAGpuIsNoGpu) {
  for (const char* address : {"0000:41:00.0", "0000:41:00.4"}) {
    const std::string gpu = absl::StrCat("/sys/devices/pci0000:40/", address);
    tree_.Write(gpu + "/class", "0x030200\n");
    tree_.Write(gpu + "/vendor", "0x10de\n");
    tree_.Link(absl::StrCat("/sys/bus/pci/devices/", address), "../../../.." + gpu);
  }
  EXPECT_EQ(Read().gpus.size(), 2U);
  tree_.Link("/sys/devices/pci0000:40/0000:41:00.4/physfn", "../0000:41:00.0");
  ASSERT_EQ(Read().gpus.size(), 1U);
  EXPECT_EQ(Read().gpus[0].pci_address, "0000:41:00.0");
}

TEST_F(SysfsReaderTest, ReadsTheUuidsOfNvidiaGpus) {
  const RootFiles files = RootFiles::Open(tree_.root()).value();
  EXPECT_TRUE(ReadGpuUuids(files).empty());
  const std::string folder = "/proc/driver/nvidia/gpus";
  tree_.Write(folder + "/0000:1b:00.0/information",
              "Model: \t\t NVIDIA H100\nIRQ:   \t\t 17\nGPU UUID: \t GPU-1-2\nVideo BIOS: ??\n");
  tree_.Write(folder + "/0000:43:00.0/information", "GPU UUID: \n\x01");
  tree_.Write(folder + "/nonsense/information", "GPU UUID: GPU-3\n");
  EXPECT_THAT(ReadGpuUuids(files), ElementsAre(::testing::Pair("GPU-1-2", "0000:1b:00.0")));
}

// Both of these have ACTIVE ports on a ConnectX-8.
TEST_F(SysfsReaderTest, ASideOfAnotherDeviceIsNoRail) {
  int uverbs = 0;
  for (const char* name : {"mlx5_0", "mlx5_0_dma", "smi1", "mlx5_1", "my_dma", "smile"}) {
    testing::FakeHca hca = Mlx(0);
    hca.name = name;
    hca.uverbs = uverbs++;
    tree_.AddHca(hca);
  }
  const NodeInventory inventory = Read();
  std::vector<std::string> rails;
  for (const Hca& hca : inventory.hcas) {
    if (hca.offered) rails.push_back(absl::StrCat(hca.rail, " ", hca.name));
    EXPECT_EQ(hca.health.usable(), hca.offered) << hca.name << ": " << hca.health.reason();
    EXPECT_EQ(hca.rail >= 0, hca.offered);
  }
  EXPECT_THAT(rails, ElementsAre("0 mlx5_0", "1 mlx5_1", "2 my_dma", "3 smile"));
}

TEST_F(SysfsReaderTest, FindsPciAndNumaWhereTheLinksTargetWasNotCaptured) {
  testing::FakeHca mlx = Mlx(0);
  tree_.Write("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
  tree_.Link("/sys/class/infiniband/mlx5_0/device", "../../../0000:18:00.0");
  tree_.Write("/sys/bus/pci/devices/0000:18:00.0/numa_node", "1\n");
  const NodeInventory inventory = Read();
  ASSERT_EQ(inventory.hcas.size(), 1u);
  EXPECT_EQ(inventory.hcas[0].pci_address, "0000:18:00.0");
  EXPECT_EQ(inventory.hcas[0].numa_node, 1);
}

TEST_F(SysfsReaderTest, AnHcaThatHangsIsAtItsPlaceAndWithheld) {
  testing::FakeHca pci;
  pci.name = "mlx5_0";
  pci.pci = "0000:18:00.0";
  pci.uverbs = 1;
  tree_.AddHca(pci);
  testing::FakeHca rxe;
  rxe.name = "rxe0";
  rxe.pci = "0000:00:03.0";
  rxe.netdev = "eth1";
  rxe.uverbs = 0;
  tree_.AddRxe(rxe);
  const NodeInventory before = ReadInventory(tree_.root()).value();
  std::string read;
  const auto look = [&](const std::map<std::string, Hca>& hanging) {
    read.clear();
    return ReadInventory(
               tree_.root(), DefaultGpuVendors(), nullptr,
               [&read](const std::string& name) { read += name + ","; }, hanging)
        .value();
  };
  // Never read before.
  const NodeInventory unknown = look({{"mlx5_0", {}}, {"rxe0", {}}});
  EXPECT_EQ(read, ",,,");
  ASSERT_EQ(unknown.hcas.size(), before.hcas.size());
  for (size_t i = 0; i < before.hcas.size(); ++i) {
    const Hca& hca = unknown.hcas[i];
    EXPECT_EQ(hca.name, before.hcas[i].name);
    EXPECT_EQ(hca.rail, before.hcas[i].rail);
    EXPECT_EQ(hca.role, before.hcas[i].role);
    EXPECT_EQ(hca.pci_address, before.hcas[i].pci_address);
    EXPECT_EQ(hca.part, before.hcas[i].part);
    EXPECT_TRUE(hca.health.Has(Stage::kHang));
    EXPECT_FALSE(hca.health.usable());
    EXPECT_THAT(hca.health.reason(), HasSubstr("does not end"));
    EXPECT_THAT(hca.health.reason(), Not(HasSubstr("no port")));
  }
  // If it is the same HCA as before, its earlier state is kept.
  const NodeInventory known = look({{"rxe0", before.hcas[0]}});
  EXPECT_EQ(read, "mlx5_0,,,");
  EXPECT_EQ(known.hcas[0].ports, before.hcas[0].ports);
  EXPECT_FALSE(known.hcas[0].health.usable());
  EXPECT_TRUE(known.hcas[1].health.usable());
  EXPECT_EQ(look({{"rxe0", before.hcas[1]}}).hcas[0].ports.size(), 0U);
}

// Its driver is unloaded, it gets another name, or a CNI plugin moves it into a pod.
TEST_F(SysfsReaderTest, AnHcaThatGoesWhileItIsReadIsNoOtherOne) {
  for (int n = 0; n < 3; ++n) tree_.AddHca(Mlx(n));
  const auto read = [this](const char* goes) {
    return ReadInventory(tree_.root(), DefaultGpuVendors(), nullptr,
                         [&](const std::string& name) {
                           if (name == goes) {
                             tree_.Remove(absl::StrCat("/sys/class/infiniband/", name));
                           }
                         })
        .value();
  };
  const NodeInventory inventory = read("mlx5_1");
  ASSERT_EQ(inventory.hcas.size(), 2U);
  EXPECT_EQ(inventory.hcas[0].name, "mlx5_0");
  EXPECT_EQ(inventory.hcas[1].name, "mlx5_2");
  EXPECT_EQ(inventory.hcas[1].rail, 1);
  EXPECT_THAT(inventory.moved.at("mlx5_1"), ElementsAre("/dev/infiniband/uverbs1"));
  tree_.RemoveHca(Mlx(1));
  EXPECT_EQ(read("mlx5_2").hcas.size(), 1U);
}

TEST_F(SysfsReaderTest, ATreeThatGoesWhileItIsReadIsAnError) {
  for (int n = 0; n < 2; ++n) tree_.AddHca(Mlx(n));
  const absl::Status status =
      ReadInventory(tree_.root(), DefaultGpuVendors(), nullptr, [this](const std::string& name) {
        if (name == "mlx5_1") tree_.Remove("/sys");
      }).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("has no sys directory"));
}

TEST_F(SysfsReaderTest, NeedsNeitherInterfaceNorPci) {
  testing::FakeHca bare = Rxe(0);
  bare.netdev = "";
  bare.pci = "";
  tree_.AddRxe(bare);
  const NodeInventory inventory = Read();
  ASSERT_EQ(inventory.hcas.size(), 1u);
  EXPECT_TRUE(inventory.hcas[0].health.usable()) << inventory.hcas[0].health.reason();
  EXPECT_EQ(inventory.hcas[0].pci_address, "");
  EXPECT_EQ(inventory.hcas[0].netdev, "");
}

TEST_F(SysfsReaderTest, PicksTheInterfaceOfTheActivePort) {
  tree_.AddHca(Mlx(0));
  const std::string function = "/sys/devices/pci0000:00/0000:18:00.0";
  tree_.SetState("mlx5_0", "1: DOWN");
  tree_.Write(function + "/infiniband/mlx5_0/ports/2/state", "4: ACTIVE\n");
  tree_.Write(function + "/net/ibp24s0/dev_port", "0\n");
  tree_.Write(function + "/net/ibp24s1/dev_port", "1\n");
  const NodeInventory inventory = Read();
  EXPECT_TRUE(inventory.hcas[0].health.usable()) << inventory.hcas[0].health.reason();
  EXPECT_EQ(inventory.hcas[0].netdev, "ibp24s1");
  EXPECT_EQ(DataPort(inventory.hcas[0])->port, 2);
  // A RoCE port names its interface itself.
  tree_.Write(function + "/infiniband/mlx5_0/ports/2/gid_attrs/ndevs/0", "eth9\n");
  EXPECT_EQ(Read().hcas[0].netdev, "eth9");
}

TEST_F(SysfsReaderTest, PortDownIsListedWithTheReasonAndKeepsItsRail) {
  tree_.AddHca(Mlx(0));
  tree_.AddHca(Mlx(1));
  tree_.SetState("mlx5_0", "1: DOWN");
  const NodeInventory inventory = Read();
  EXPECT_FALSE(inventory.hcas[0].health.usable());
  EXPECT_THAT(inventory.hcas[0].health.reason(), HasSubstr("port 1 is DOWN"));
  EXPECT_TRUE(inventory.hcas[1].health.usable());
  EXPECT_EQ(inventory.hcas[1].rail, 1);
}

TEST_F(SysfsReaderTest, StateThatOnlyLooksActiveIsNot) {
  tree_.AddHca(Mlx(0));
  for (const std::string state : {"5: ACTIVE_DEFER", "ACTIVE", "", "2: INIT"}) {
    tree_.SetState("mlx5_0", state);
    EXPECT_FALSE(Read().hcas[0].health.usable()) << state;
  }
}

TEST_F(SysfsReaderTest, MissingUverbsNode) {
  testing::FakeHca mlx = Mlx(0);
  mlx.device_node = false;
  tree_.AddHca(mlx);
  const Hca hca = Read().hcas[0];
  EXPECT_FALSE(hca.health.usable());
  EXPECT_THAT(hca.health.reason(), HasSubstr("/dev/infiniband/uverbs0 is missing"));
  EXPECT_THAT(hca.char_devices, ElementsAre());
}

TEST_F(SysfsReaderTest, AFolderWhereTheNodeShouldBe) {
  // A container runtime makes a folder for a bind mount whose source is missing.
  testing::FakeHca mlx = Mlx(0);
  mlx.device_node = false;
  tree_.AddHca(mlx);
  tree_.MakeFolder("/dev/infiniband/uverbs0");
  EXPECT_THAT(Read().hcas[0].health.reason(), HasSubstr("not a character device"));
}

TEST_F(SysfsReaderTest, ANodeOfAnotherDriverLoadIsRefused) {
  testing::FakeHca mlx = Mlx(0);
  mlx.device_node = false;
  tree_.AddHca(mlx);
  tree_.MakeFolder("/dev/infiniband");
  const std::string node = tree_.root() + "/dev/infiniband/uverbs0";
  if (mknod(node.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) {
    // Without the right to make devices, a link to a real one does: it must be refused, too.
    tree_.Link("/dev/infiniband/uverbs0", "/dev/null");
  }
  EXPECT_FALSE(Read().hcas[0].health.usable());
}

TEST_F(SysfsReaderTest, NoUverbsInSysfs) {
  tree_.AddHca(Mlx(0));
  tree_.Remove("/sys/class/infiniband_verbs");
  EXPECT_THAT(Read().hcas[0].health.reason(), HasSubstr("ib_uverbs"));
}

TEST_F(SysfsReaderTest, EveryReasonIsTold) {
  testing::FakeHca mlx = Mlx(0);
  mlx.state = "1: DOWN";
  mlx.device_node = false;
  tree_.AddHca(mlx);
  EXPECT_THAT(Read().hcas[0].health.reason(), HasSubstr("DOWN"));
  EXPECT_THAT(Read().hcas[0].health.reason(), HasSubstr("uverbs0"));
}

TEST_F(SysfsReaderTest, NodeWithoutRdmaIsEmptyAndAWrongRootIsAnError) {
  EXPECT_EQ(Read(), NodeInventory{});
  tree_.Remove("/sys/class/infiniband");
  EXPECT_EQ(Read(), NodeInventory{});
  tree_.Remove("/sys");
  EXPECT_THAT(ReadInventory(tree_.root()).status().message(), HasSubstr("no sys directory"));
  EXPECT_FALSE(ReadInventory(tree_.root() + "/nothing").ok());
}

TEST_F(SysfsReaderTest, HostileNamesAreRefusedNotLost) {
  testing::FakeHca odd = Mlx(0);
  odd.name = "a,b=c\xff";
  tree_.AddHca(odd);
  const NodeInventory inventory = Read();
  ASSERT_EQ(inventory.hcas.size(), 1u);
  EXPECT_FALSE(inventory.hcas[0].health.usable());
  EXPECT_THAT(inventory.hcas[0].health.reason(), HasSubstr("name"));
}

TEST_F(SysfsReaderTest, LinkLoopsAndLinksOutside) {
  tree_.Link("/sys/class/infiniband/loop", "loop");
  tree_.Link("/sys/class/infiniband/out", "/etc");
  tree_.AddHca(Mlx(0));
  tree_.Remove("/sys/devices/pci0000:00/0000:18:00.0/infiniband/mlx5_0/device");
  tree_.Link("/sys/devices/pci0000:00/0000:18:00.0/infiniband/mlx5_0/device", "device");
  const NodeInventory inventory = Read();
  ASSERT_EQ(inventory.hcas.size(), 3u);
  for (const Hca& hca : inventory.hcas) {
    EXPECT_EQ(hca.health.usable(), hca.name == "mlx5_0") << hca.name << hca.health.reason();
  }
}

// Whatever the attributes hold, the reader ends, says something printable, and never calls a device
// usable whose port it could not read.
TEST_F(SysfsReaderTest, GarbageInEveryAttribute) {
  const std::vector<std::string> garbage = {"",
                                            std::string(1 << 20, 'A'),
                                            std::string("\0\0\0", 3),
                                            "\xff\xfe\xfd",
                                            "4:",
                                            "-1",
                                            "99999999999999999999",
                                            "nan Gb/sec",
                                            "inf Gb/sec",
                                            "1e400 Gb/sec",
                                            "../../../../etc/passwd",
                                            "4: ACTIVE\n4: DOWN\n"};
  const std::string folder = "/sys/devices/pci0000:00/0000:18:00.0";
  const std::vector<std::string> files = {folder + "/infiniband/mlx5_0/ports/1/state",
                                          folder + "/infiniband/mlx5_0/ports/1/rate",
                                          folder + "/infiniband/mlx5_0/ports/1/link_layer",
                                          folder + "/infiniband/mlx5_0/parent",
                                          folder + "/numa_node",
                                          "/sys/class/infiniband_verbs/uverbs0/ibdev",
                                          "/sys/class/infiniband_verbs/uverbs0/dev"};
  tree_.AddHca(Mlx(0));
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    for (const std::string& file : files) {
      if (random() % 2 == 0) tree_.Write(file, garbage[random() % garbage.size()]);
    }
    const NodeInventory inventory = Read();
    ASSERT_EQ(inventory.hcas.size(), 1u);
    const Hca& hca = inventory.hcas[0];
    ASSERT_EQ(hca.health.usable(), hca.health.reason().empty());
    ASSERT_GE(hca.numa_node, -1);
    ASSERT_FALSE(ToJson(inventory).empty());
    if (hca.health.usable()) {
      ASSERT_EQ(hca.ports[0].state, "ACTIVE");
    }
    tree_.Write(files[0], "4: ACTIVE\n");
    tree_.Write(files[5], "mlx5_0\n");
  }
}

TEST_F(SysfsReaderTest, PortFoldersThatAreNotNumbers) {
  tree_.AddHca(Mlx(0));
  const std::string ports = "/sys/devices/pci0000:00/0000:18:00.0/infiniband/mlx5_0/ports";
  for (const std::string name : {"x", "0", "-1", "256", "1x", "99999999999"}) {
    tree_.Write(absl::StrCat(ports, "/", name, "/state"), "4: ACTIVE\n");
  }
  EXPECT_EQ(Read().hcas[0].ports.size(), 1u);
}

}  // namespace
}  // namespace railhead::fabric
