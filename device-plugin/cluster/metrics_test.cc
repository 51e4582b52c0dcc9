// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/device_list.h"
#include "fabric/inventory.h"
#include "fabric/port_counters.h"

namespace railhead::device_plugin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kId[] = "mlx5_0-0000_18_00_0";

fabric::Hca Mlx5() {
  fabric::Hca hca;
  hca.name = "mlx5_0";
  hca.pci_address = "0000:18:00.0";
  hca.ports = {{1, "ACTIVE", "InfiniBand", 400}};
  return hca;
}

NodeMetrics Node(std::vector<fabric::Hca> hcas) {
  DeviceBoard board;
  fabric::NodeInventory inventory;
  inventory.hcas = std::move(hcas);
  fabric::AssignRails(inventory.hcas);
  std::vector<Device> devices;
  for (const fabric::Hca& hca : inventory.hcas) {
    devices.push_back({DeviceId(hca.name, hca.pci_address), hca});
  }
  board.Publish(std::move(inventory), std::move(devices));
  NodeMetrics metrics;
  metrics.node = "node-1";
  metrics.devices = board.Current();
  return metrics;
}

// The page without what is there for people.
std::string Series(const NodeMetrics& metrics) {
  std::string series;
  for (const absl::string_view line : absl::StrSplit(ToPrometheusText(metrics), '\n')) {
    if (line.empty() || absl::StartsWith(line, "#")) continue;
    series.append(line.data(), line.size());
    series += '\n';
  }
  return series;
}

TEST(Metrics, KnownText) {
  NodeMetrics metrics = Node({Mlx5()});
  fabric::PortCounters& counters = metrics.counters[{kId, 1}];
  counters.transmit_bytes = 4000;
  counters.receive_bytes = 8000;
  counters.ecn_marked = 1;
  counters.cnp_sent = 2;
  counters.cnp_handled = 3;
  counters.out_of_sequence = 4;
  counters.transmit_discards = 5;
  counters.transmit_waits = 6;
  counters.receive_errors = 7;
  counters.receive_discards = 8;
  counters.symbol_errors = 9;
  counters.link_recoveries = 10;
  counters.link_downed = 11;
  counters.integrity_errors = 12;
  counters.retries = 13;
  metrics.holders = DeviceHolders{{kId, {{"team-a", "train-0"}}}};
  metrics.agent = {true, 2, 3, 0.25, 4, true, HostFacts{fabric::GpuDirect{}, 8388608}};
  // "@" stands for the labels of the port.
  const std::string expected =
      "railhead_port_state@ 1\n"
      "railhead_port_rate_bytes_per_second@ 50000000000\n"
      "railhead_port_transmit_bytes_total@ 4000\n"
      "railhead_port_receive_bytes_total@ 8000\n"
      "railhead_port_ecn_marked_total@ 1\n"
      "railhead_port_cnp_sent_total@ 2\n"
      "railhead_port_cnp_handled_total@ 3\n"
      "railhead_port_out_of_sequence_total@ 4\n"
      "railhead_port_retries_total@ 13\n"
      "railhead_port_transmit_discards_total@ 5\n"
      "railhead_port_transmit_wait_ticks_total@ 6\n"
      "railhead_port_receive_errors_total@ 7\n"
      "railhead_port_receive_discards_total@ 8\n"
      "railhead_port_symbol_errors_total@ 9\n"
      "railhead_port_link_error_recoveries_total@ 10\n"
      "railhead_port_link_downed_total@ 11\n"
      "railhead_port_local_link_integrity_errors_total@ 12\n"
      "railhead_device_healthy@ 1\n"
      "railhead_device_renumbered@ 0\n"
      "railhead_device_allocated@ 1\n"
      "railhead_agent_registered{node=\"node-1\"} 1\n"
      "railhead_agent_registrations_total{node=\"node-1\"} 2\n"
      "railhead_agent_misaligned_containers{node=\"node-1\"} 3\n"
      "railhead_agent_unverified_starts_total{node=\"node-1\"} 4\n"
      "railhead_agent_config_refused{node=\"node-1\"} 1\n"
      "railhead_agent_scan_seconds{node=\"node-1\"} 0.25\n"
      "railhead_agent_unreadable_counters{node=\"node-1\"} 0\n"
      "railhead_node_memlock_bytes{node=\"node-1\"} 8388608\n"
      "railhead_node_gpudirect{node=\"node-1\",way=\"none\"} 1\n";
  EXPECT_EQ(
      Series(metrics),
      absl::StrReplaceAll(expected, {{"@", R"({node="node-1",rail="0",device="mlx5_0",port="1",)"
                                           R"(namespace="team-a",pod="train-0"})"}}));
}

