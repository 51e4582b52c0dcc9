// SPDX-License-Identifier: Apache-2.0
//
// A link in memory whose every misfortune a test can choose.
#ifndef RAILHEAD_RUNTIME_TESTING_FAKE_LINK_H_
#define RAILHEAD_RUNTIME_TESTING_FAKE_LINK_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/transport/link.h"

namespace railhead::testing {

// What travels on a cable. As on a TCP connection, acknowledgements stand in the same line as
// frames: each says how many frames of the other direction its sender has taken.
struct FakeFrame {
  transport::FrameHeader header;
  std::vector<std::byte> payload;
  uint64_t taken = 0;
  bool acknowledges_only = false;
};

// What two links share. Both sides live in one thread.
struct FakeCable {
  struct Way {
    std::deque<FakeFrame> frames;
    uint64_t taken = 0;  // of them, by the other side
    uint64_t told = 0;   // of those: how many it has put on the cable that it has
    bool stuck = false;  // behind a frame that was too large
  };
  std::array<Way, 2> ways;  // away from side 0 and from side 1
  uint64_t connection = 0;  // counts them; a link with an older one is lost
  bool plugged = true;      // whether a lost link finds a new connection
  absl::Status unplugged = absl::UnavailableError("the cable is not plugged in");

  // Everything under way is lost, acknowledgements too.
  void Cut() {
    ways = {};
    ++connection;
    plugged = false;
  }
};

class FakeLink final : public transport::Link {
 public:
  FakeLink(std::shared_ptr<FakeCable> cable, size_t side) : cable_(std::move(cable)), side_(side) {}

  // What a test may change at any time.
  size_t payload_limit = size_t{256} << 10;
  size_t carries = SIZE_MAX;  // larger payloads, and what is behind them, vanish on the way
  std::function<bool()> has_room = [] { return true; };  // asked by TrySend
  std::function<bool()> delivers = [] { return true; };  // asked before each frame that arrives
  std::function<bool()> hears = [] { return true; };     // asked whether acknowledgements arrive
  std::function<bool()> places = [] { return false; };  // asked whether a frame is placed in halves
  std::function<bool()> notices = [] { return true; };  // asked whether a cut shows
  absl::Status broken;                                  // returned by everything if not OK
  bool wakes = false;                                   // returned by WakeBy
  // Tells of what it took as real links do: in passing, when that is awaited, of many, when asked.
  bool lazy = false;
  uint64_t polls = 0;                      // calls of Poll
  std::string moved_to;                    // returned by MovedTo
  std::vector<std::string> peer_moved_to;  // what the other side has told

  FakeCable& cable() { return *cable_; }

  size_t max_payload() const override { return payload_limit; }

  absl::StatusOr<bool> TrySend(const transport::FrameHeader& header,
                               absl::Span<const std::byte> payload) override {
    if (!broken.ok()) return broken;
    if (Lost() && notices()) return absl::UnavailableError("the cable was cut");
    if (!has_room()) return false;
    if (!Lost()) out().stuck = out().stuck || payload.size() > carries;
    if (!Lost() && !out().stuck) {
      out().frames.push_back({header, {payload.begin(), payload.end()}, in().taken});
      in().told = in().taken;
    }
    ++sent_;
    stats_.transmit_bytes += payload.size();
    return true;
  }

