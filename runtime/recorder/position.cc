// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorder/position.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "runtime/base/wire.h"

namespace railhead::recorder {
namespace {

constexpr size_t kRailLimit = 96;

// Maximum time that is reported.
constexpr absl::Duration kLongest = absl::Hours(24 * 365);

uint64_t Microseconds(absl::Duration duration) {
  return static_cast<uint64_t>(
      absl::ToInt64Microseconds(std::clamp(duration, absl::ZeroDuration(), kLongest)));
}

// Reads what has only one way to be written, and notes what has not.
class StrictReader {
 public:
  explicit StrictReader(absl::string_view bytes) : reader_(bytes) {}

  WireReader& plain() { return reader_; }
  bool Complete() const { return strict_ && reader_.Complete(); }

  template <class Enum>
  Enum OneOf(size_t count) {
    const size_t value = reader_.U8();
    strict_ = strict_ && value < count;
    return static_cast<Enum>(strict_ ? value : 0);
  }
  bool Bool() { return OneOf<int>(2) == 1; }
  void Require(bool condition) { strict_ = strict_ && condition; }
  absl::Duration Duration() {
    const uint64_t value = reader_.U64();
    strict_ = strict_ && value <= Microseconds(kLongest);
    return absl::Microseconds(strict_ ? static_cast<int64_t>(value) : 0);
  }

