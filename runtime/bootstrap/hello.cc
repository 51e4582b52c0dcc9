// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/hello.h"

#include "absl/status/status.h"
#include "base/printable_text.h"
#include "runtime/base/wire.h"
#include "runtime/bootstrap/messages.h"
#include "runtime/bootstrap/secret.h"
#include "runtime/bootstrap/starter.h"

namespace railhead::bootstrap {
namespace {

constexpr size_t kTroubleLimit = 512;

// Bits of a refusal.
constexpr uint8_t kFinal = 1;
constexpr uint8_t kNotOpen = 2;

}  // namespace

std::string EncodeHello(const Hello& hello) {
  WireWriter writer;
  writer.U32(hello.version);
  writer.U32(hello.world_size);
  writer.U32(hello.rank);
  writer.U32(hello.host_rank);
  writer.U8(hello.has_secret ? 1 : 0);
  writer.String(hello.job);
  writer.String(hello.name);
  writer.Raw(hello.nonce);
  writer.String(EncodePlace(hello.listens_at));
  writer.String(PrintableText(hello.trouble, kTroubleLimit));
  writer.String(PrintableText(hello.launch, kLaunchLimit));
  writer.String(PrintableText(hello.starter, kStarterLimit));
  return writer.Take();
}

absl::StatusOr<Hello> ParseHello(absl::string_view payload) {
  WireReader reader(payload);
  Hello hello;
  hello.version = reader.U32();
  hello.world_size = reader.U32();
  hello.rank = reader.U32();
  if (reader.ok() && hello.version != kProtocolVersion) return hello;
  hello.host_rank = reader.U32();
  hello.has_secret = reader.U8() != 0;
  hello.job = reader.String(kHelloLimit);
  hello.name = PrintableText(reader.String(kHelloLimit), kHelloLimit);
  hello.nonce = std::string(reader.Raw(kNonceSize));
  const absl::StatusOr<std::optional<net::SocketAddress>> listens_at =
      ParsePlace(reader.String(kPlaceLimit));
  hello.trouble = PrintableText(reader.String(kTroubleLimit), kTroubleLimit);
  hello.launch = PrintableText(reader.String(kLaunchLimit), kLaunchLimit);
  hello.starter = PrintableText(reader.String(kStarterLimit), kStarterLimit);
  if (!reader.Complete() || !listens_at.ok()) {
    return absl::InvalidArgumentError("a malformed introduction");
  }
  hello.listens_at = *listens_at;
  return hello;
}

std::string EncodeChallenge(const Challenge& challenge) {
  WireWriter writer;
  writer.String(challenge.name);
  writer.Raw(challenge.nonce);
  return writer.Take();
}

absl::StatusOr<Challenge> ParseChallenge(absl::string_view payload) {
  WireReader reader(payload);
  Challenge challenge;
  challenge.name = PrintableText(reader.String(kHelloLimit), kHelloLimit);
  challenge.nonce = std::string(reader.Raw(kNonceSize));
  if (!reader.Complete()) return absl::InvalidArgumentError("a malformed challenge");
  return challenge;
}

std::string EncodeRefusal(const Refusal& refusal) {
  WireWriter writer;
  writer.U8(static_cast<uint8_t>((refusal.final ? kFinal : 0) | (refusal.not_open ? kNotOpen : 0)));
  writer.String(refusal.text);
  return writer.Take();
}

absl::StatusOr<Refusal> ParseRefusal(absl::string_view payload) {
  WireReader reader(payload);
  Refusal refusal;
  const uint8_t bits = reader.U8();
  refusal.final = (bits & kFinal) != 0;
  refusal.not_open = (bits & kNotOpen) != 0;
  refusal.text = PrintableText(reader.String(kHelloLimit), kHelloLimit);
  if (!reader.Complete()) return absl::InvalidArgumentError("a malformed refusal");
  return refusal;
}

}  // namespace railhead::bootstrap
