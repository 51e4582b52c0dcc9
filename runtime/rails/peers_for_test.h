// SPDX-License-Identifier: Apache-2.0
//
// Two peers connected by rails that are made up, and a mesh of one of them, for tests.
#ifndef RAILHEAD_RUNTIME_RAILS_PEERS_FOR_TEST_H_
#define RAILHEAD_RUNTIME_RAILS_PEERS_FOR_TEST_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/alarm.h"
#include "runtime/base/log.h"
#include "runtime/collectives/messenger.h"
#include "runtime/rails/mesh.h"
#include "runtime/rails/peer.h"
#include "runtime/testing/fake_link.h"
#include "runtime/transport/link.h"

namespace railhead::rails {

// What depends on time has tests of its own (rail_scheduler_test.cc).
inline const absl::Time kNow = absl::UnixEpoch();

inline absl::Span<std::byte> Bytes(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}
inline absl::Span<const std::byte> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline collectives::ReceiveBuffer Into(std::string& text) {
  collectives::ReceiveBuffer buffer;
  buffer.data = Bytes(text).data();
  buffer.size = text.size();
  return buffer;
}

// A frame of a transfer of `size` bytes.
inline transport::FrameHeader Frame(uint64_t transfer, uint64_t offset, uint64_t size) {
  transport::FrameHeader header;
  header.transfer = transfer;
  header.offset = offset;
  header.size = size;
  return header;
}

inline std::string Random(std::mt19937& random, size_t size) {
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

// The two sides of a connection, and the made-up links of its rails.
struct PeerPair {
  std::unique_ptr<Peer> a;
  std::unique_ptr<Peer> b;
  std::vector<railhead::testing::FakeLink*> links_a;
  std::vector<railhead::testing::FakeLink*> links_b;
};

inline PeerPair MakePeers(size_t rails, const std::vector<size_t>& payload_limits = {}) {
  PeerPair pair;
  std::vector<Rail> rails_a;
  std::vector<Rail> rails_b;
  for (size_t i = 0; i < rails; ++i) {
    auto [a, b] = railhead::testing::FakePair();
    if (i < payload_limits.size()) a->payload_limit = b->payload_limit = payload_limits[i];
    pair.links_a.push_back(a.get());
    pair.links_b.push_back(b.get());
    const RailName name{static_cast<int>(i), absl::StrCat("rxe", i), 1, "verbs"};
    rails_a.push_back({name, std::move(a)});
    rails_b.push_back({name, std::move(b)});
  }
  pair.a = std::make_unique<Peer>("rank 1 (pod b)", std::move(rails_a));
  pair.b = std::make_unique<Peer>("rank 0 (pod a)", std::move(rails_b));
  return pair;
}

inline void BeLazy(PeerPair& pair) {
  for (const auto& links : {pair.links_a, pair.links_b}) {
    for (railhead::testing::FakeLink* link : links) link->lazy = true;
  }
}

inline std::unique_ptr<Mesh> MeshOf(std::unique_ptr<Peer> peer, Alarm alarm = {},
                                    Reach reach = {}) {
  std::map<int, std::unique_ptr<Peer>> peers;
  peers[1] = std::move(peer);
  return *Mesh::Create(std::move(peers), alarm, std::move(reach));
}

// The same over TCP, with a log: their rails may be lost and return.
inline PeerPair MakeRecoveringPeers(size_t rails, LogLevel level = LogLevel::kError) {
  PeerPair pair;
  std::vector<Rail> rails_a;
  std::vector<Rail> rails_b;
  for (size_t i = 0; i < rails; ++i) {
    auto [a, b] = railhead::testing::FakePair();
    pair.links_a.push_back(a.get());
    pair.links_b.push_back(b.get());
    const RailName name{static_cast<int>(i), absl::StrCat("eth", i), 0, "tcp"};
    rails_a.push_back({name, std::move(a)});
    rails_b.push_back({name, std::move(b)});
  }
  const Logger log(level, "");
  pair.a = std::make_unique<Peer>("rank 1 (pod b)", std::move(rails_a), log);
  pair.b = std::make_unique<Peer>("rank 0 (pod a)", std::move(rails_b), log);
  return pair;
}

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_PEERS_FOR_TEST_H_
