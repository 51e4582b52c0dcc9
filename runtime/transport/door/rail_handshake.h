// SPDX-License-Identifier: Apache-2.0
//
// How the two ends of a connection of a rail make sure of each other: of the first one, and of each
// that follows when it was lost.
//
//   who dials                                          who listens
//   Hello: whose and for whom, number, nonce, MAC  -->
//                                                  <-- Answer: nonce, MAC
//   Confirmation: MAC                              -->
//
// All MACs are under a key that the job's ranks alone have (RailKey). Each is over a label of its
// own, the number of the rail, and everything that was said before. So
// - what was recorded earlier answers no new nonce (replay), and a Hello opens nothing twice, since
//   the numbers of who dials only grow (Hall);
// - no MAC serves as another, nor in the other direction (reflection, swapped tokens);
// - what belongs to another rail, rank or session is worth nothing here (splice): the tokens name
//   the ranks, and are drawn anew for each rail of each communicator.
// It does not hold off a relay, which passes the handshake on and then changes what follows: for
// that, what follows has keys of its own (LineKeys).
//
// Pure: bytes in, bytes out; no socket, no clock, no source of randomness.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_DOOR_RAIL_HANDSHAKE_H_
#define RAILHEAD_RUNTIME_TRANSPORT_DOOR_RAIL_HANDSHAKE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace railhead::transport {

// What says which hall this is: random bytes, and the rank. No secret: it crosses the network.
inline constexpr size_t kTokenRandom = 12;
inline constexpr size_t kTokenSize = kTokenRandom + sizeof(uint32_t);
inline constexpr size_t kRailNonceSize = 16;

// What the ranks of a job have in common and others do not, for one rail.
struct RailKey {
  std::string key;
  uint32_t rail = 0;
};

struct RailHello {
  std::string from;     // the token of who dials
  std::string to;       // and of who listens
  uint64_t number = 0;  // greater than in any earlier one from the same hall
  std::string nonce;
};
std::string EncodeRailHello(const RailKey& key, const RailHello& hello);
size_t RailHelloSize();
// Nothing, unless it comes from somebody with this key.
std::optional<RailHello> ParseRailHello(const RailKey& key, absl::string_view bytes);
// Whether these may be the first bytes of a Hello for that token.
bool MayBeRailHello(absl::string_view bytes, absl::string_view to);

// Of one connection, for each direction its own.
struct LineKeys {
  std::string send;
  std::string receive;
};

// One side's part, from the Hello on, which is taken to be right.
class RailHandshake {
 public:
  static RailHandshake OfDialer(RailKey key, std::string hello);
  static RailHandshake OfListener(RailKey key, std::string hello, const std::string& nonce);

  // What this side begins with: the Hello, or the Answer.
  std::string Begin() const;
  // How many bytes the other side says then.
  size_t expected() const;
  // When they are here: what this side says to them, perhaps nothing. No value: the other side does
  // not have the key, and this is over.
  std::optional<std::string> Receive(absl::string_view bytes);
  // Whether the other side has proven that it has the key.
  bool proven() const { return proven_; }
  // Once it is proven.
  LineKeys keys() const;

 private:
  RailHandshake(RailKey key, bool dials, std::string hello)
      : key_(std::move(key)), dials_(dials), hello_(std::move(hello)) {}
  std::string Prove(absl::string_view label, absl::string_view said) const;

  RailKey key_;
  bool dials_;
  bool proven_ = false;
  std::string hello_;
  std::string answer_;
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_DOOR_RAIL_HANDSHAKE_H_
