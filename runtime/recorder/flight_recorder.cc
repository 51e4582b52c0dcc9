// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorder/flight_recorder.h"

#include <algorithm>

namespace railhead::recorder {
namespace {

using collectives::Algorithm;
using collectives::Collective;

constexpr unsigned kAlgorithmAt = 8;
constexpr unsigned kCollectiveAt = 16;
constexpr unsigned kSequenceAt = 24;
constexpr uint64_t kByte = 0xff;
// The phase of an entry whose words do not belong together now; others are 1 + the state.
constexpr uint64_t kWriting = 0;

uint64_t PhaseOf(State state) { return 1 + static_cast<uint64_t>(state); }

}  // namespace

// A reader that sees a new word of an entry has acquired the release of that word, and so sees that
// the entry is being written, if it reads the head once more.

uint64_t FlightRecorder::Begin(Collective collective, Algorithm algorithm, collectives::Call call,
                               uint64_t bytes, int64_t now, const Traffic& moved) {
  const uint64_t sequence = begun_.load(std::memory_order_relaxed) + 1;
  const uint64_t number = collective == Collective::kSendReceive
                              ? transfers_++
                              : collectives_.load(std::memory_order_relaxed);
  const uint64_t head = sequence << kSequenceAt |
                        static_cast<uint64_t>(collective) << kCollectiveAt |
                        static_cast<uint64_t>(algorithm) << kAlgorithmAt;
  Entry& entry = (*entries_)[sequence % kKept];
  entry.head.store(head | kWriting, std::memory_order_relaxed);
  entry.number.store(number, std::memory_order_release);
  entry.call.store(call.word(), std::memory_order_release);
  entry.bytes.store(bytes, std::memory_order_release);
  entry.start.store(now, std::memory_order_release);
  entry.sent.store(moved.sent, std::memory_order_release);
  entry.received.store(moved.received, std::memory_order_release);
  entry.head.store(head | PhaseOf(State::kRunning), std::memory_order_release);
  if (collective != Collective::kSendReceive) {
    collectives_.store(number + 1, std::memory_order_relaxed);
  }
  begun_.store(sequence, std::memory_order_release);
  return number;
}

void FlightRecorder::End(State state, int64_t now, const Traffic& moved) {
  Entry& entry = (*entries_)[begun_.load(std::memory_order_relaxed) % kKept];
  const uint64_t head = entry.head.load(std::memory_order_relaxed) & ~kByte;
  const Traffic before = {entry.sent.load(std::memory_order_relaxed),
                          entry.received.load(std::memory_order_relaxed)};
  const Traffic own = moved - before;
  entry.head.store(head | kWriting, std::memory_order_relaxed);
  entry.end.store(now, std::memory_order_release);
  entry.sent.store(own.sent, std::memory_order_release);
  entry.received.store(own.received, std::memory_order_release);
  entry.head.store(head | PhaseOf(state), std::memory_order_release);
}

std::optional<Operation> FlightRecorder::ReadEntry(const Entry& entry) {
  const uint64_t head = entry.head.load(std::memory_order_acquire);
  const uint64_t phase = head & kByte;
  if (phase == kWriting) return std::nullopt;
  Operation operation;
  operation.sequence = head >> kSequenceAt;
  operation.number = entry.number.load(std::memory_order_acquire);
  operation.collective = static_cast<Collective>(head >> kCollectiveAt & kByte);
  operation.algorithm = static_cast<Algorithm>(head >> kAlgorithmAt & kByte);
  operation.call = collectives::Call(entry.call.load(std::memory_order_acquire));
  operation.bytes = entry.bytes.load(std::memory_order_acquire);
  operation.state = static_cast<State>(phase - 1);
  operation.start = absl::FromUnixNanos(entry.start.load(std::memory_order_acquire));
  operation.end = absl::FromUnixNanos(entry.end.load(std::memory_order_acquire));
  operation.moved = {entry.sent.load(std::memory_order_acquire),
                     entry.received.load(std::memory_order_acquire)};
  if (entry.head.load(std::memory_order_relaxed) != head) return std::nullopt;
  if (operation.state == State::kRunning) operation.end = absl::InfiniteFuture();
  return operation;
}

std::vector<Operation> FlightRecorder::Read() const {
  std::vector<Operation> operations;
  // One that is being written right now is left out.
  for (const Entry& entry : *entries_) {
    if (const std::optional<Operation> operation = ReadEntry(entry); operation.has_value()) {
      operations.push_back(*operation);
    }
  }
  std::sort(operations.begin(), operations.end(),
            [](const Operation& a, const Operation& b) { return a.sequence < b.sequence; });
  return operations;
}

std::optional<Operation> FlightRecorder::Last() const {
  // Operations may follow each other faster than they can be read; then any of them will do.
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t begun = begun_.load(std::memory_order_acquire);
    if (begun == 0) return std::nullopt;
    std::optional<Operation> operation = ReadEntry((*entries_)[begun % kKept]);
    if (operation.has_value()) return operation;
  }
  const std::vector<Operation> all = Read();
  if (all.empty()) return std::nullopt;
  return all.back();
}

}  // namespace railhead::recorder
