// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/address.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/base/wire.h"
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

constexpr size_t kFixedSize = 40;  // of what every address has
constexpr size_t kGidSize = 1 + sizeof(Gid);
constexpr size_t kIpSize = 16;  // network order; what IPv4 does not use is 0
constexpr size_t kIwarpSize = 1 + kIpSize + 2 + sizeof(CmToken);

absl::string_view Chars(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

absl::Status Bad(absl::string_view field, uint64_t value) {
  return absl::InvalidArgumentError(
      absl::StrCat("address of the peer's verbs endpoint: ", field, " is ", value));
}

absl::Status CheckRing(const VerbsAddress& address) {
  if (address.psn > kMax24Bits) return Bad("PSN", address.psn);
  if (address.slots < kMinSlots || address.slots > kMaxSlots ||
      !std::has_single_bit(address.slots)) {
    return Bad("number of slots", address.slots);
  }
  if (address.slot_payload < kMinSlotPayload || address.slot_payload > kMaxSlotPayload ||
      address.slot_payload % 64 != 0) {
    return Bad("slot size", address.slot_payload);
  }
  const uint64_t ring_size = address.slots * SlotStride(address.slot_payload);
  if (address.ring_address == 0 || address.ring_address % 64 != 0 ||
      address.ring_address > std::numeric_limits<uint64_t>::max() - ring_size) {
    return Bad("ring address", address.ring_address);
  }
  return absl::OkStatus();
}

absl::Status ReadGid(WireReader& reader, VerbsAddress& address) {
  GidChoice choice;
  const uint8_t number = reader.U8();
  choice.kind = static_cast<GidKind>(number);
  const absl::string_view gid = reader.Raw(sizeof(Gid));
  std::copy(gid.begin(), gid.end(), choice.gid.begin());
  const bool of_infiniband = choice.kind == GidKind::kInfiniband;
  if (!GidFitsKind(choice.gid, choice.kind) || of_infiniband != address.infiniband) {
    return Bad("kind of a GID", number);
  }
  for (const GidChoice& other : address.gids) {
    if (other.kind == choice.kind) return Bad("repeated GID kind", number);
  }
  address.gids.push_back(choice);
  return absl::OkStatus();
}

absl::Status ReadPkey(WireReader& reader, VerbsAddress& address) {
  const uint16_t pkey = reader.U16();
  if (!NamesPartition(pkey)) return Bad("P_Key", pkey);
  for (const uint16_t other : address.pkeys) {
    if (((other ^ pkey) & ~kFullMember) == 0) return Bad("repeated P_Key", pkey);
  }
  address.pkeys.push_back(pkey);
  return absl::OkStatus();
}

absl::Status ReadQpNumber(WireReader& reader, VerbsAddress& address) {
  const uint32_t number = reader.U32();
  if (number < kFirstUserQueuePair || number > kMax24Bits) {
    return Bad("queue pair number", number);
  }
  for (const uint32_t other : address.qp_numbers) {
    if (other == number) return Bad("repeated queue pair number", number);
  }
  address.qp_numbers.push_back(number);
  return absl::OkStatus();
}

absl::Status ReadIwarp(WireReader& reader, VerbsAddress& address) {
  CmAddress& iwarp = address.iwarp.emplace();
  const uint8_t size = reader.U8();
  const absl::string_view ip = reader.Raw(kIpSize);
  if (size != 4 && size != kIpSize) return Bad("size of its IP", size);
  const absl::StatusOr<net::IpAddress> parsed = net::IpAddress::FromBytes(ip.substr(0, size));
  if (!parsed.ok()) return parsed.status();
  // Among others an IPv4 address in an IPv6 one.
  if (parsed->Bytes().size() != size ||
      ip.substr(size).find_first_not_of('\0') != absl::string_view::npos) {
    return Bad("size of its IP", size);
  }
  iwarp.ip = *parsed;
  iwarp.port = reader.U16();
  if (iwarp.port == 0) return Bad("port", iwarp.port);
  const absl::string_view token = reader.Raw(iwarp.token.size());
  std::copy(token.begin(), token.end(), iwarp.token.begin());
  return absl::OkStatus();
}

}  // namespace

