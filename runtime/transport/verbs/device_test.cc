// SPDX-License-Identifier: Apache-2.0
//
// Opening devices and endpoints: what is missing is said, and what is opened is as small as it can
// be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <set>

#include "runtime/transport/verbs/address.h"
#include "runtime/transport/verbs/device_port.h"
#include "runtime/transport/verbs/offer.h"
#include "runtime/transport/verbs/verbs_pair_for_test.h"

namespace railhead::transport::verbs {
namespace {

using ::testing::HasSubstr;

class DeviceTest : public VerbsPairTest {
 protected:
  // The error of opening device fake0 as `change` makes it.
  absl::Status OpenError(const std::function<void(FakeDevice&)>& change) {
    FakeDevice device = RoceDevice("fake0", "10.0.0.1");
    change(device);
    Make({device});
    return OpenFake(fake_, "fake0").status();
  }
};

TEST_F(DeviceTest, AMissingDeviceIsNamedWithThoseThatAreThere) {
  const absl::Status status = OpenFake(fake_, "mlx5_3").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("rail 0, device mlx5_3 port 1"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("fake0, fake1"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("rdma/hca"));
}

TEST_F(DeviceTest, NoDeviceAtAll) {
  Make({});
  EXPECT_THAT(std::string(OpenFake(fake_, "fake0").status().message()), HasSubstr("it lists none"));
}

// What libibverbs says where the kernel has no RDMA, or the container does not show it.
TEST_F(DeviceTest, NoRdmaInTheKernel) {
  const absl::Status status =
      VerbsError("rail 0, device fake0 port 1", "list RDMA devices", ENOSYS);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("rail 0, device fake0 port 1"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("load the kernel module ib_uverbs"));
}

TEST_F(DeviceTest, NoPermission) {
  const absl::Status status = OpenError([](FakeDevice& d) { d.open_error = EACCES; });
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/infiniband/uverbs"));
}

// With exclusive RDMA namespaces, the kernel refuses to open a device of another one, or hides it.
TEST_F(DeviceTest, InAnotherRdmaNamespace) {
  const std::string advice =
      "if `rdma system show` on the node prints \"netns exclusive\", use "
      "hostNetwork or have rdma-cni move the device into the pod";
  EXPECT_THAT(std::string(OpenError([](FakeDevice& d) { d.open_error = EPERM; }).message()),
              HasSubstr(advice));
  EXPECT_THAT(std::string(OpenError([](FakeDevice& d) { d.name = "fake9"; }).message()),
              HasSubstr(advice));
}

TEST_F(DeviceTest, PortDown) {
  const absl::Status status = OpenError([](FakeDevice& d) { d.state = IBV_PORT_DOWN; });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the port is DOWN; check the cable"));
}

TEST_F(DeviceTest, InfinibandPortWithoutSubnetManager) {
  const absl::Status status = OpenError([](FakeDevice& d) {
    d.infiniband = true;
    d.state = IBV_PORT_INIT;
  });
  EXPECT_THAT(std::string(status.message()), HasSubstr("subnet manager"));
}

TEST_F(DeviceTest, NoUsableGid) {
  const absl::Status status =
      OpenError([](FakeDevice& d) { d.gids = {FakeGid(0, "::", IBV_GID_TYPE_ROCE_V2)}; });
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("IP address"));
}

// The address of another pod's macvlan interface comes first in the table.
TEST_F(DeviceTest, APodWithoutAnAddressUsesTheNodes) {
  FakeDevice device;
  device.gids = {FakeGid(1, "fe80::1", IBV_GID_TYPE_ROCE_V2),
                 FakeGid(3, "10.0.0.7", IBV_GID_TYPE_ROCE_V2),
                 FakeGid(9, "10.0.0.1", IBV_GID_TYPE_ROCE_V2)};
  device.interfaces = {{1, "eth1"}, {3, "net1"}, {9, "eth1.100"}};
  Make({device});
  fabric::PodRail rail = RailOf("fake0");
  rail.netdev = "eth1";
  const absl::StatusOr<std::unique_ptr<VerbsDevice>> opened =
      OpenVerbsDevice(rail, {}, fake_, [this] { return fake_->Now(); });
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT((*opened)->Describe(), HasSubstr("10.0.0.1 (GID index 9)"));
}

class PkeyDeviceTest : public DeviceTest {
 protected:
  // Opens an InfiniBand port with this table.
  absl::StatusOr<std::unique_ptr<VerbsDevice>> OpenWith(std::vector<uint16_t> table,
                                                        uint16_t wanted) {
    FakeDevice device;
    device.infiniband = true;
    device.lid = 1;
    device.pkeys = std::move(table);
    Make({device});
    VerbsSettings settings;
    settings.pkey = wanted;
    return OpenFake(fake_, "fake0", settings);
  }
};

TEST_F(PkeyDeviceTest, APortOffersItsPartitionsOrTheOneThatIsSet) {
  absl::StatusOr<std::unique_ptr<VerbsDevice>> device = OpenWith({0x7fff, 0, 0x8001}, 0);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_THAT(WithoutIndices((*device)->port()->pkeys()), ::testing::ElementsAre(0x8001, 0x7fff));
  device = OpenWith({0x7fff, 0, 0x8001}, 0x0001);
  ASSERT_TRUE(device.ok()) << device.status();
  ASSERT_EQ((*device)->port()->pkeys().size(), 1u);
  EXPECT_EQ((*device)->port()->pkeys()[0].index, 2);
}

TEST_F(PkeyDeviceTest, APartitionThatThePortIsNotInIsNamedWithThoseThatItIsIn) {
  const absl::Status status = OpenWith({0xffff, 0x8001}, 0x8002).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(HasSubstr("rail 0, device fake0 port 1"), HasSubstr("0x8002"),
                               HasSubstr("RAILHEAD_IB_PKEY"), HasSubstr("0xffff, 0x8001")));
}

TEST_F(PkeyDeviceTest, AnEmptyTableIsAnError) {
  EXPECT_THAT(std::string(OpenWith({0, 0x8000}, 0).status().message()),
              HasSubstr("P_Key table is empty"));
}

TEST_F(DeviceTest, OnRoceThereIsOnePartitionAndNoTableToRead) {
  FakeDevice device = RoceDevice("fake0", "10.0.0.1");
  device.pkeys.clear();  // reading an entry fails
  Make({device});
  VerbsSettings settings;
  settings.pkey = 0x7fff;
  EXPECT_TRUE(OpenFake(fake_, "fake0", settings).ok());
  settings.pkey = 0x8001;
  EXPECT_THAT(std::string(OpenFake(fake_, "fake0", settings).status().message()),
              HasSubstr("not in partition 0x8001 (RAILHEAD_IB_PKEY), but in 0xffff"));
}

TEST_F(DeviceTest, OnRoceAServiceLevelIsAPriority) {
  VerbsSettings settings;
  settings.service_level = 7;
  EXPECT_TRUE(OpenFake(fake_, "fake0", settings).ok());
  settings.service_level = 8;
  const absl::Status status = OpenFake(fake_, "fake0", settings).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(HasSubstr("device fake0"), HasSubstr("service level 8"),
                               HasSubstr("RAILHEAD_IB_SL")));
}

