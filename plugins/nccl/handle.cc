// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/handle.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/wire.h"
#include "runtime/transport/connect/rail_handshake.h"

namespace railhead::nccl {
namespace {

constexpr absl::string_view kMagic = "RLHD";
// Of the handle and of what the two sides say to each other.
constexpr uint8_t kVersion = 2;

constexpr uint8_t kVerbsBit = 0x80;
constexpr uint8_t kSenderBit = 0x80;  // of the token's first byte; set on the receiver

// Rails of one listener have its address once.
struct Place {
  net::IpAddress ip;
  uint16_t port = 0;

  bool operator==(const Place&) const = default;
};

std::string Write(const Handle& handle, size_t rails) {
  std::vector<Place> places;
  std::string entries;
  for (const HandleRail& rail : absl::MakeSpan(handle.rails).first(rails)) {
    const Place place{rail.ip, rail.port};
    const auto found = std::find(places.begin(), places.end(), place);
    const auto index = static_cast<size_t>(found - places.begin());
    if (found == places.end()) places.push_back(place);
    const uint8_t kind = rail.kind == RailKind::kVerbs ? kVerbsBit : 0;
    entries.push_back(static_cast<char>(kind | static_cast<uint8_t>(rail.rail)));
    entries.push_back(static_cast<char>(index));
  }
  WireWriter writer;
  writer.Raw(kMagic);
  writer.U8(kVersion);
  writer.U8(static_cast<uint8_t>(handle.frames));
  writer.Raw(handle.token);
  writer.U8(static_cast<uint8_t>(places.size()));
  for (const Place& place : places) {
    const std::string bytes = place.ip.Bytes();
    writer.U8(static_cast<uint8_t>(bytes.size()));
    writer.Raw(bytes);
    writer.U16(place.port);
  }
  writer.U8(static_cast<uint8_t>(rails));
  writer.Raw(entries);
  return writer.Take();
}

std::string Token(const std::string& base, bool receiver, RailKind kind, int rail,
                  uint32_t sender) {
  std::string token = base;
  auto first = static_cast<uint8_t>(token[0]);
  first = receiver ? first | kSenderBit : first & ~kSenderBit;
  token[0] = static_cast<char>(first);
  WireWriter writer;
  writer.Raw(token);
  writer.U8(static_cast<uint8_t>((kind == RailKind::kVerbs ? kVerbsBit : 0) | rail));
  writer.U32(sender);
  return writer.Take();
}

}  // namespace

static_assert(kTokenBaseBytes + 1 == transport::kTokenRandom);

EncodedHandle Encode(const Handle& handle) {
  EncodedHandle encoded;
  size_t rails = handle.rails.size();
  std::string bytes = Write(handle, rails);
  while (bytes.size() > encoded.bytes.size()) bytes = Write(handle, --rails);
  std::copy(bytes.begin(), bytes.end(), encoded.bytes.begin());
  encoded.left_out = handle.rails.size() - rails;
  return encoded;
}

absl::StatusOr<Handle> ParseHandle(absl::Span<const char> bytes) {
  WireReader reader(absl::string_view(bytes.data(), bytes.size()));
  if (reader.Raw(kMagic.size()) != kMagic) {
    return absl::InvalidArgumentError(
        "the handle of the receiver is of another network plugin: all ranks need the same "
        "NCCL_NET_PLUGIN and NCCL_NET");
  }
  const uint8_t version = reader.U8();
  if (version != kVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("the receiver's plugin speaks version ", version, ", and this one version ",
                     kVersion, ": install one version of Railhead in all pods of the job"));
  }
  const auto malformed = [] {
    return absl::InvalidArgumentError("the receiver's handle is malformed");
  };
  Handle handle;
  const uint8_t frames = reader.U8();
  if (frames > static_cast<uint8_t>(config::FrameWish::kEncrypted)) return malformed();
  handle.frames = static_cast<config::FrameWish>(frames);
  handle.token = std::string(reader.Raw(kTokenBaseBytes));
  std::vector<Place> places(reader.U8());
  for (Place& place : places) {
    const absl::StatusOr<net::IpAddress> ip = net::IpAddress::FromBytes(reader.Raw(reader.U8()));
    place.port = reader.U16();
    if (!ip.ok() || place.port == 0) return malformed();
    place.ip = *ip;
  }
  const uint8_t rails = reader.U8();
  for (size_t i = 0; i < rails && reader.ok(); ++i) {
    const uint8_t name = reader.U8();
    const uint8_t place = reader.U8();
    if (place >= places.size()) return malformed();
    handle.rails.push_back({(name & kVerbsBit) != 0 ? RailKind::kVerbs : RailKind::kTcp,
                            name & ~kVerbsBit & 0xff, places[place].ip, places[place].port});
  }
  if (!reader.ok()) return malformed();
  return handle;
}

std::string ReceiverToken(const std::string& base, RailKind kind, int rail) {
  return Token(base, true, kind, rail, 0);
}

std::string SenderToken(const std::string& base, RailKind kind, int rail, uint32_t sender) {
  return Token(base, false, kind, rail, sender);
}

}  // namespace railhead::nccl
