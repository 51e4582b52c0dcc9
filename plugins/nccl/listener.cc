// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/listener.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/random.h"
#include "runtime/base/wire.h"
#include "runtime/comm/setup/tcp_rail.h"
#include "runtime/rails/peer.h"

namespace railhead::nccl {
namespace {

using transport::Acceptor;
using transport::FrameProtection;

// Of a listener: NCCL makes one connection from each.
constexpr size_t kMostSenders = 16;

// The number of a sender tells the receiver what the sender has chosen: how frames are protected,
// and which of the rails of this kind in the handle it uses, in their order. The rest is random.
constexpr uint32_t kProtectionMask = 3;
constexpr uint32_t kFirstRailBit = 2;
constexpr size_t kMostRails = 16;  // of a kind
constexpr uint32_t kRandomMask = ~((uint32_t{1} << (kFirstRailBit + kMostRails)) - 1);

uint32_t RailBit(size_t index) { return uint32_t{1} << (kFirstRailBit + index); }

transport::RailKey KeyOf(const LocalRails& rails, const std::string& token, int rail) {
  return {rails.secret().Mac("railhead nccl rails", {token}), static_cast<uint32_t>(rail)};
}

Acceptor::Listen ListenOn(const comm::ChosenRail& rail, const Logger& log) {
  return [listens = rail.listens, name = rails::ToString(rail.name), log] {
    return comm::ListenerOf(listens, name, log);
  };
}

FrameProtection ProtectionFor(config::FrameWish wish) {
  switch (wish) {
    case config::FrameWish::kPlain:
      return FrameProtection::kNone;
    case config::FrameWish::kSigned:
      return FrameProtection::kSigned;
    case config::FrameWish::kEncrypted:
      break;
  }
  return FrameProtection::kChaCha20Poly1305;
}

// Returns the address of an acceptor, as Acceptor::ParsePlace reads it. Without a port: none yet.
std::string AddressOf(const std::optional<net::IpAddress>& ip, uint16_t port,
                      const std::string& token) {
  WireWriter writer;
  writer.String(ip.has_value() ? ip->Bytes() : "");
  writer.U16(port);
  writer.Raw(token);
  return writer.Take();
}

struct End {
  const comm::ChosenRail* rail = nullptr;
  std::shared_ptr<Acceptor> acceptor;
  std::string peer_address;
  std::optional<net::SocketAddress> peer_place = std::nullopt;  // if it is known
};

// `receiver`: the receiver's process, if this is the sender; `home`: see Connect.
absl::StatusOr<std::unique_ptr<Connection>> ConnectionOver(
    const LocalRails& rails, const std::vector<End>& ends, FrameProtection protection,
    const std::optional<net::SocketAddress>& receiver, std::shared_ptr<transport::WakeEvent> wake,
    std::shared_ptr<std::mutex> mutex, std::optional<int> home = std::nullopt) {
  const std::string peer =
      receiver.has_value()
          ? absl::StrCat("the receiver at ", net::HostPort(receiver->address, receiver->port))
          : "the sender";
  std::vector<rails::Rail> made;
  for (const End& end : ends) {
    comm::ChosenRail rail = *end.rail;
    rail.protection = protection;
    absl::StatusOr<std::unique_ptr<transport::Link>> link =
        rail.Open(end.acceptor, end.peer_address, peer);
    if (!link.ok()) return link.status();
    made.push_back({rail.name, *std::move(link)});
  }
  Connection::Options options;
  options.peer_name = peer;
  // The sender reports, once for all connections to a process, and the receiver does not.
  bool speaks = false;
  if (receiver.has_value()) options.speaker = rails.SpeakerTo(peer, speaks);
  const Logger quiet(LogLevel::kError, "NCCL plugin");
  options.peer = std::make_unique<rails::Peer>(peer, std::move(made), speaks ? rails.log() : quiet);
  for (const End& end : ends) {
    if (receiver.has_value()) options.addresses.push_back(end.acceptor->Address());
    if (end.peer_place.has_value()) options.places.push_back(*end.peer_place);
    if (end.rail->name.rail == home) options.home = options.devices.size();
    options.devices.push_back(end.rail->device);
  }
  options.wake = std::move(wake);
  options.mutex = std::move(mutex);
  options.show = [&rails](LocalRails::ReadRails read) { return rails.Show(std::move(read)); };
  options.timeout = rails.settings().timeout;
  options.log = rails.log();
  return Connection::Open(std::move(options));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Start(const LocalRails& rails) {
  absl::StatusOr<std::string> token = RandomBytes(kTokenBaseBytes);
  if (!token.ok()) return token.status();
  std::unique_ptr<Listener> listener(new Listener(rails));
  listener->token_ = *std::move(token);
  Handle handle;
  handle.token = listener->token_;
  handle.frames = rails.settings().frames;
  absl::Status trouble;
  for (const RailKind kind : {RailKind::kVerbs, RailKind::kTcp}) {
    for (const comm::ChosenRail& rail : rails.Of(kind)) {
      const int number = rail.name.rail;
      std::shared_ptr<Acceptor> acceptor = Acceptor::OpenAs(
          ReceiverToken(listener->token_, kind, number), ListenOn(rail, rails.log()), kMostSenders,
          KeyOf(rails, listener->token_, number), listener->wake_);
      auto& acceptors = listener->acceptors_[static_cast<size_t>(kind)];
      const Acceptor::Place& own = acceptor->own();
      if (own.port == 0) trouble.Update(acceptor->Renew(absl::InfiniteFuture()));
      if (own.port == 0 || number > kMostRail || acceptors.size() == kMostRails) continue;
      handle.rails.push_back({kind, number, own.ip, own.port});
      acceptors.push_back({&rail, std::move(acceptor)});
    }
  }
  if (handle.rails.empty()) {
    return trouble.ok() ? absl::UnavailableError("no rail can accept connections") : trouble;
  }
  const EncodedHandle encoded = Encode(handle);
  if (encoded.left_out > 0) {
    rails.log().Warn(absl::StrCat("the last ", encoded.left_out, " of ", handle.rails.size(),
                                  " rails are not used: NCCL's handle has no room for them"));
  }
  listener->handle_ = encoded.bytes;
  return listener;
}

absl::StatusOr<std::unique_ptr<Connection>> Listener::Accept() {
  const std::lock_guard<std::mutex> lock(*mutex_);
  for (const RailKind kind : {RailKind::kVerbs, RailKind::kTcp}) {
    const auto& open = acceptors_[static_cast<size_t>(kind)];
    for (const Open& caller : open) {
      for (const uint32_t sender : caller.acceptor->Callers()) {
        if (!accepted_.insert(sender).second) continue;
        const auto protection = static_cast<FrameProtection>(sender & kProtectionMask);
        if (protection < ProtectionFor(rails_.settings().frames) ||
            protection > FrameProtection::kChaCha20Poly1305) {
          rails_.log().Warn(
              "rejected a sender: its frames are not protected as RAILHEAD_AUTH requires");
          continue;
        }
        std::vector<End> ends;
        for (size_t k = 0; k < open.size(); ++k) {
          if ((sender & RailBit(k)) == 0) continue;
          ends.push_back({open[k].rail, open[k].acceptor,
                          AddressOf(std::nullopt, 0,
                                    SenderToken(token_, kind, open[k].rail->name.rail, sender))});
        }
        return ConnectionOver(rails_, ends, protection, std::nullopt, wake_, mutex_);
      }
    }
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<Connection>> Connect(const LocalRails& rails,
                                                    absl::Span<const char> bytes,
                                                    std::optional<int> home) {
  const absl::StatusOr<Handle> handle = ParseHandle(bytes);
  if (!handle.ok()) return handle.status();
  const absl::StatusOr<std::string> random = RandomBytes(sizeof(uint32_t));
  if (!random.ok()) return random.status();
  const config::FrameWish frames = std::max(handle->frames, rails.settings().frames);
  const FrameProtection protection = ProtectionFor(frames);
  for (const RailKind kind : {RailKind::kVerbs, RailKind::kTcp}) {
    // RDMA cannot be encrypted.
    if (kind == RailKind::kVerbs && frames == config::FrameWish::kEncrypted) continue;
    uint32_t sender = (WireReader(*random).U32() & kRandomMask) | static_cast<uint32_t>(protection);
    std::vector<std::pair<const comm::ChosenRail*, const HandleRail*>> common;
    size_t index = 0;
    for (const HandleRail& theirs : handle->rails) {
      if (theirs.kind != kind) continue;
      const uint32_t bit = RailBit(std::min(index++, kMostRails - 1));
      const auto& own = rails.Of(kind);
      const auto found = std::find_if(own.begin(), own.end(), [&](const comm::ChosenRail& rail) {
        return rail.name.rail == theirs.rail;
      });
      if (found == own.end() || index > kMostRails) continue;
      sender |= bit;
      common.emplace_back(&*found, &theirs);
    }
    if (common.empty()) continue;
    if (kind == RailKind::kTcp && !rails.Of(RailKind::kVerbs).empty()) {
      rails.NoteTcp(common.front().second->ip.ToString());
    }
    const auto wake = std::make_shared<transport::WakeEvent>();
    std::vector<End> ends;
    for (const auto& [rail, theirs] : common) {
      const int number = rail->name.rail;
      ends.push_back(
          {rail,
           Acceptor::OpenUntold(SenderToken(handle->token, kind, number, sender),
                                ListenOn(*rail, rails.log()), 1,
                                KeyOf(rails, handle->token, number), wake),
           AddressOf(theirs->ip, theirs->port, ReceiverToken(handle->token, kind, number)),
           net::SocketAddress{theirs->ip, theirs->port}});
    }
    return ConnectionOver(rails, ends, protection, ends.front().peer_place, wake,
                          std::make_shared<std::mutex>(), home);
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "sender and receiver have no rail in common; the receiver's are ",
      absl::StrJoin(handle->rails, ", ", [](std::string* out, const HandleRail& rail) {
        absl::StrAppend(out, rail.kind == RailKind::kVerbs ? "RDMA rail " : "TCP rail ", rail.rail);
      })));
}

}  // namespace railhead::nccl
