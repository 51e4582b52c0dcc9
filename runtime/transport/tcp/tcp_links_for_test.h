// SPDX-License-Identifier: Apache-2.0
//
// TCP links, what moves them, and what protects their frames, for tests.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_LINKS_FOR_TEST_H_
#define RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_LINKS_FOR_TEST_H_

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/now.h"
#include "runtime/testing/acceptors.h"
#include "runtime/testing/tcp_pair.h"
#include "runtime/transport/connect/acceptor.h"
#include "runtime/transport/link.h"
#include "runtime/transport/tcp/frame_protection.h"
#include "runtime/transport/tcp/frame_seal.h"

namespace railhead::transport {

inline absl::Time In(double seconds) { return MonotonicNow() + absl::Seconds(seconds); }

inline std::shared_ptr<Acceptor> AHall() { return railhead::testing::OpenAcceptor(); }

inline absl::Span<const std::byte> Bytes(absl::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline railhead::testing::TcpPair Connected(FrameProtection protection = FrameProtection::kNone) {
  return railhead::testing::ConnectedTcp(protection);
}

// What this build and CPU can do.
inline std::vector<FrameProtection> Protections() {
  std::vector<FrameProtection> all = {FrameProtection::kSigned, FrameProtection::kChaCha20Poly1305};
  if (HasAes256Gcm()) all.push_back(FrameProtection::kAes256Gcm);
  return all;
}

inline std::string NameOf(FrameProtection protection) {
  constexpr std::array<const char*, 4> kNames = {"Plain", "Signed", "ChaCha20", "Aes"};
  return kNames[static_cast<size_t>(protection)];
}

// Runs without protection of frames, and with each that there is (tcp_frames_test.cc).
class FramesTest : public ::testing::TestWithParam<FrameProtection> {};
inline const auto name_of_frames = [](const auto& info) { return NameOf(info.param); };

inline absl::StatusOr<bool> Drop(Link& link) {
  return link.Poll([](const FrameHeader&, absl::Span<const std::byte>) { return true; }).moved;
}

inline uint64_t Unacknowledged(Link& link) {
  return link.Poll([](const FrameHeader&, absl::Span<const std::byte>) { return false; })
      .unacknowledged;
}

// Polls until the link reports an error.
inline absl::Status ErrorOf(Link& link) {
  const absl::Time deadline = In(20);
  while (MonotonicNow() < deadline) {
    if (const absl::StatusOr<bool> moved = Drop(link); !moved.ok()) return moved.status();
  }
  return absl::OkStatus();
}

// Moves both links, until what is waited for has come.
template <class Done>
void PumpUntil(Link& a, Link& b, Done done) {
  const absl::Time deadline = In(20);
  while (!done()) {
    ASSERT_LT(MonotonicNow(), deadline);
    for (Link* link : {&a, &b}) {
      if (!Drop(*link).ok()) link->Reconnect(MonotonicNow()).IgnoreError();
    }
  }
}

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_LINKS_FOR_TEST_H_
