// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/connect/rail_handshake.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/mac.h"
#include "runtime/base/wire.h"

namespace railhead::transport {
namespace {

// Raised whenever ranks of different builds could misunderstand each other on a rail.
constexpr absl::string_view kRailMagic = "RHT4";
constexpr size_t kHelloBody =
    kRailMagic.size() + 2 * kTokenSize + sizeof(uint64_t) + kRailNonceSize;
constexpr size_t kAnswerSize = kRailNonceSize + kMacSize;

constexpr absl::string_view kAsHello = "railhead rail: hello";
constexpr absl::string_view kAsAnswer = "railhead rail: answer";
constexpr absl::string_view kAsConfirmation = "railhead rail: confirmation";
constexpr absl::string_view kFromDialer = "railhead rail: from who dials";
constexpr absl::string_view kFromListener = "railhead rail: from who listens";

std::string RailMac(const RailKey& key, absl::string_view label, absl::string_view first,
                    absl::string_view second = "") {
  WireWriter rail;
  rail.U32(key.rail);
  return Mac(key.key, label, {rail.Take(), first, second});
}

}  // namespace

size_t RailHelloSize() { return kHelloBody + kMacSize; }

std::string EncodeRailHello(const RailKey& key, const RailHello& hello) {
  WireWriter writer;
  writer.Raw(kRailMagic);
  writer.Raw(hello.from);
  writer.Raw(hello.to);
  writer.U64(hello.number);
  writer.Raw(hello.nonce);
  std::string body = writer.Take();
  return body + RailMac(key, kAsHello, body);
}

std::optional<RailHello> ParseRailHello(const RailKey& key, absl::string_view bytes) {
  if (bytes.size() != RailHelloSize()) return std::nullopt;
  const absl::string_view body = bytes.substr(0, kHelloBody);
  if (!SameMac(bytes.substr(kHelloBody), RailMac(key, kAsHello, body))) return std::nullopt;
  WireReader reader(body);
  if (reader.Raw(kRailMagic.size()) != kRailMagic) return std::nullopt;
  RailHello hello;
  hello.from = std::string(reader.Raw(kTokenSize));
  hello.to = std::string(reader.Raw(kTokenSize));
  hello.number = reader.U64();
  hello.nonce = std::string(reader.Raw(kRailNonceSize));
  return hello;
}

bool MayBeRailHello(absl::string_view bytes) {
  return bytes.size() <= RailHelloSize() &&
         absl::StartsWith(kRailMagic, bytes.substr(0, kRailMagic.size()));
}

std::optional<absl::string_view> RailHelloTarget(absl::string_view bytes) {
  constexpr size_t kTo = kRailMagic.size() + kTokenSize;
  if (!MayBeRailHello(bytes) || bytes.size() < kTo + kTokenSize) return std::nullopt;
  return bytes.substr(kTo, kTokenSize);
}

RailHandshake RailHandshake::OfDialer(RailKey key, std::string hello) {
  return RailHandshake(std::move(key), true, std::move(hello));
}

RailHandshake RailHandshake::OfListener(RailKey key, std::string hello, const std::string& nonce) {
  RailHandshake handshake(std::move(key), false, std::move(hello));
  handshake.answer_ = nonce + handshake.Prove(kAsAnswer, nonce);
  return handshake;
}

std::string RailHandshake::Prove(absl::string_view label, absl::string_view said) const {
  return RailMac(key_, label, hello_, said);
}

std::string RailHandshake::Begin() const { return dials_ ? hello_ : answer_; }

size_t RailHandshake::expected() const {
  if (proven_) return 0;
  return dials_ ? kAnswerSize : kMacSize;
}

std::optional<std::string> RailHandshake::Receive(absl::string_view bytes) {
  if (proven_ || bytes.size() != expected()) return std::nullopt;
  if (!dials_) {
    if (!SameMac(bytes, Prove(kAsConfirmation, answer_))) return std::nullopt;
    proven_ = true;
    return "";
  }
  const absl::string_view nonce = bytes.substr(0, kRailNonceSize);
  if (!SameMac(bytes.substr(kRailNonceSize), Prove(kAsAnswer, nonce))) return std::nullopt;
  proven_ = true;
  answer_ = std::string(bytes);
  return Prove(kAsConfirmation, answer_);
}

LineKeys RailHandshake::keys() const {
  LineKeys keys{Prove(kFromDialer, answer_), Prove(kFromListener, answer_)};
  if (!dials_) std::swap(keys.send, keys.receive);
  return keys;
}

}  // namespace railhead::transport
