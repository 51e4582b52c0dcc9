// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/address.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/transport/verbs/pkey.h"
#include "runtime/transport/verbs/settings.h"
#include "runtime/transport/verbs/slot.h"

namespace railhead::transport::verbs {
namespace {

constexpr uint32_t kMagic = 0x56424852;  // "RHBV" in memory
constexpr uint8_t kAddressVersion = 3;
constexpr uint8_t kFlagNeedsGrh = 1;
constexpr uint8_t kFlagIwarp = 2;
constexpr uint32_t kMax24Bits = 0xffffff;
// Queue pairs 0 and 1 are the subnet manager's and the connection manager's.
constexpr uint32_t kFirstUserQueuePair = 2;

// Little-endian; followed by `gid_count` records of GidRecord, `pkey_count` of uint16_t, `qp_count`
// numbers of queue pairs of uint32_t, and with kFlagIwarp by IwarpRecord.
struct __attribute__((packed)) Fixed {
  uint32_t magic;
  uint8_t version;
  uint8_t link_layer;
  uint8_t mtu;
  uint8_t flags;
  uint16_t lid;
  uint8_t gid_count;
  uint8_t pkey_count;
  uint32_t qp_count;
  uint32_t psn;
  uint32_t slots;
  uint32_t slot_payload;
  uint64_t ring_address;
  uint32_t ring_key;
};
static_assert(sizeof(Fixed) == 40);

struct __attribute__((packed)) GidRecord {
  uint8_t kind;
  Gid gid;
};
static_assert(sizeof(GidRecord) == 17);

struct __attribute__((packed)) IwarpRecord {
  uint8_t ip_size;  // 4 or 16
  uint8_t ip[16];   // network order; what is not used is 0
  uint16_t port;
  CmToken token;
};
static_assert(sizeof(IwarpRecord) == 35);

absl::Status Bad(absl::string_view field, uint64_t value) {
  return absl::InvalidArgumentError(
      absl::StrCat("address of the peer's verbs endpoint: ", field, " is ", value));
}

absl::Status CheckFixed(const Fixed& f) {
  if (f.magic != kMagic) {
    return absl::InvalidArgumentError(
        "address of the peer's verbs endpoint: it is not one (the peer uses another transport on "
        "this rail)");
  }
  if (f.version != kAddressVersion) {
    return absl::InvalidArgumentError(absl::StrCat(
        "address of the peer's verbs endpoint: version ", f.version, ", this side speaks ",
        kAddressVersion, "; run the same version of Railhead on all ranks"));
  }
  const bool infiniband = f.link_layer == IBV_LINK_LAYER_INFINIBAND;
  if (!infiniband && f.link_layer != IBV_LINK_LAYER_ETHERNET) {
    return Bad("link layer", f.link_layer);
  }
  if (f.mtu < IBV_MTU_256 || f.mtu > IBV_MTU_4096) return Bad("MTU code", f.mtu);
  const bool iwarp = (f.flags & kFlagIwarp) != 0;
  if ((f.flags & ~(kFlagNeedsGrh | kFlagIwarp)) != 0) return Bad("flags", f.flags);
  if (iwarp && (infiniband || f.gid_count != 0 || f.pkey_count != 0 || f.flags != kFlagIwarp)) {
    return Bad("flags", f.flags);
  }
  if (f.gid_count > kGidKinds) return Bad("number of GIDs", f.gid_count);
  if (f.pkey_count > kMostPkeys) return Bad("number of P_Keys", f.pkey_count);
  if (iwarp ? f.qp_count != 0 : f.qp_count == 0 || f.qp_count > kMostQpsPerRail) {
    return Bad("number of queue pairs", f.qp_count);
  }
  if (f.psn > kMax24Bits) return Bad("PSN", f.psn);
  if (f.slots < kMinSlots || f.slots > kMaxSlots || !std::has_single_bit(f.slots)) {
    return Bad("number of slots", f.slots);
  }
  if (f.slot_payload < kMinSlotPayload || f.slot_payload > kMaxSlotPayload ||
      f.slot_payload % 64 != 0) {
    return Bad("slot size", f.slot_payload);
  }
  const uint64_t ring_size = f.slots * SlotStride(f.slot_payload);
  if (f.ring_address == 0 || f.ring_address % 64 != 0 ||
      f.ring_address > std::numeric_limits<uint64_t>::max() - ring_size) {
    return Bad("ring address", f.ring_address);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint32_t>> ParseQpNumbers(absl::string_view bytes, size_t count) {
  std::vector<uint32_t> numbers;
  for (size_t i = 0; i < count; ++i) {
    uint32_t number = 0;
    std::memcpy(&number, bytes.data() + i * sizeof(number), sizeof(number));
    if (number < kFirstUserQueuePair || number > kMax24Bits) {
      return Bad("queue pair number", number);
    }
    if (std::find(numbers.begin(), numbers.end(), number) != numbers.end()) {
      return Bad("repeated queue pair number", number);
    }
    numbers.push_back(number);
  }
  return numbers;
}

absl::StatusOr<CmAddress> ParseIwarp(absl::string_view bytes) {
  IwarpRecord record;
  std::memcpy(&record, bytes.data(), sizeof(record));
  const absl::string_view ip(reinterpret_cast<const char*>(record.ip), sizeof(record.ip));
  if (record.ip_size != 4 && record.ip_size != 16) return Bad("size of its IP", record.ip_size);
  const absl::StatusOr<net::IpAddress> parsed =
      net::IpAddress::FromBytes(ip.substr(0, record.ip_size));
  if (!parsed.ok()) return parsed.status();
  // Among others an IPv4 address in an IPv6 one.
  if (parsed->Bytes().size() != record.ip_size ||
      ip.substr(record.ip_size).find_first_not_of('\0') != absl::string_view::npos) {
    return Bad("size of its IP", record.ip_size);
  }
  if (record.port == 0) return Bad("port", record.port);
  return CmAddress{*parsed, record.port, record.token};
}

}  // namespace

std::string EncodeAddress(const VerbsAddress& address) {
  Fixed fixed = {};
  fixed.magic = kMagic;
  fixed.version = kAddressVersion;
  fixed.link_layer = address.infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  fixed.mtu = static_cast<uint8_t>(address.mtu);
  fixed.flags =
      (address.needs_grh ? kFlagNeedsGrh : 0) | (address.iwarp.has_value() ? kFlagIwarp : 0);
  fixed.lid = address.lid;
  fixed.gid_count = static_cast<uint8_t>(address.gids.size());
  fixed.pkey_count = static_cast<uint8_t>(address.pkeys.size());
  fixed.qp_count = static_cast<uint32_t>(address.qp_numbers.size());
  fixed.psn = address.psn;
  fixed.slots = address.slots;
  fixed.slot_payload = address.slot_payload;
  fixed.ring_address = address.ring_address;
  fixed.ring_key = address.ring_key;
  std::string bytes(reinterpret_cast<const char*>(&fixed), sizeof(fixed));
  for (const GidChoice& choice : address.gids) {
    bytes.push_back(static_cast<char>(choice.kind));
    bytes.append(reinterpret_cast<const char*>(choice.gid.data()), choice.gid.size());
  }
  for (const uint16_t pkey : address.pkeys) {
    bytes.append(reinterpret_cast<const char*>(&pkey), sizeof(pkey));
  }
  for (const uint32_t number : address.qp_numbers) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  if (address.iwarp.has_value()) {
    const std::string ip = address.iwarp->ip.Bytes();
    IwarpRecord record = {};
    record.ip_size = static_cast<uint8_t>(ip.size());
    std::memcpy(record.ip, ip.data(), ip.size());
    record.port = address.iwarp->port;
    record.token = address.iwarp->token;
    bytes.append(reinterpret_cast<const char*>(&record), sizeof(record));
  }
  return bytes;
}

absl::StatusOr<VerbsAddress> ParseAddress(absl::string_view bytes) {
  Fixed fixed;
  if (bytes.size() < sizeof(fixed)) return Bad("length", bytes.size());
  std::memcpy(&fixed, bytes.data(), sizeof(fixed));
  if (absl::Status status = CheckFixed(fixed); !status.ok()) return status;
  const bool iwarp = (fixed.flags & kFlagIwarp) != 0;
  const size_t pkeys_at = sizeof(fixed) + fixed.gid_count * sizeof(GidRecord);
  const size_t qps_at = pkeys_at + fixed.pkey_count * sizeof(uint16_t);
  const size_t iwarp_at = qps_at + fixed.qp_count * sizeof(uint32_t);
  if (bytes.size() != iwarp_at + (iwarp ? sizeof(IwarpRecord) : 0)) {
    return Bad("length", bytes.size());
  }

  VerbsAddress address;
  address.infiniband = fixed.link_layer == IBV_LINK_LAYER_INFINIBAND;
  address.needs_grh = (fixed.flags & kFlagNeedsGrh) != 0;
  address.mtu = static_cast<ibv_mtu>(fixed.mtu);
  address.lid = fixed.lid;
  address.psn = fixed.psn;
  address.slots = fixed.slots;
  address.slot_payload = fixed.slot_payload;
  address.ring_address = fixed.ring_address;
  address.ring_key = fixed.ring_key;

  absl::StatusOr<std::vector<uint32_t>> qp_numbers =
      ParseQpNumbers(bytes.substr(qps_at), fixed.qp_count);
  if (!qp_numbers.ok()) return qp_numbers.status();
  address.qp_numbers = *std::move(qp_numbers);

  if (iwarp) {
    absl::StatusOr<CmAddress> listens = ParseIwarp(bytes.substr(iwarp_at));
    if (!listens.ok()) return listens.status();
    address.iwarp = *listens;
  }

  uint32_t kinds_seen = 0;
  for (size_t i = 0; i < fixed.gid_count; ++i) {
    GidRecord record;
    std::memcpy(&record, bytes.data() + sizeof(fixed) + i * sizeof(record), sizeof(record));
    const auto kind = static_cast<GidKind>(record.kind);
    if (!GidFitsKind(record.gid, kind)) return Bad("kind of a GID", record.kind);
    if ((kind == GidKind::kInfiniband) != address.infiniband) {
      return Bad("kind of a GID", record.kind);
    }
    if ((kinds_seen & (uint32_t{1} << record.kind)) != 0) {
      return Bad("repeated GID kind", record.kind);
    }
    kinds_seen |= uint32_t{1} << record.kind;
    address.gids.push_back(GidChoice{kind, 0, record.gid});
  }
  std::set<int> partitions;
  for (size_t i = 0; i < fixed.pkey_count; ++i) {
    uint16_t pkey = 0;
    std::memcpy(&pkey, bytes.data() + pkeys_at + i * sizeof(pkey), sizeof(pkey));
    if (!NamesPartition(pkey)) return Bad("P_Key", pkey);
    if (!partitions.insert(pkey & ~kFullMember).second) return Bad("repeated P_Key", pkey);
    address.pkeys.push_back(pkey);
  }
  return address;
}

}  // namespace railhead::transport::verbs