 private:
  WireReader reader_;
  bool strict_ = true;
};

Traffic Sum(const std::vector<Flow>& flows) {
  Traffic sum;
  for (const Flow& flow : flows) sum += flow.moved;
  return sum;
}

}  // namespace

Recent RecentOf(const std::vector<Operation>& operations) {
  Recent recent;
  for (auto at = operations.rbegin(); at != operations.rend(); ++at) {
    if (at->collective == collectives::Collective::kSendReceive) continue;
    if (recent.calls.empty()) recent.newest = at->number;
    // One that is being written is not among them.
    if (at->number + recent.calls.size() != recent.newest) break;
    recent.calls.push_back(at->call);
    if (recent.calls.size() == Recent::kMost) break;
  }
  return recent;
}

namespace {

void Write(WireWriter& writer, const StillTransfers::Peers& peers) {
  const size_t count = std::min(peers.ranks.size(), StillTransfers::kMostPeers);
  writer.U8(static_cast<uint8_t>(count));
  for (size_t i = 0; i < count; ++i) writer.U32(static_cast<uint32_t>(peers.ranks[i]));
  writer.U32(peers.all);
}

StillTransfers::Peers ReadPeers(StrictReader& strict) {
  StillTransfers::Peers peers;
  const int count = strict.OneOf<int>(StillTransfers::kMostPeers + 1);
  for (int i = 0; i < count; ++i) {
    peers.ranks.push_back(static_cast<int>(strict.plain().U32()));
  }
  peers.all = strict.plain().U32();
  return peers;
}

// Most ranks have none, which takes one byte.
void Write(WireWriter& writer, const StillTransfers& transfers) {
  const bool any = transfers != StillTransfers{};
  writer.U8(any ? 1 : 0);
  if (!any) return;
  writer.U64(Microseconds(transfers.still));
  writer.U8(transfers.from_any ? 1 : 0);
  Write(writer, transfers.under_way);
  Write(writer, transfers.unfinished);
}

StillTransfers ReadTransfers(StrictReader& strict) {
  StillTransfers transfers;
  transfers.still = strict.Duration();
  transfers.from_any = strict.Bool();
  transfers.under_way = ReadPeers(strict);
  transfers.unfinished = ReadPeers(strict);
  strict.Require(transfers != StillTransfers{});
  return transfers;
}

}  // namespace

std::string Encode(const Position& position) {
  WireWriter writer;
  writer.U64(position.collectives);
  writer.U8(static_cast<uint8_t>(position.recent.calls.size()));
  if (!position.recent.calls.empty()) writer.U64(position.recent.newest);
  for (const collectives::Call& call : position.recent.calls) writer.U64(call.word());
  Write(writer, position.transfers);
  writer.U8(position.last.has_value() ? 1 : 0);
  if (!position.last.has_value()) return writer.Take();
  const Doing& last = *position.last;
  writer.U64(last.number);
  writer.U8(static_cast<uint8_t>(last.collective));
  writer.U8(static_cast<uint8_t>(last.algorithm));
  writer.U64(last.call.word());
  writer.U64(last.bytes);
  writer.U8(static_cast<uint8_t>(last.state));
  writer.U64(last.moved.sent);
  writer.U64(last.moved.received);
  writer.U64(Microseconds(last.age));
  writer.U64(Microseconds(last.still));
  writer.U8(last.way.has_value() ? 1 : 0);
  if (last.way.has_value()) {
    writer.U8(last.way->received ? 1 : 0);
    writer.U32(static_cast<uint32_t>(last.way->peer));
    writer.String(last.way->rail.substr(0, kRailLimit));
  }
  const size_t awaited = std::min(last.awaited.size(), kMostAwaited);
  writer.U8(static_cast<uint8_t>(awaited));
  for (size_t i = 0; i < awaited; ++i) writer.U32(static_cast<uint32_t>(last.awaited[i]));
  return writer.Take();
}

absl::StatusOr<Position> ParsePosition(absl::string_view bytes) {
  StrictReader strict(bytes);
  WireReader& reader = strict.plain();
  Position position;
  position.collectives = reader.U64();
  const int recent = strict.OneOf<int>(Recent::kMost + 1);
  if (recent > 0) position.recent.newest = reader.U64();
  for (int i = 0; i < recent; ++i) position.recent.calls.emplace_back(reader.U64());
  if (strict.Bool()) position.transfers = ReadTransfers(strict);
  if (strict.Bool()) {
    Doing& last = position.last.emplace();
    last.number = reader.U64();
    last.collective = strict.OneOf<collectives::Collective>(collectives::kCollectiveNames.size());
    last.algorithm = strict.OneOf<collectives::Algorithm>(collectives::kAlgorithmNames.size());
    last.call = collectives::Call(reader.U64());
    last.bytes = reader.U64();
    last.state = strict.OneOf<State>(kStateNames.size());
    last.moved.sent = reader.U64();
    last.moved.received = reader.U64();
    last.age = strict.Duration();
    last.still = strict.Duration();
    if (strict.Bool()) {
      Way& way = last.way.emplace();
      way.received = strict.Bool();
      way.peer = static_cast<int>(reader.U32());
      way.rail = reader.String(kRailLimit);
    }
    const int awaited = strict.OneOf<int>(kMostAwaited + 1);
    for (int i = 0; i < awaited; ++i) last.awaited.push_back(static_cast<int>(reader.U32()));
  }
  if (!strict.Complete()) return absl::InternalError("a rank's position is malformed");
  return position;
}

bool Stillness::Look(absl::Time now, const std::optional<Operation>& last,
                     const std::vector<Flow>& flows) {
  // A process that was stopped itself has not observed others in that time, which is not a stall.
  const bool asleep = now - looked_ > asleep_;
  looked_ = now;
  std::optional<Way> moved;
  for (size_t i = 0; i < flows.size() && flows.size() == flows_.size(); ++i) {
    const Traffic news = flows[i].moved - flows_[i].moved;
    if (news == Traffic{} || (moved.has_value() && news.received == 0)) continue;
    moved = {news.received > 0, flows[i].peer,
             flows[i].rail < rails_.size() ? rails_[flows[i].rail] : ""};
  }
  flows_ = flows;
  if (!last.has_value() || last->state != State::kRunning) {
    sequence_ = 0;
    return false;
  }
  const bool first = last->sequence != sequence_;
  const bool news = first ? Sum(flows) != last->moved : moved.has_value();
  if (first) {
    sequence_ = last->sequence;
    since_ = last->start;
    way_.reset();
  }
  if (news) way_ = std::move(moved);
  if (news || asleep) since_ = now;
  return now - since_ >= patience_;
}

Position Stillness::At(absl::Time now, const std::optional<Operation>& last, uint64_t collectives,
                       const std::vector<Flow>& flows, const std::vector<int>& awaited) const {
  Position position;
  position.collectives = collectives;
  if (!last.has_value()) return position;
  const bool runs = last->state == State::kRunning;
  // The two were not read in one moment.
  if (last->collective != collectives::Collective::kSendReceive) {
    position.collectives = last->number + 1;
  }
  Doing& said = position.last.emplace();
  said.number = last->number;
  said.collective = last->collective;
  said.algorithm = last->algorithm;
  said.call = last->call;
  said.bytes = last->bytes;
  said.state = last->state;
  said.moved = runs ? Sum(flows) - last->moved : last->moved;
  said.age = now - (runs ? last->start : last->end);
  if (!runs) return position;
  if (last->collective == collectives::Collective::kSendReceive) said.awaited = awaited;
  const bool known = last->sequence == sequence_;
  said.still = now - (known ? since_ : last->start);
  if (known) said.way = way_;
  return position;
}

}  // namespace railhead::recorder
