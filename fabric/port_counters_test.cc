// SPDX-License-Identifier: Apache-2.0
#include "fabric/port_counters.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "fabric/root_files.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::fabric {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

class PortCountersTest : public ::testing::Test {
 protected:
  void AddMlx5() {
    testing::FakeHca hca;
    hca.name = "mlx5_0";
    hca.pci = "0000:18:00.0";
    hca.netdev = "eth0";
    tree_.AddHca(hca);
  }
  void AddRxe() {
    testing::FakeHca hca;
    hca.name = "rxe0";
    hca.pci = "0000:00:03.0";
    hca.netdev = "eth1";
    tree_.AddRxe(hca);
  }
  // `file` is below the port's folder: "counters/port_xmit_data".
  void Set(const std::string& hca, const std::string& file, const std::string& text) {
    tree_.Write(absl::StrCat("/sys/class/infiniband/", hca, "/ports/1/", file), text);
  }
  PortCounters Read(const std::string& hca, int port = 1) {
    return ReadPortCounters(*RootFiles::Open(tree_.root()), hca, port);
  }

  testing::SysfsTree tree_;
};

TEST_F(PortCountersTest, ReadsEveryCounterOfMlx5AndWordsAreBytes) {
  AddMlx5();
  Set("mlx5_0", "counters/port_xmit_data", "1000\n");
  Set("mlx5_0", "counters/port_rcv_data", "2000\n");
  Set("mlx5_0", "counters/port_xmit_discards", "3\n");
  Set("mlx5_0", "counters/port_xmit_wait", "4\n");
  Set("mlx5_0", "counters/port_rcv_errors", "5\n");
  Set("mlx5_0", "counters/symbol_error", "6\n");
  Set("mlx5_0", "counters/link_error_recovery", "7\n");
  Set("mlx5_0", "counters/link_downed", "8\n");
  Set("mlx5_0", "counters/local_link_integrity_errors", "9\n");
  Set("mlx5_0", "hw_counters/np_ecn_marked_roce_packets", "10\n");
  Set("mlx5_0", "hw_counters/np_cnp_sent", "11\n");
  Set("mlx5_0", "hw_counters/rp_cnp_handled", "12\n");
  Set("mlx5_0", "hw_counters/out_of_sequence", "13\n");
  Set("mlx5_0", "hw_counters/packet_seq_err", "14\n");
  Set("mlx5_0", "hw_counters/local_ack_timeout_err", "100\n");
  Set("mlx5_0", "hw_counters/lifespan", "10\n");
  PortCounters expected;
  expected.transmit_bytes = 4000;
  expected.receive_bytes = 8000;
  expected.transmit_discards = 3;
  expected.transmit_waits = 4;
  expected.receive_errors = 5;
  expected.symbol_errors = 6;
  expected.link_recoveries = 7;
  expected.link_downed = 8;
  expected.integrity_errors = 9;
  expected.ecn_marked = 10;
  expected.cnp_sent = 11;
  expected.cnp_handled = 12;
  expected.out_of_sequence = 13;
  expected.retries = 114;
  EXPECT_EQ(Read("mlx5_0"), expected);
}

TEST_F(PortCountersTest, KnowsTheNamesOfOtherDrivers) {
  AddMlx5();
  Set("mlx5_0", "hw_counters/tx_bytes", "100");  // bnxt_re counts bytes
  Set("mlx5_0", "hw_counters/rx_bytes", "200");
  Set("mlx5_0", "hw_counters/rx_ecn_marked_pkts", "1");
  Set("mlx5_0", "hw_counters/tx_cnp_pkts", "2");
  Set("mlx5_0", "hw_counters/rx_cnp_pkts", "3");
  Set("mlx5_0", "hw_counters/oos_drop_count", "4");
  Set("mlx5_0", "hw_counters/rx_roce_discards", "5");
  const PortCounters counters = Read("mlx5_0");
  EXPECT_EQ(counters.transmit_bytes, 100u);
  EXPECT_EQ(counters.receive_bytes, 200u);
  EXPECT_EQ(counters.ecn_marked, 1u);
  EXPECT_EQ(counters.cnp_sent, 2u);
  EXPECT_EQ(counters.cnp_handled, 3u);
  EXPECT_EQ(counters.out_of_sequence, 4u);
  EXPECT_EQ(counters.receive_discards, 5u);
  EXPECT_EQ(counters.unreadable, 0);
}

TEST_F(PortCountersTest, AddsWhatIrdmaCountsForEachProtocol) {
  AddMlx5();
  Set("mlx5_0", "hw_counters/ip4OutOctets", "100");
  Set("mlx5_0", "hw_counters/ip6OutOctets", "20");
  Set("mlx5_0", "hw_counters/ip4InOctets", "7");
  Set("mlx5_0", "hw_counters/RxECNMrkd", "1");
  Set("mlx5_0", "hw_counters/cnpSent", "2");
  Set("mlx5_0", "hw_counters/cnpHandled", "3");
  const PortCounters counters = Read("mlx5_0");
  EXPECT_EQ(counters.transmit_bytes, 120u);
  EXPECT_EQ(counters.receive_bytes, 7u);
  EXPECT_EQ(counters.ecn_marked, 1u);
  EXPECT_EQ(counters.cnp_sent, 2u);
  EXPECT_EQ(counters.cnp_handled, 3u);

  Set("mlx5_0", "hw_counters/ip6OutOctets", "what");
  EXPECT_EQ(Read("mlx5_0").transmit_bytes, std::nullopt) << "half a sum is no sum";
  Set("mlx5_0", "hw_counters/ip6OutOctets", absl::StrCat(kMax));
  EXPECT_EQ(Read("mlx5_0").transmit_bytes, kMax);
}