  Report Poll(transport::FrameSink sink) override {
    ++polls;
    return {Work(sink), sent_ - acknowledged_, owes()};
  }
  absl::StatusOr<bool> Work(transport::FrameSink sink) {
    if (!broken.ok()) return broken;
    if (Lost()) {
      if (notices()) return absl::UnavailableError("the cable was cut");
      return false;
    }
    bool moved = false;
    std::deque<FakeFrame>& frames = in().frames;
    while (!frames.empty() && delivers()) {
      const FakeFrame& frame = frames.front();
      heard_ = std::max(heard_, frame.taken);
      if (frame.acknowledges_only) {
        frames.pop_front();
        continue;
      }
      if (placed_ == nullptr && places()) {
        placed_ = sink.PlaceFor(frame.header, frame.payload.size());
        if (placed_ != nullptr) {
          std::copy_n(frame.payload.begin(), frame.payload.size() / 2, placed_);
          moved = true;
          continue;  // the rest comes after what else this side is asked
        }
      }
      if (placed_ != nullptr && !stopped_) {
        std::copy(frame.payload.begin(), frame.payload.end(), placed_);
        sink(frame.header, absl::MakeConstSpan(placed_, frame.payload.size()));
      } else if (placed_ == nullptr && !sink(frame.header, frame.payload)) {
        break;
      }
      placed_ = nullptr;
      stopped_ = false;
      stats_.receive_bytes += frame.payload.size();
      const bool frame_was_awaited = frame.header.awaited;
      frames.pop_front();
      ++in().taken;
      moved = true;
      if (!lazy || frame_was_awaited || in().taken - in().told == kMostUntold) Tell();
    }
    if (hears()) acknowledged_ = heard_;
    return moved;
  }

  bool connected() const override { return !Lost(); }
  void Drop(absl::string_view /*why*/) override { dropped_ = true; }
  void StopPlacing() override { stopped_ = true; }
  absl::StatusOr<bool> Reconnect(absl::Time /*now*/) override {
    if (!cable_->plugged) return cable_->unplugged;
    dropped_ = stopped_ = false;
    placed_ = nullptr;
    if (!Lost()) {
      // Only this side had lost it; the other one sees that.
      cable_->ways = {};
      ++cable_->connection;
    }
    connection_ = cable_->connection;
    sent_ = acknowledged_ = heard_ = 0;
    return true;
  }

  bool Flushed() const override { return true; }
  Load load() const override {
    uint64_t bytes = 0;
    for (const FakeFrame& frame : cable_->ways[side_].frames) bytes += frame.payload.size();
    return {bytes, stats_.transmit_bytes - bytes};
  }
  bool owes() const { return in().told != in().taken; }
  absl::Status Acknowledge() override {
    if (broken.ok() && !Lost()) Tell();
    return broken;
  }
  absl::StatusOr<bool> WakeBy(int /*epoll*/, void* /*tag*/) override { return wakes; }
  void Answer(absl::Time /*now*/) override {}
  absl::Status Arm(transport::Wake /*wake*/) override { return broken; }
  std::string MovedTo() const override { return moved_to; }
  void PeerMovedTo(absl::string_view address) override { peer_moved_to.emplace_back(address); }
  const transport::LinkStats& stats() const override { return stats_; }

 private:
  // As links do: so many frames may be taken before they are acknowledged with no frame to go
  // along.
  static constexpr uint64_t kMostUntold = 16;

  void Tell() {
    if (in().told == in().taken || out().stuck) return;
    in().told = in().taken;
    out().frames.push_back({{}, {}, in().taken, /*acknowledges_only=*/true});
  }
  bool Lost() const { return dropped_ || connection_ != cable_->connection; }
  FakeCable::Way& out() { return cable_->ways[side_]; }
  FakeCable::Way& in() { return cable_->ways[1 - side_]; }
  const FakeCable::Way& in() const { return cable_->ways[1 - side_]; }

  std::shared_ptr<FakeCable> cable_;
  size_t side_;
  uint64_t connection_ = 0;
  bool dropped_ = false;
  std::byte* placed_ = nullptr;  // where the frame in front is being written
  bool stopped_ = false;
  uint64_t sent_ = 0;
  uint64_t heard_ = 0;         // that the other side has taken
  uint64_t acknowledged_ = 0;  // the same, once `hears`
  transport::LinkStats stats_;
};

// Two links that lead to each other.
inline std::pair<std::unique_ptr<FakeLink>, std::unique_ptr<FakeLink>> FakePair() {
  auto cable = std::make_shared<FakeCable>();
  return {std::make_unique<FakeLink>(cable, 0), std::make_unique<FakeLink>(cable, 1)};
}

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_FAKE_LINK_H_