TEST(Metrics, EveryFamilySaysWhatItIs) {
  NodeMetrics metrics = Node({Mlx5()});
  metrics.counters[{kId, 1}].transmit_bytes = 1;
  const std::string text = ToPrometheusText(metrics);
  EXPECT_THAT(text, HasSubstr("# HELP railhead_port_transmit_bytes_total Bytes of RDMA traffic"));
  EXPECT_THAT(text, HasSubstr("# TYPE railhead_port_transmit_bytes_total counter\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE railhead_port_state gauge\n"));
  EXPECT_THAT(text, Not(HasSubstr("railhead_port_cnp_sent_total"))) << "a family without series";
  EXPECT_TRUE(absl::EndsWith(text, "\n"));
}

TEST(Metrics, OneBadCounterDropsOnlyItselfAndIsCounted) {
  NodeMetrics metrics = Node({Mlx5()});
  fabric::PortCounters& counters = metrics.counters[{kId, 1}];
  counters.receive_bytes = 4;
  counters.unreadable = 1;
  const std::string series = Series(metrics);
  EXPECT_THAT(series, Not(HasSubstr("transmit_bytes")));
  EXPECT_THAT(series, HasSubstr("railhead_port_receive_bytes_total{node=\"node-1\",rail=\"0\","
                                "device=\"mlx5_0\",port=\"1\"} 4\n"));
  EXPECT_THAT(series, HasSubstr("railhead_port_state"));
  EXPECT_THAT(series, HasSubstr("railhead_agent_unreadable_counters{node=\"node-1\"} 1\n"));
}

TEST(Metrics, ADeadPortAndAnUnhealthyDeviceAreZero) {
  fabric::Hca dead = Mlx5();
  dead.ports = {{1, "DOWN", "InfiniBand", 0}};
  dead.health.Set(fabric::Stage::kRules, "port 1 is DOWN");
  const std::string series = Series(Node({dead}));
  const std::string labels = R"({node="node-1",rail="0",device="mlx5_0",port="1"})";
  EXPECT_THAT(series, HasSubstr("railhead_port_state" + labels + " 0\n"));
  EXPECT_THAT(series, HasSubstr("railhead_device_healthy" + labels + " 0\n"));
  EXPECT_THAT(series, Not(HasSubstr("railhead_port_rate"))) << "not known is not zero";
}

TEST(Metrics, EachTroubleIsASeries) {
  fabric::Hca hca = Mlx5();
  EXPECT_THAT(Series(Node({hca})), Not(HasSubstr("railhead_device_trouble")));
  hca.health.Set(fabric::Stage::kRenumbering, "a container has its device node");
  hca.health.Set(fabric::Stage::kSharedAddress, "it has the same address as mlx5_1");
  const std::string labels = R"({node="node-1",rail="0",device="mlx5_0",port="1")";
  EXPECT_THAT(Series(Node({hca})),
              HasSubstr(absl::StrCat(
                  "railhead_device_healthy", labels, "} 0\nrailhead_device_trouble", labels,
                  ",stage=\"shared-address\"} 1\nrailhead_device_trouble", labels,
                  ",stage=\"renumbering\"} 1\nrailhead_device_renumbered", labels, "} 1\n")));
}

