// SPDX-License-Identifier: Apache-2.0
//
// Mutual authentication of the two ends of a rail's connection, at first and at every reconnection.
// Used by Acceptor and Reconnector.
//
//   dialing side                                       accepting side
//   Hello: tokens, number, nonce, MAC              -->
//                                                  <-- Answer: nonce, MAC
//   Confirmation: MAC                              -->
//
// All MACs use a key that only the job's ranks have (RailKey). Each covers a unique label, the
// rail's number, and all earlier messages. Therefore:
// - A recorded message answers no new nonce (replay), and each Hello is accepted once, because the
//   numbers of a dialing side only increase (Acceptor).
// - A MAC is valid neither as another nor in the other direction (reflection, swapped tokens).
// - Messages of another rail, rank or session are invalid (splice): tokens name the ranks, and are
//   drawn for each rail of each communicator.
// The handshake does not prevent a relay that passes it on and then changes later bytes: these have
// keys of their own (LineKeys).
//
// Pure: bytes in, bytes out; no socket, clock or random source.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_CONNECT_RAIL_HANDSHAKE_H_
#define RAILHEAD_RUNTIME_TRANSPORT_CONNECT_RAIL_HANDSHAKE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace railhead::transport {

// Identity of an acceptor: random bytes and the rank. Not secret: it crosses the network.
inline constexpr size_t kTokenRandom = 12;
inline constexpr size_t kTokenSize = kTokenRandom + sizeof(uint32_t);
inline constexpr size_t kRailNonceSize = 16;

// Shared secret of the job's ranks for one rail.
struct RailKey {
  std::string key;
  uint32_t rail = 0;
};

struct RailHello {
  std::string from;     // token of the dialing side
  std::string to;       // token of the accepting side
  uint64_t number = 0;  // greater than in any earlier Hello of the same acceptor
  std::string nonce;
};
std::string EncodeRailHello(const RailKey& key, const RailHello& hello);
size_t RailHelloSize();
// Returns nullopt unless the Hello was made with this key.
std::optional<RailHello> ParseRailHello(const RailKey& key, absl::string_view bytes);
// Returns true if these can be the first bytes of a Hello.
bool MayBeRailHello(absl::string_view bytes);
// Returns the token of the accepting side that these first bytes of a Hello name; nullopt if there
// are too few of them, or if they are of no Hello. It is not authenticated.
std::optional<absl::string_view> RailHelloTarget(absl::string_view bytes);

// Keys of one connection, one per direction.
struct LineKeys {
  std::string send;
  std::string receive;
};

// One side of the handshake, starting with a verified Hello.
class RailHandshake {
 public:
  static RailHandshake OfDialer(RailKey key, std::string hello);
  static RailHandshake OfListener(RailKey key, std::string hello, const std::string& nonce);

  // Returns the first message of this side: the Hello or the Answer.
  std::string Begin() const;
  // Returns the size of the other side's next message in bytes.
  size_t expected() const;
  // Processes that message and returns this side's response, possibly empty. Nullopt: the other
  // side does not have the key; close the connection.
  std::optional<std::string> Receive(absl::string_view bytes);
  // Returns true if the other side has proven that it has the key.
  bool proven() const { return proven_; }
  // Valid if proven().
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

#endif  // RAILHEAD_RUNTIME_TRANSPORT_CONNECT_RAIL_HANDSHAKE_H_