TEST_F(DeviceTest, FromOneToEightQueuePairs) {
  for (const uint8_t count : {0, 1, 8, 9}) {
    VerbsSettings settings;
    settings.qps_per_rail = count;
    const absl::Status status = OpenFake(fake_, "fake0", settings).status();
    EXPECT_EQ(status.ok(), count >= 1 && count <= 8) << int{count} << ": " << status;
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                ::testing::AllOf(HasSubstr("device fake0"), HasSubstr("RAILHEAD_IB_QPS_PER_RAIL")));
  }
}

TEST_F(DeviceTest, PortNumbersAreChecked) {
  for (const int port : {-1, 0, 256}) {
    fabric::PodRail rail = RailOf("fake0");
    rail.port = port;
    EXPECT_EQ(OpenVerbsDevice(rail, {}, fake_, [] { return absl::UnixEpoch(); }).status().code(),
              absl::StatusCode::kInvalidArgument)
        << port;
  }
  fabric::PodRail rail = RailOf("fake0");
  rail.port = 9;  // in range, but the device has no such port
  EXPECT_FALSE(OpenVerbsDevice(rail, {}, fake_, [] { return absl::UnixEpoch(); }).ok());
}

TEST_F(DeviceTest, DescribesItself) {
  const absl::StatusOr<std::unique_ptr<VerbsDevice>> device = OpenFake(fake_, "fake0");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(
      (*device)->Describe(),
      "rail 0, device fake0 port 1: Ethernet, MTU 4096, RoCE v2 over IPv4 10.0.0.1 (GID index "
      "1)");
}

