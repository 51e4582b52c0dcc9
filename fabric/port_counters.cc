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
  uint64_t unit = 1;            // what one count stands for
  const char* added = nullptr;  // another file, whose count belongs to the same
};

// Rows of one counter stand together; the first whose file is there is the one that counts.
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
     "Bytes of RDMA traffic that the port has sent. Its rate against "
     "railhead_port_rate_bytes_per_second is how busy the rail is. For software RDMA (rxe, siw): "
     "all bytes of the network interface."},
    {&PortCounters::receive_bytes, "receive_bytes",
     "Bytes of RDMA traffic that the port has received. For software RDMA (rxe, siw): all bytes of "
     "the network interface."},
    {&PortCounters::ecn_marked, "ecn_marked",
     "RoCE packets received that a switch has marked because its queue was long (ECN). The first "
     "sign of congestion."},
    {&PortCounters::cnp_sent, "cnp_sent",
     "Congestion notifications (CNP) that this port has sent as a receiver of marked packets: "
     "traffic towards this port meets congestion."},
    {&PortCounters::cnp_handled, "cnp_handled",
     "Congestion notifications (CNP) that have made this port send more slowly: traffic from this "
     "port meets congestion."},
    {&PortCounters::out_of_sequence, "out_of_sequence",
     "Packets received out of order. On a fabric without adaptive routing it means that packets "
     "were lost and had to be sent again: look for a switch that drops, or for PFC that is off."},
    {&PortCounters::retries, "retries",
     "How often a sender of this port has begun again, since the receiver missed packets or did "
     "not "
     "answer: packets are lost on the way."},
    {&PortCounters::transmit_discards, "transmit_discards",
     "Packets that the port has dropped before sending them: the link is down or blocked for too "
     "long."},
    {&PortCounters::transmit_waits, "transmit_wait_ticks",
     "Ticks of the adapter's clock during which the port had data but no credit to send it: the "
     "switch or the other side does not keep up. The length of a tick is the adapter's own; "
     "compare rails, not vendors."},
    {&PortCounters::receive_errors, "receive_errors",
     "Packets received broken. Growth means a bad cable, transceiver or port."},
    {&PortCounters::receive_discards, "receive_discards",
     "Packets received whole and dropped, for example because no buffer was free."},
    {&PortCounters::symbol_errors, "symbol_errors",
     "Symbol errors on the physical lanes. A few are normal; growth means a bad cable or "
     "transceiver. Old adapters stop at 65535."},
    {&PortCounters::link_recoveries, "link_error_recoveries",
     "How often the link has lost and regained its training by itself: traffic pauses each time. "
     "Old adapters stop at 255."},
    {&PortCounters::link_downed, "link_downed",
     "How often the link has gone down. Old adapters stop at 255."},
    {&PortCounters::integrity_errors, "local_link_integrity_errors",
     "How often physical errors of the link came thicker than its threshold allows. Old adapters "
     "stop at 15."},
};

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

// What a file says: nothing when it is not there.
struct Reading {
  bool there = false;
  std::optional<uint64_t> value;
};

Reading Read(const RootFiles& files, const std::string& path) {
  const absl::StatusOr<std::string> text = files.ReadAttribute(path);
  // The kernel makes the files of counters/ before it knows whether the adapter can answer.
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
  // Half a sum would look like a counter that was reset.
  if (!other.value.has_value()) return other;
  value = value > kMax - *other.value ? kMax : value + *other.value;
  return reading;
}

// Rdma over software has no adapter behind it: rxe names its interface, siw has nothing at all.
// For other devices an interface is no substitute: RDMA traffic passes it by.
bool IsSoftware(const RootFiles& files, const std::string& hca) {
  return !ParentNetdev(files, hca).empty() ||
         !files.IsDirectory(absl::StrCat("/sys/class/infiniband/", hca, "/device"));
}

std::string PortFolder(const std::string& hca, int port) {
  return absl::StrCat("/sys/class/infiniband/", hca, "/ports/", port);
}

// From the first of its sources that is there.
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
