// SPDX-License-Identifier: Apache-2.0
//
// Any bytes that a stranger says to an acceptor, or answers who dials with, prove nothing. What is
// said by who has the key is read as it was meant.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "runtime/transport/connect/rail_handshake.h"

namespace railhead::transport {
namespace {

void MustHold(bool condition) {
  if (!condition) std::abort();
}

const RailKey& FuzzKey() {
  static const RailKey key{"a key of 32 bytes that none knows", 3};
  return key;
}

RailHello FuzzHello(uint64_t number) {
  return {std::string(kTokenSize, 'f'), std::string(kTokenSize, 't'), number,
          std::string(kRailNonceSize, 'n')};
}

// Strangers do not have the key, so nothing of theirs may be taken.
void Strangers(absl::string_view bytes) {
  MustHold(!ParseRailHello(FuzzKey(), bytes).has_value());
  for (size_t i = 1; i <= bytes.size(); ++i) {
    // What cannot become a Hello any more does not with more bytes.
    MustHold(MayBeRailHello(bytes.substr(0, i - 1)) || !MayBeRailHello(bytes.substr(0, i)));
    // The target does not change once it is known.
    const std::optional<absl::string_view> before = RailHelloTarget(bytes.substr(0, i - 1));
    const std::optional<absl::string_view> target = RailHelloTarget(bytes.substr(0, i));
    MustHold(!before.has_value() || !target.has_value() || *before == *target);
  }
  const std::string hello = EncodeRailHello(FuzzKey(), FuzzHello(7));
  RailHandshake dialer = RailHandshake::OfDialer(FuzzKey(), hello);
  RailHandshake listener =
      RailHandshake::OfListener(FuzzKey(), hello, std::string(kRailNonceSize, 'l'));
  for (RailHandshake* side : {&dialer, &listener}) {
    MustHold(!side->Receive(bytes).has_value() && !side->proven());
    MustHold(!side->Receive(bytes.substr(0, side->expected())).has_value() && !side->proven());
  }
}

// Two who have the key, of whom one hears what is not quite what the other said.
void Changed(absl::string_view bytes) {
  if (bytes.size() < 2) return;
  const std::string hello = EncodeRailHello(FuzzKey(), FuzzHello(8));
  RailHandshake dialer = RailHandshake::OfDialer(FuzzKey(), hello);
  RailHandshake listener =
      RailHandshake::OfListener(FuzzKey(), hello, std::string(kRailNonceSize, 'l'));
  std::string answer = listener.Begin();
  const auto flip = static_cast<char>(bytes[1]);
  char& changed = answer[static_cast<uint8_t>(bytes[0]) % answer.size()];
  changed = static_cast<char>(changed ^ flip);
  const std::optional<std::string> confirmation = dialer.Receive(answer);
  MustHold(confirmation.has_value() == (flip == 0));
  if (!confirmation.has_value()) return;
  MustHold(listener.Receive(*confirmation).has_value());
  MustHold(dialer.keys().send == listener.keys().receive &&
           dialer.keys().receive == listener.keys().send &&
           dialer.keys().send != dialer.keys().receive);
}

}  // namespace
}  // namespace railhead::transport

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  railhead::transport::Strangers(bytes);
  railhead::transport::Changed(bytes);
  return 0;
}