TEST_F(DeviceTest, MemoryIsBoundedAndHasNoMoreRightsThanItNeeds) {
  ConnectBoth();
  const std::vector<FakeRegion> regions = fake_->regions("fake0");
  ASSERT_EQ(regions.size(), 2u);
  uint64_t total = 0;
  std::vector<int> access;
  for (const FakeRegion& region : regions) {
    EXPECT_EQ(region.address % 4096, 0u);
    EXPECT_EQ(region.length % 4096, 0u);
    total += region.length;
    access.push_back(region.access);
  }
  EXPECT_LE(total, uint64_t{3} << 20);
  EXPECT_THAT(access,
              ::testing::UnorderedElementsAre(
                  IBV_ACCESS_RELAXED_ORDERING,
                  IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
}

TEST_F(DeviceTest, WithLittleMemlockTheRingsAreSmaller) {
  FakeDevice tight = RoceDevice("fake0", "10.0.0.1");
  tight.memlock = uint64_t{800} * 1024;
  Make({tight, RoceDevice("fake1", "10.0.0.2")});
  ConnectBoth();
  uint64_t total = 0;
  for (const FakeRegion& region : fake_->regions("fake0")) total += region.length;
  EXPECT_LE(total, tight.memlock);
  // The two sides have rings of different sizes; both directions still work.
  for (uint64_t i = 0; i < 100; ++i) {
    for (Side* side : {&a_, &b_}) {
      const std::string bytes(side->link->max_payload() - i, static_cast<char>('a' + i % 26));
      for (;;) {
        const absl::StatusOr<bool> sent = side->Send(0, i, bytes);
        ASSERT_TRUE(sent.ok()) << sent.status();
        if (*sent) break;
        PollUntilQuiet();
      }
    }
  }
  PollUntilQuiet();
  ASSERT_EQ(a_.received.size(), 100u);
  ASSERT_EQ(b_.received.size(), 100u);
  EXPECT_EQ(b_.received[99].second.size(), a_.link->max_payload() - 99);
}

TEST_F(DeviceTest, WithoutMemlockTheErrorTellsTheLimitAndTheFix) {
  FakeDevice none = RoceDevice("fake0", "10.0.0.1");
  none.memlock = uint64_t{64} * 1024;
  Make({none, RoceDevice("fake1", "10.0.0.2")});
  const absl::Status status = ConnectError();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("rail 0, device fake0 port 1"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("RLIMIT_MEMLOCK"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("LimitMEMLOCK=infinity"));
}

TEST_F(DeviceTest, PacketNumbersAreRandom) {
  const std::unique_ptr<VerbsDevice> device = OpenFake(fake_, "fake0").value();
  std::set<uint32_t> numbers;
  for (int i = 0; i < 8; ++i) {
    const Rings rings = Rings::Create(*device->port()).value();
    const Offer offer = Offer::Make(device->port(), rings, *device->memory()).value();
    numbers.insert(ParseAddress(offer.Address()).value().psn);
  }
  EXPECT_GT(numbers.size(), 4u);
}

TEST_F(DeviceTest, ADeviceMayGoBeforeItsLinks) {
  ConnectBoth();
  a_.device.reset();
  ASSERT_TRUE(a_.Send(1, 2, "still here").value());
  PollUntilQuiet();
  ASSERT_EQ(b_.received.size(), 1u);
  EXPECT_EQ(b_.received[0].second, "still here");
}

}  // namespace
}  // namespace railhead::transport::verbs