TEST_F(PortCountersTest, ASoftwareDeviceCountsTheBytesOfItsInterface) {
  AddRxe();
  Set("rxe0", "hw_counters/sent_pkts", "17\n");
  Set("rxe0", "hw_counters/out_of_seq_request", "2\n");
  Set("rxe0", "hw_counters/completer_retry_err", "3\n");
  Set("rxe0", "hw_counters/link_downed", "1\n");
  tree_.Write("/sys/class/net/eth1/statistics/tx_bytes", "123456\n");
  tree_.Write("/sys/class/net/eth1/statistics/rx_bytes", "654321\n");
  PortCounters expected;
  expected.transmit_bytes = 123456;
  expected.receive_bytes = 654321;
  expected.out_of_sequence = 2;
  expected.retries = 3;
  expected.link_downed = 1;
  EXPECT_EQ(Read("rxe0"), expected);
}

TEST_F(PortCountersTest, SoDoesOneThatOnlyItsGidTableTiesToAnInterface) {
  tree_.Write("/sys/class/infiniband/siw0/ports/1/gid_attrs/ndevs/0", "eth7\n");
  tree_.Write("/sys/class/net/eth7/statistics/tx_bytes", "5\n");
  const PortCounters counters = Read("siw0");
  EXPECT_EQ(counters.transmit_bytes, 5u);
  EXPECT_EQ(counters.receive_bytes, std::nullopt);
  EXPECT_EQ(counters.unreadable, 0);

  tree_.Write("/sys/class/infiniband/siw0/ports/1/gid_attrs/ndevs/0", "../../etc\n");
  EXPECT_EQ(Read("siw0"), PortCounters());
}

TEST_F(PortCountersTest, AnAdapterIsNeverJudgedByItsInterface) {
  AddMlx5();
  tree_.Write("/sys/class/net/eth0/statistics/tx_bytes", "5\n");
  EXPECT_EQ(Read("mlx5_0"), PortCounters());
}

TEST_F(PortCountersTest, OneBadFileDropsOnlyItsCounter) {
  AddMlx5();
  Set("mlx5_0", "counters/port_xmit_data", "garbage\n");
  Set("mlx5_0", "counters/port_rcv_data", "1\n");
  Set("mlx5_0", "counters/symbol_error", "-1\n");
  Set("mlx5_0", "counters/link_downed", "");
  Set("mlx5_0", "counters/port_rcv_errors", std::string("1\0002", 3));
  Set("mlx5_0", "counters/port_xmit_wait", "18446744073709551616\n");
  Set("mlx5_0", "hw_counters/tx_bytes", "7\n");  // is not taken in place of the bad one
  tree_.MakeFolder("/sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent");
  ASSERT_EQ(
      mkfifo((tree_.root() + "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence")
                 .c_str(),
             0600),
      0);
  PortCounters expected;
  expected.receive_bytes = 4;
  expected.unreadable = 7;
  EXPECT_EQ(Read("mlx5_0"), expected);
}

TEST_F(PortCountersTest, ABadInterfaceCounterCountsToo) {
  AddRxe();
  tree_.Write("/sys/class/net/eth1/statistics/tx_bytes", "x\n");
  tree_.Write("/sys/class/net/eth1/statistics/rx_bytes", "2\n");
  PortCounters expected;
  expected.receive_bytes = 2;
  expected.unreadable = 1;
  EXPECT_EQ(Read("rxe0"), expected);
}

TEST_F(PortCountersTest, WhatTheKernelSaysItDoesNotHaveIsAbsent) {
  AddRxe();
  Set("rxe0", "counters/port_xmit_data", "N/A (no PMA)\n");
  Set("rxe0", "counters/symbol_error", "N/A (no PMA)\n");
  tree_.Write("/sys/class/net/eth1/statistics/tx_bytes", "3\n");
  PortCounters expected;
  expected.transmit_bytes = 3;
  EXPECT_EQ(Read("rxe0"), expected);
}

TEST_F(PortCountersTest, SixtyFourBitsAreKeptAndBytesStopAtTheMaximum) {
  AddMlx5();
  Set("mlx5_0", "counters/port_xmit_data", absl::StrCat(kMax, "\n"));
  Set("mlx5_0", "counters/port_rcv_data", absl::StrCat(kMax / 4, "\n"));
  Set("mlx5_0", "hw_counters/np_cnp_sent", absl::StrCat(kMax, "\n"));
  const PortCounters counters = Read("mlx5_0");
  EXPECT_EQ(counters.transmit_bytes, kMax);
  EXPECT_EQ(counters.receive_bytes, kMax - 3);
  EXPECT_EQ(counters.cnp_sent, kMax);
  EXPECT_EQ(counters.unreadable, 0);
}

TEST_F(PortCountersTest, APortOrDeviceThatIsNotThereHasNone) {
  AddMlx5();
  Set("mlx5_0", "counters/port_xmit_data", "1\n");
  EXPECT_EQ(Read("mlx5_0", 2), PortCounters());
  EXPECT_EQ(Read("none"), PortCounters());
}

}  // namespace
}  // namespace railhead::fabric
