// SPDX-License-Identifier: Apache-2.0
//
// Any bytes that a stranger sends to a listener, or answers a caller with, end in a refusal or in
// nothing: without the secret nobody is believed. What can be read can be written again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/handshake.h"
#include "runtime/bootstrap/hello.h"

namespace railhead::bootstrap {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void RunDoor(absl::string_view bytes, const Secret& secret) {
  HostHandshake host({0, "job", "pod a", "", "", "here|5:1,4:2|process 5 (bash)"}, secret,
                     std::string(kNonceSize, 'h'));
  FrameReader reader(kHelloLimit);
  reader.buffer()->append(bytes.data(), bytes.size());
  while (true) {
    const absl::StatusOr<std::optional<Frame>> frame = reader.Next();
    if (!frame.ok() || !frame->has_value()) break;
    Require((*frame)->payload.size() <= kHelloLimit);
    const HostHandshake::Step step = host.Receive(**frame);
    if (!step.refusal.empty()) break;
    Require(!step.reply.empty());
  }
  Require(!host.proven());
}

void RunCaller(absl::string_view bytes, const Secret& secret) {
  GuestHandshake guest({kProtocolVersion, 8, 3, 0, false, "job", "pod b",
                        std::string(kNonceSize, 'g'), std::nullopt},
                       secret);
  FrameReader reader(kHelloLimit);
  reader.buffer()->append(bytes.data(), bytes.size());
  while (true) {
    const absl::StatusOr<std::optional<Frame>> frame = reader.Next();
    if (!frame.ok() || !frame->has_value()) break;
    const GuestHandshake::Step step = guest.Receive(**frame);
    Require(!step.final);  // nobody has proven anything
    if (!step.error.ok()) break;
  }
  Require(!guest.proven());
}

void RunParsers(absl::string_view bytes) {
  if (const absl::StatusOr<Hello> hello = ParseHello(bytes);
      hello.ok() && hello->version == kProtocolVersion) {
    const absl::StatusOr<Hello> again = ParseHello(EncodeHello(*hello));
    Require(again.ok() && again->rank == hello->rank && again->job == hello->job &&
            again->name == hello->name && again->nonce == hello->nonce &&
            again->launch == hello->launch && again->starter == hello->starter);
  }
  if (const absl::StatusOr<Challenge> challenge = ParseChallenge(bytes); challenge.ok()) {
    Require(ParseChallenge(EncodeChallenge(*challenge)).ok());
  }
  if (const absl::StatusOr<Refusal> refusal = ParseRefusal(bytes); refusal.ok()) {
    Require(ParseRefusal(EncodeRefusal(*refusal))->text == refusal->text);
  }
}

}  // namespace
}  // namespace railhead::bootstrap

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  static const railhead::bootstrap::Secret secret("0123456789abcdef", "");
  railhead::bootstrap::RunDoor(bytes, secret);
  railhead::bootstrap::RunCaller(bytes, secret);
  railhead::bootstrap::RunParsers(bytes);
  return 0;
}
