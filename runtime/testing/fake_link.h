// SPDX-License-Identifier: Apache-2.0
//
// A link in memory whose every misfortune a test can choose.
#ifndef RAILHEAD_RUNTIME_TESTING_FAKE_LINK_H_
#define RAILHEAD_RUNTIME_TESTING_FAKE_LINK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/transport/link.h"

namespace railhead::testing {

struct FakeFrame {
  transport::FrameHeader header;
  std::vector<std::byte> payload;
};

// One direction of the wire. Both sides live in one thread.
struct FakeWire {
  std::deque<FakeFrame> frames;
};

class FakeLink final : public transport::Link {
 public:
  FakeLink(std::shared_ptr<FakeWire> out, std::shared_ptr<FakeWire> in)
      : out_(std::move(out)), in_(std::move(in)) {}

  // What a test may change at any time.
  size_t payload_limit = size_t{256} << 10;
  std::function<bool()> has_room = [] { return true; };  // asked by TrySend
  std::function<bool()> delivers = [] { return true; };  // asked before each frame that arrives
  absl::Status broken;                                   // returned by everything if not OK
  int descriptor = -1;

  size_t max_payload() const override { return payload_limit; }

  absl::StatusOr<bool> TrySend(const transport::FrameHeader& header,
                               absl::Span<const std::byte> payload) override {
    if (!broken.ok()) return broken;
    if (!has_room()) return false;
    out_->frames.push_back({header, {payload.begin(), payload.end()}});
    stats_.transmit_bytes += payload.size();
    return true;
  }

  absl::StatusOr<bool> Poll(transport::FrameSink sink) override {
    if (!broken.ok()) return broken;
    bool moved = false;
    while (!in_->frames.empty() && delivers()) {
      const FakeFrame& frame = in_->frames.front();
      if (!sink(frame.header, frame.payload)) break;
      stats_.receive_bytes += frame.payload.size();
      in_->frames.pop_front();
      moved = true;
    }
    return moved;
  }

  bool Flushed() const override { return true; }
  int event_fd() const override { return descriptor; }
  absl::Status Arm() override { return broken; }
  const transport::LinkStats& stats() const override { return stats_; }

 private:
  std::shared_ptr<FakeWire> out_;
  std::shared_ptr<FakeWire> in_;
  transport::LinkStats stats_;
};

// Two links that lead to each other.
inline std::pair<std::unique_ptr<FakeLink>, std::unique_ptr<FakeLink>> FakePair() {
  auto forward = std::make_shared<FakeWire>();
  auto backward = std::make_shared<FakeWire>();
  return {std::make_unique<FakeLink>(forward, backward),
          std::make_unique<FakeLink>(backward, forward)};
}

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_FAKE_LINK_H_