// Little-endian.
std::string EncodeAddress(const VerbsAddress& address) {
  WireWriter writer;
  writer.U32(kMagic);
  writer.U8(kAddressVersion);
  writer.U8(address.infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET);
  writer.U8(static_cast<uint8_t>(address.mtu));
  writer.U8((address.needs_grh ? kFlagNeedsGrh : 0) | (address.iwarp.has_value() ? kFlagIwarp : 0));
  writer.U16(address.lid);
  writer.U8(static_cast<uint8_t>(address.gids.size()));
  writer.U8(static_cast<uint8_t>(address.pkeys.size()));
  writer.U32(static_cast<uint32_t>(address.qp_numbers.size()));
  writer.U32(address.psn);
  writer.U32(address.slots);
  writer.U32(address.slot_payload);
  writer.U64(address.ring_address);
  writer.U32(address.ring_key);
  for (const GidChoice& choice : address.gids) {
    writer.U8(static_cast<uint8_t>(choice.kind));
    writer.Raw(Chars(choice.gid));
  }
  for (const uint16_t pkey : address.pkeys) writer.U16(pkey);
  for (const uint32_t number : address.qp_numbers) writer.U32(number);
  if (address.iwarp.has_value()) {
    std::string ip = address.iwarp->ip.Bytes();
    writer.U8(static_cast<uint8_t>(ip.size()));
    ip.resize(kIpSize);
    writer.Raw(ip);
    writer.U16(address.iwarp->port);
    writer.Raw(Chars(address.iwarp->token));
  }
  return writer.Take();
}

absl::StatusOr<VerbsAddress> ParseAddress(absl::string_view bytes) {
  if (bytes.size() < kFixedSize) return Bad("length", bytes.size());
  WireReader reader(bytes);
  if (reader.U32() != kMagic) {
    return absl::InvalidArgumentError(
        "address of the peer's verbs endpoint: invalid (the peer uses another transport on "
        "this rail)");
  }
  if (const uint8_t version = reader.U8(); version != kAddressVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("address of the peer's verbs endpoint: version ", version, ", this side uses ",
                     kAddressVersion, "; run the same version of Railhead on all ranks"));
  }
  VerbsAddress address;
  const uint8_t link_layer = reader.U8();
  const uint8_t mtu = reader.U8();
  const uint8_t flags = reader.U8();
  address.infiniband = link_layer == IBV_LINK_LAYER_INFINIBAND;
  address.needs_grh = (flags & kFlagNeedsGrh) != 0;
  address.mtu = static_cast<ibv_mtu>(mtu);
  address.lid = reader.U16();
  const size_t gids = reader.U8();
  const size_t pkeys = reader.U8();
  const size_t qps = reader.U32();
  address.psn = reader.U32();
  address.slots = reader.U32();
  address.slot_payload = reader.U32();
  address.ring_address = reader.U64();
  address.ring_key = reader.U32();

  if (!address.infiniband && link_layer != IBV_LINK_LAYER_ETHERNET) {
    return Bad("link layer", link_layer);
  }
  if (mtu < IBV_MTU_256 || mtu > IBV_MTU_4096) return Bad("MTU code", mtu);
  const bool iwarp = (flags & kFlagIwarp) != 0;
  if ((flags & ~(kFlagNeedsGrh | kFlagIwarp)) != 0) return Bad("flags", flags);
  if (iwarp && (address.infiniband || gids != 0 || pkeys != 0 || flags != kFlagIwarp)) {
    return Bad("flags", flags);
  }
  if (gids > kGidKinds) return Bad("number of GIDs", gids);
  if (pkeys > kMostPkeys) return Bad("number of P_Keys", pkeys);
  if (iwarp ? qps != 0 : qps == 0 || qps > kMostQpsPerRail) {
    return Bad("number of queue pairs", qps);
  }
  absl::Status status = CheckRing(address);
  if (!status.ok()) return status;
  if (bytes.size() != kFixedSize + gids * kGidSize + pkeys * sizeof(uint16_t) +
                          qps * sizeof(uint32_t) + (iwarp ? kIwarpSize : 0)) {
    return Bad("length", bytes.size());
  }
  for (size_t i = 0; i < gids && status.ok(); ++i) status = ReadGid(reader, address);
  for (size_t i = 0; i < pkeys && status.ok(); ++i) status = ReadPkey(reader, address);
  for (size_t i = 0; i < qps && status.ok(); ++i) status = ReadQpNumber(reader, address);
  if (iwarp && status.ok()) status = ReadIwarp(reader, address);
  if (!status.ok()) return status;
  return address;
}

}  // namespace railhead::transport::verbs
