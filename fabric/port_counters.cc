// SPDX-License-Identifier: Apache-2.0
#include "fabric/port_counters.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "fabric/hca_netdev.h"
#include "fabric/root_files.h"

namespace railhead::fabric {
namespace {

struct Source {
  PortCounter counter;
  const char* file;             // below ports/<port>
  uint64_t unit = 1;            // bytes, or other unit, per count
  const char* added = nullptr;  // another file whose value is added
};

// Rows of one counter are adjacent; the first whose file exists is used.
constexpr Source kSources[] = {
    {&PortCounters::transmit_bytes, "counters/port_xmit_data", 4},
    {&PortCounters::transmit_bytes, "hw_counters/tx_bytes"},             // bnxt_re, efa
    {&PortCounters::transmit_bytes, "hw_counters/tx_rdma_ucast_bytes"},  // ionic
    {&PortCounters::transmit_bytes, "hw_counters/ip4OutOctets", 1,       // irdma
     "hw_counters/ip6OutOctets"},

    {&PortCounters::receive_bytes, "counters/port_rcv_data", 4},
    {&PortCounters::receive_bytes, "hw_counters/rx_bytes"},             // bnxt_re, efa
    {&PortCounters::receive_bytes, "hw_counters/rx_rdma_ucast_bytes"},  // ionic
    {&PortCounters::receive_bytes, "hw_counters/ip4InOctets", 1,        // irdma
     "hw_counters/ip6InOctets"},

    {&PortCounters::ecn_marked, "hw_counters/np_ecn_marked_roce_packets"},  // mlx5, new bnxt_re
    {&PortCounters::ecn_marked, "hw_counters/rx_ecn_marked_pkts"},          // bnxt_re
    {&PortCounters::ecn_marked, "hw_counters/RxECNMrkd"},                   // irdma
    {&PortCounters::ecn_marked, "hw_counters/rx_rdma_ecn_pkts"},            // ionic

    {&PortCounters::cnp_sent, "hw_counters/np_cnp_sent"},       // mlx5
    {&PortCounters::cnp_sent, "hw_counters/tx_cnp_pkts"},       // bnxt_re
    {&PortCounters::cnp_sent, "hw_counters/np_cnp_pkts"},       // new bnxt_re
    {&PortCounters::cnp_sent, "hw_counters/cnpSent"},           // irdma
    {&PortCounters::cnp_sent, "hw_counters/tx_rdma_cnp_pkts"},  // ionic

    {&PortCounters::cnp_handled, "hw_counters/rp_cnp_handled"},    // mlx5, new bnxt_re
    {&PortCounters::cnp_handled, "hw_counters/rx_cnp_pkts"},       // bnxt_re
    {&PortCounters::cnp_handled, "hw_counters/cnpHandled"},        // irdma
    {&PortCounters::cnp_handled, "hw_counters/rx_rdma_cnp_pkts"},  // ionic

    {&PortCounters::out_of_sequence, "hw_counters/out_of_sequence"},     // mlx5
    {&PortCounters::out_of_sequence, "hw_counters/oos_drop_count"},      // bnxt_re
    {&PortCounters::out_of_sequence, "hw_counters/rq_num_oos"},          // mlx4
    {&PortCounters::out_of_sequence, "hw_counters/responder_oos"},       // mana_ib
    {&PortCounters::out_of_sequence, "hw_counters/out_of_seq_request"},  // rdma_rxe

    {&PortCounters::retries, "hw_counters/packet_seq_err", 1,     // mlx5: the receiver missed some,
     "hw_counters/local_ack_timeout_err"},                        // or has not answered
    {&PortCounters::retries, "hw_counters/seq_err_naks_rcvd", 1,  // bnxt_re
     "hw_counters/to_retransmits"},
    {&PortCounters::retries, "hw_counters/tx_rdma_ack_timeout"},  // ionic
    {&PortCounters::retries, "hw_counters/completer_retry_err"},  // rdma_rxe

    {&PortCounters::transmit_discards, "counters/port_xmit_discards"},
    {&PortCounters::transmit_discards, "hw_counters/tx_roce_discards"},  // bnxt_re

    {&PortCounters::transmit_waits, "counters/port_xmit_wait"},

    {&PortCounters::receive_errors, "counters/port_rcv_errors"},
    {&PortCounters::receive_errors, "hw_counters/rx_roce_errors"},  // bnxt_re

    {&PortCounters::receive_discards, "hw_counters/rx_roce_discards"},  // bnxt_re
    {&PortCounters::receive_discards, "hw_counters/rx_drops"},          // efa

    {&PortCounters::symbol_errors, "counters/symbol_error"},
    {&PortCounters::link_recoveries, "counters/link_error_recovery"},
    {&PortCounters::link_downed, "counters/link_downed"},
    {&PortCounters::link_downed, "hw_counters/link_downed"},  // rdma_rxe
    {&PortCounters::integrity_errors, "counters/local_link_integrity_errors"},
};

constexpr PortCounterName kNames[] = {
    {&PortCounters::transmit_bytes, "transmit_bytes",
     "Bytes of RDMA traffic sent by the port. Its rate divided by "
     "railhead_port_rate_bytes_per_second is the utilization of the rail. For software RDMA (rxe, "
     "siw): all bytes of the network interface."},
    {&PortCounters::receive_bytes, "receive_bytes",
     "Bytes of RDMA traffic received by the port. For software RDMA (rxe, siw): all bytes of "
     "the network interface."},
    {&PortCounters::ecn_marked, "ecn_marked",
     "RoCE packets received with an ECN mark, which a switch sets if its queue is long. The first "
     "sign of congestion."},
    {&PortCounters::cnp_sent, "cnp_sent",
     "Congestion notifications (CNP) that this port has sent as a receiver of marked packets: "
     "traffic to this port is congested."},
    {&PortCounters::cnp_handled, "cnp_handled",
     "Congestion notifications (CNP) that have reduced the send rate of this port: traffic from "
     "this port is congested."},
    {&PortCounters::out_of_sequence, "out_of_sequence",
     "Packets received out of order. On a fabric without adaptive routing, packets were lost and "
     "retransmitted: check switches for drops and that PFC is enabled."},
    {&PortCounters::retries, "retries",
     "Number of retransmissions by senders of this port, as the receiver missed packets or did not "
     "respond: packets are lost in the network."},
    {&PortCounters::transmit_discards, "transmit_discards",
     "Packets that the port has dropped before sending: the link is down or was blocked too long."},
    {&PortCounters::transmit_waits, "transmit_wait_ticks",
     "Ticks of the adapter's clock during which the port had data but no credit to send it: the "
     "switch or the receiver is too slow. The length of a tick depends on the adapter; compare "
     "rails, not vendors."},
    {&PortCounters::receive_errors, "receive_errors",
     "Packets received with errors. Growth means a bad cable, transceiver or port."},
    {&PortCounters::receive_discards, "receive_discards",
     "Packets received intact but dropped, for example because no buffer was free."},
    {&PortCounters::symbol_errors, "symbol_errors",
     "Symbol errors on the physical lanes. A few are normal; growth means a bad cable or "
     "transceiver. Old adapters stop at 65535."},
    {&PortCounters::link_recoveries, "link_error_recoveries",
     "Number of times that the link has retrained by itself: traffic pauses each time. "
     "Old adapters stop at 255."},
    {&PortCounters::link_downed, "link_downed",
     "Number of times that the link has gone down. Old adapters stop at 255."},
    {&PortCounters::integrity_errors, "local_link_integrity_errors",
     "Number of times that the rate of physical link errors exceeded the link's threshold. Old "
     "adapters "
     "stop at 15."},
};

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

// Value of a file; `there` is false if the file is missing.
struct Reading {
  bool there = false;
  std::optional<uint64_t> value;
};

Reading Read(const RootFiles& files, const std::string& path) {
  const absl::StatusOr<std::string> text = files.ReadAttribute(path);
  // The kernel creates the files of counters/ even if the adapter cannot provide values.
  if (absl::IsNotFound(text.status()) || (text.ok() && *text == "N/A (no PMA)")) return {};
  uint64_t value = 0;
  if (!text.ok() || !absl::SimpleAtoi(*text, &value)) return {true, std::nullopt};
  return {true, value};
}

Reading Read(const RootFiles& files, const std::string& folder, const Source& source) {
  Reading reading = Read(files, absl::StrCat(folder, "/", source.file));
  if (!reading.value.has_value()) return reading;
  uint64_t& value = *reading.value;
  value = value > kMax / source.unit ? kMax : value * source.unit;
  if (source.added == nullptr) return reading;
  const Reading other = Read(files, absl::StrCat(folder, "/", source.added));
  if (!other.there) return reading;
  // A partial sum would look like a reset counter.
  if (!other.value.has_value()) return other;
  value = value > kMax - *other.value ? kMax : value + *other.value;
  return reading;
}

// Software RDMA has no adapter: rxe names its interface, siw has nothing. For other devices an
// interface is not a substitute: RDMA traffic bypasses it.
bool IsSoftware(const RootFiles& files, const std::string& hca) {
  return !ParentNetdev(files, hca).empty() ||
         !files.IsDirectory(absl::StrCat("/sys/class/infiniband/", hca, "/device"));
}

std::string PortFolder(const std::string& hca, int port) {
  return absl::StrCat("/sys/class/infiniband/", hca, "/ports/", port);
}

// Reads the first of its sources that exists.
Reading ReadFirst(const RootFiles& files, const std::string& folder, PortCounter counter) {
  Reading reading;
  for (const Source& source : kSources) {
    if (source.counter == counter && !reading.there) reading = Read(files, folder, source);
  }
  return reading;
}

}  // namespace

absl::Span<const PortCounterName> PortCounterNames() { return kNames; }

std::optional<uint64_t> ReadPortCounter(const RootFiles& files, const std::string& hca, int port,
                                        PortCounter counter) {
  return ReadFirst(files, PortFolder(hca, port), counter).value;
}

PortCounters ReadPortCounters(const RootFiles& files, const std::string& hca, int port) {
  const std::string folder = PortFolder(hca, port);
  PortCounters counters;
  const auto take = [&counters](PortCounter counter, const Reading& reading) {
    counters.*counter = reading.value;
    if (reading.there && !reading.value.has_value()) ++counters.unreadable;
  };
  bool bytes_counted = false;
  for (size_t i = 0; i < std::size(kSources);) {
    const PortCounter counter = kSources[i].counter;
    while (i < std::size(kSources) && kSources[i].counter == counter) ++i;
    const Reading reading = ReadFirst(files, folder, counter);
    take(counter, reading);
    bytes_counted |= reading.there && (counter == &PortCounters::transmit_bytes ||
                                       counter == &PortCounters::receive_bytes);
  }
  if (bytes_counted || !IsSoftware(files, hca)) return counters;
  const std::string netdev = NetdevOfPort(files, hca, port);
  if (!IsSaneName(netdev)) return counters;
  const std::string statistics = absl::StrCat("/sys/class/net/", netdev, "/statistics");
  take(&PortCounters::transmit_bytes, Read(files, statistics + "/tx_bytes"));
  take(&PortCounters::receive_bytes, Read(files, statistics + "/rx_bytes"));
  return counters;
}

}  // namespace railhead::fabric
