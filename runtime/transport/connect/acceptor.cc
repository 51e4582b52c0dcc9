// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/connect/acceptor.h"

#include "runtime/base/random.h"
#include "runtime/base/wire.h"

namespace railhead::transport {
namespace {

// For those who never sleep: others are woken when somebody comes.
constexpr absl::Duration kLookPause = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<std::shared_ptr<Acceptor>> Acceptor::Open(std::shared_ptr<RailListener> listener,
                                                         size_t peers, uint32_t rank, RailKey key,
                                                         std::shared_ptr<WakeEvent> wake) {
  const absl::StatusOr<std::string> random = RandomBytes(kTokenRandom);
  if (!random.ok()) return random.status();
  WireWriter token;
  token.Raw(*random);
  token.U32(rank);
  Place own{listener->ip(), listener->port(), token.Take()};
  return std::shared_ptr<Acceptor>(
      new Acceptor(std::move(listener), std::move(own), peers, std::move(key), std::move(wake)));
}

Acceptor::Acceptor(std::shared_ptr<RailListener> listener, Place own, size_t peers, RailKey key,
                   std::shared_ptr<WakeEvent> wake)
    : listener_(std::move(listener)),
      own_(std::move(own)),
      inbox_{own_.token, std::move(key), peers, std::move(wake)} {
  listener_->Add(inbox_);
}

std::string Acceptor::Address() const {
  WireWriter writer;
  writer.String(own_.ip.Bytes());
  writer.U16(own_.port);
  writer.Raw(own_.token);
  return writer.Take();
}

absl::StatusOr<Acceptor::Place> Acceptor::ParsePlace(absl::string_view address) {
  WireReader reader(address);
  const absl::StatusOr<net::IpAddress> ip = net::IpAddress::FromBytes(reader.String(16));
  Place place;
  place.port = reader.U16();
  place.token = std::string(reader.Raw(kTokenSize));
  if (!reader.Complete() || !ip.ok() || place.port == 0) {
    return absl::InvalidArgumentError("the peer's TCP address is malformed");
  }
  place.ip = *ip;
  return place;
}

void Acceptor::LookRound(absl::Time now) {
  if (now < next_look_) return;
  next_look_ = now + kLookPause;
  Admit(now).IgnoreError();
}

absl::StatusOr<std::string> Acceptor::NewHello(absl::string_view to) {
  const absl::StatusOr<std::string> nonce = RandomBytes(kRailNonceSize);
  if (!nonce.ok()) return nonce.status();
  return EncodeRailHello(inbox_.key, {own_.token, std::string(to), ++hellos_, *nonce});
}

std::vector<uint32_t> Acceptor::Callers() const {
  std::vector<uint32_t> ranks;
  for (const std::string& token : listener_->Callers(inbox_)) {
    ranks.push_back(WireReader(absl::string_view(token).substr(kTokenRandom)).U32());
  }
  return ranks;
}

}  // namespace railhead::transport
