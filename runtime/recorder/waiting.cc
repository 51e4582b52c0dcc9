// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorder/waiting.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "runtime/base/wire.h"
#include "runtime/recorder/transfer_stillness.h"

namespace railhead::recorder {
namespace {

using collectives::Collective;

constexpr size_t kBits = 8;

// Flags of an encoded Word.
constexpr unsigned kStill = 1;
constexpr unsigned kLog = 2;

bool Runs(const Position& position) {
  return position.last.has_value() && position.last->state == State::kRunning;
}

bool RunsTransfers(const Position& position) {
  return Runs(position) && position.last->collective == Collective::kSendReceive;
}

// Finds who waits: from those who have not called, or only just, against the direction of waiting.
class Search {
 public:
  Search(const std::vector<Seen>& ranks, absl::Duration recent)
      : ranks_(ranks), waits_(ranks.size()), reached_(ranks.size()), sends_to_(ranks.size()) {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      if (RunsTransfers(ranks[rank].position)) AddTransfers(rank);
    }
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      const Position& position = ranks[rank].position;
      if (ranks[rank].how == Seen::How::kLeft) continue;
      if (!Runs(position) || position.last->age < recent) Reach(rank);
    }
  }

  std::vector<bool> Run() {
    while (!next_.empty()) {
      const size_t rank = next_.back();
      next_.pop_back();
      for (const size_t waiting : sends_to_[rank]) Wait(waiting);
      WaitInCollectives(rank);
    }
    return std::move(waits_);
  }

 private:
  void AddTransfers(size_t rank) {
    for (const int peer : ranks_[rank].position.last->awaited) {
      if (peer < 0 || static_cast<size_t>(peer) >= ranks_.size()) continue;
      if (static_cast<size_t>(peer) != rank) sends_to_[static_cast<size_t>(peer)].push_back(rank);
    }
  }

  void Reach(size_t rank) {
    if (reached_[rank]) return;
    reached_[rank] = true;
    next_.push_back(rank);
  }

  void Wait(size_t rank) {
    waits_[rank] = true;
    Reach(rank);
  }

  // Collectives need every rank. This one has not called those from `first` on, or it is in that
  // one and has only just called, or waits there itself.
  void WaitInCollectives(size_t for_rank) {
    const Position& position = ranks_[for_rank].position;
    const bool in_one = Runs(position) && !RunsTransfers(position);
    const uint64_t first = in_one ? position.last->number : position.collectives;
    for (size_t rank = 0; rank < ranks_.size() && first < from_; ++rank) {
      const Position& other = ranks_[rank].position;
      if (!Runs(other) || RunsTransfers(other)) continue;
      if (other.last->number >= first && other.last->number < from_) Wait(rank);
    }
    from_ = std::min(from_, first);
  }

  const std::vector<Seen>& ranks_;
  std::vector<bool> waits_;
  std::vector<bool> reached_;
  std::vector<std::vector<size_t>> sends_to_;  // who waits for a rank with transfers
  std::vector<size_t> next_;
  uint64_t from_ = std::numeric_limits<uint64_t>::max();  // ranks in these collectives wait
};

}  // namespace

std::vector<bool> WaitsForCallers(const std::vector<Seen>& ranks, absl::Duration recent) {
  const bool silent = std::any_of(ranks.begin(), ranks.end(),
                                  [recent](const Seen& seen) { return seen.silence >= recent; });
  return silent ? std::vector<bool>(ranks.size()) : Search(ranks, recent).Run();
}

std::string Encode(const Word& word) {
  WireWriter writer;
  writer.String(word.text);
  writer.U32(static_cast<uint32_t>(word.waits.size()));
  std::string bits((word.waits.size() + kBits - 1) / kBits, '\0');
  for (size_t rank = 0; rank < word.waits.size(); ++rank) {
    if (!word.waits[rank]) continue;
    bits[rank / kBits] =
        static_cast<char>(static_cast<unsigned char>(bits[rank / kBits]) | 1U << rank % kBits);
  }
  writer.Raw(bits);
  writer.U8(static_cast<uint8_t>((word.still ? kStill : 0) | (word.log ? kLog : 0)));
  const size_t pairs = std::min(word.stuck.size(), kMostPairs);
  writer.U8(static_cast<uint8_t>(pairs));
  for (size_t i = 0; i < pairs; ++i) {
    writer.U32(static_cast<uint32_t>(word.stuck[i].first));
    writer.U32(static_cast<uint32_t>(word.stuck[i].second));
  }
  return writer.Take();
}

absl::StatusOr<Word> ParseWord(absl::string_view bytes) {
  WireReader reader(bytes);
  Word word;
  word.text = reader.String(kReportLimit);
  const size_t ranks = reader.U32();
  if (ranks > kBits * bytes.size()) return absl::InternalError("a report is malformed");
  const absl::string_view bits = reader.Raw((ranks + kBits - 1) / kBits);
  const uint8_t flags = reader.U8();
  const size_t pairs = reader.U8();
  for (size_t i = 0; i < pairs && reader.ok(); ++i) {
    const auto first = static_cast<int>(reader.U32());
    word.stuck.emplace_back(first, static_cast<int>(reader.U32()));
  }
  if (!reader.Complete() || flags > (kStill | kLog) || pairs > kMostPairs) {
    return absl::InternalError("a report is malformed");
  }
  word.still = (flags & kStill) != 0;
  word.log = (flags & kLog) != 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    word.waits.push_back((static_cast<unsigned char>(bits[rank / kBits]) >> rank % kBits & 1U) !=
                         0);
  }
  return word;
}

}  // namespace railhead::recorder
