// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/connect/acceptor.h"

#include <mutex>

#include "runtime/base/now.h"
#include "runtime/base/random.h"
#include "runtime/base/wire.h"

namespace railhead::transport {
namespace {

// Interval of checks by callers that never sleep; others are woken by a new connection.
constexpr absl::Duration kLookPause = absl::Milliseconds(100);
// Maximum delay until an interface that gets an address is used.
constexpr absl::Duration kRenewalPause = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::shared_ptr<Acceptor>> Acceptor::Open(Listen listen, size_t peers, uint32_t rank,
                                                         RailKey key,
                                                         std::shared_ptr<WakeEvent> wake) {
  const absl::StatusOr<std::string> random = RandomBytes(kTokenRandom);
  if (!random.ok()) return random.status();
  WireWriter token;
  token.Raw(*random);
  token.U32(rank);
  return OpenAs(token.Take(), std::move(listen), peers, std::move(key), std::move(wake));
}

std::shared_ptr<Acceptor> Acceptor::OpenAs(std::string token, Listen listen, size_t peers,
                                           RailKey key, std::shared_ptr<WakeEvent> wake) {
  std::shared_ptr<Acceptor> acceptor =
      OpenUntold(std::move(token), std::move(listen), peers, std::move(key), std::move(wake));
  acceptor->told_port_ = acceptor->own_.port;
  acceptor->told_ip_ = acceptor->own_.ip;
  return acceptor;
}

std::shared_ptr<Acceptor> Acceptor::OpenUntold(std::string token, Listen listen, size_t peers,
                                               RailKey key, std::shared_ptr<WakeEvent> wake) {
  std::shared_ptr<Acceptor> acceptor(
      new Acceptor(std::move(listen), std::move(token), peers, std::move(key), std::move(wake)));
  acceptor->Renew(MonotonicNow()).IgnoreError();
  return acceptor;
}

Acceptor::Acceptor(Listen listen, std::string token, size_t peers, RailKey key,
                   std::shared_ptr<WakeEvent> wake)
    : listen_(std::move(listen)),
      own_{{}, 0, std::move(token)},
      inbox_{own_.token, std::move(key), peers, std::move(wake)} {}

absl::Status Acceptor::Renew(absl::Time now) {
  if (now < next_renewal_) return no_listener_;
  next_renewal_ = now + kRenewalPause;
  absl::StatusOr<std::shared_ptr<RailListener>> listener = listen_();
  if (!listener.ok()) {
    // The one that there is may still get connections.
    if (listener_ == nullptr) no_listener_ = listener.status();
    return no_listener_;
  }
  no_listener_ = absl::OkStatus();
  if (*listener == listener_) return no_listener_;
  if (listener_ != nullptr) listener_->Remove(inbox_);
  {
    const std::lock_guard<std::mutex> lock(listener_mutex_);
    listener_.swap(*listener);
  }
  own_.ip = listener_->ip();
  own_.port = listener_->port();
  listener_->Add(inbox_);
  return no_listener_;
}

std::shared_ptr<RailInterface> Acceptor::interface() const {
  const std::lock_guard<std::mutex> lock(listener_mutex_);
  return listener_ != nullptr ? listener_->interface() : nullptr;
}

std::string Acceptor::Address() const {
  WireWriter writer;
  writer.String(own_.port != 0 ? own_.ip.Bytes() : "");
  writer.U16(own_.port);
  writer.Raw(own_.token);
  return writer.Take();
}

absl::StatusOr<Acceptor::Place> Acceptor::ParsePlace(absl::string_view address) {
  WireReader reader(address);
  const std::string bytes = reader.String(16);
  Place place;
  place.port = reader.U16();
  place.token = std::string(reader.Raw(kTokenSize));
  const absl::StatusOr<net::IpAddress> ip = net::IpAddress::FromBytes(bytes);
  if (!reader.Complete() || (place.port == 0 ? !bytes.empty() : !ip.ok())) {
    return absl::InvalidArgumentError("the peer's TCP address is malformed");
  }
  if (ip.ok()) place.ip = *ip;
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

std::string Acceptor::MovedTo() const {
  const bool moved = own_.port != told_port_ || own_.ip != told_ip_;
  return moved ? Address() : "";
}

std::vector<uint32_t> Acceptor::Callers() const {
  std::vector<uint32_t> ranks;
  if (listener_ == nullptr) return ranks;
  for (const std::string& token : listener_->Callers(inbox_)) {
    ranks.push_back(WireReader(absl::string_view(token).substr(kTokenRandom)).U32());
  }
  return ranks;
}

}  // namespace railhead::transport