TEST(Metrics, PodLabelsOnlyWhereOnePodHoldsTheDevice) {
  NodeMetrics metrics = Node({Mlx5()});
  metrics.holders = DeviceHolders();
  EXPECT_THAT(Series(metrics), HasSubstr("railhead_device_allocated{node=\"node-1\",rail=\"0\","
                                         "device=\"mlx5_0\",port=\"1\"} 0\n"));
  metrics.holders = DeviceHolders{{kId, {{"a", "old"}, {"a", "new"}}}};
  EXPECT_THAT(Series(metrics), HasSubstr("railhead_device_allocated{node=\"node-1\",rail=\"0\","
                                         "device=\"mlx5_0\",port=\"1\"} 1\n"));
  metrics.holders.reset();
  EXPECT_THAT(Series(metrics), Not(HasSubstr("railhead_device_allocated")));
  EXPECT_THAT(Series(metrics), HasSubstr("railhead_device_healthy"));
}

TEST(Metrics, EachPortHasItsOwnSeriesAndTheDeviceThatOfTheDataPort) {
  fabric::Hca two = Mlx5();
  two.ports = {{1, "DOWN", "Ethernet", 100}, {2, "ACTIVE", "Ethernet", 100}};
  NodeMetrics metrics = Node({two});
  metrics.counters[{kId, 1}].transmit_bytes = 1;
  metrics.counters[{kId, 2}].transmit_bytes = 2;
  const std::string series = Series(metrics);
  EXPECT_THAT(series, HasSubstr("transmit_bytes_total{node=\"node-1\",rail=\"0\","
                                "device=\"mlx5_0\",port=\"1\"} 1\n"));
  EXPECT_THAT(series, HasSubstr("transmit_bytes_total{node=\"node-1\",rail=\"0\","
                                "device=\"mlx5_0\",port=\"2\"} 2\n"));
  EXPECT_THAT(series, HasSubstr("device_healthy{node=\"node-1\",rail=\"0\",device=\"mlx5_0\","
                                "port=\"2\"} 1\n"));
  two.ports.clear();
  EXPECT_THAT(Series(Node({two})),
              HasSubstr("device_healthy{node=\"node-1\",rail=\"0\",device=\"mlx5_0\"} 1\n"));
}

TEST(Metrics, LabelsAreEscapedAndAlwaysText) {
  fabric::Hca hostile = Mlx5();
  hostile.name = "a\"b\nc\\d\xff";
  const std::string series = Series(Node({hostile}));
  EXPECT_THAT(series, HasSubstr(R"(device="a\"b\nc\\d?")"));
}

TEST(Metrics, TheLargestCounterIsANumber) {
  NodeMetrics metrics = Node({Mlx5()});
  metrics.counters[{kId, 1}].transmit_bytes = std::numeric_limits<uint64_t>::max();
  EXPECT_THAT(Series(metrics), HasSubstr("port=\"1\"} 1.844674407370955"));
}

TEST(Metrics, MemlockWithoutALimitIsInfinite) {
  NodeMetrics metrics = Node({});
  metrics.agent.host = HostFacts{};
  EXPECT_THAT(Series(metrics), HasSubstr("railhead_node_memlock_bytes{node=\"node-1\"} +Inf\n"));
}

TEST(Metrics, ANodeWithoutDevicesTellsOfItsAgent) {
  EXPECT_EQ(Series(Node({})),
            "railhead_agent_registered{node=\"node-1\"} 0\n"
            "railhead_agent_registrations_total{node=\"node-1\"} 0\n"
            "railhead_agent_misaligned_containers{node=\"node-1\"} 0\n"
            "railhead_agent_unverified_starts_total{node=\"node-1\"} 0\n"
            "railhead_agent_config_refused{node=\"node-1\"} 0\n"
            "railhead_agent_unreadable_counters{node=\"node-1\"} 0\n");
}

}  // namespace
}  // namespace railhead::device_plugin
