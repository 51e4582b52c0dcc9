// SPDX-License-Identifier: Apache-2.0
//
// One rank's part in any collective, for tests of everything that does them: what it passes, and
// what it must have afterwards.
#ifndef RAILHEAD_RUNTIME_TESTING_COLLECTIVES_H_
#define RAILHEAD_RUNTIME_TESTING_COLLECTIVES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/collective.h"
#include "runtime/reduce/reduce.h"
#include "runtime/testing/values.h"

namespace railhead::testing {

using collectives::Collective;
using collectives::HasRoot;
using collectives::Reduces;

// Those that all ranks do.
inline constexpr std::array<Collective, 9> kCollectives = {
    Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
    Collective::kBroadcast, Collective::kReduce,    Collective::kBarrier,
    Collective::kAllToAll,  Collective::kGather,    Collective::kScatter};

// As a caller of the C API would pass it.
struct CollectiveCase {
  Collective collective;
  rhDataType_t type;
  rhRedOp_t op;
  size_t count;
  int root;  // of sends and receives: how many ranks on what is sent goes
  bool in_place;
  bool scaled = false;  // rhRedOpCreatePreMulSum
  bool uneven = false;  // rhAllGatherv, ...: parts of `count` values, of half as many, and of none
  Values values = Values::kExact;
};

inline Operation OperationOf(const CollectiveCase& c, int ranks) {
  // What is only moved may be anything, and so may what rounds nothing.
  if (!Reduces(c.collective)) return {c.type, rhSum, false, Values::kAny, ranks};
  if (!IsFloat(c.type)) return {c.type, c.op, c.scaled, Values::kAny, ranks};
  return {c.type, c.op, c.scaled, c.values, ranks};
}

inline std::string ToString(const CollectiveCase& c) {
  return absl::StrCat(Name(c.collective), c.uneven ? "v" : "", " of ", c.count, ", type ", c.type,
                      ", operator ", c.op, c.scaled ? " of products" : "", ", root ", c.root,
                      c.in_place ? ", in place" : "", ", values of kind ",
                      static_cast<int>(c.values));
}

// Values with a guard on both sides.
class GuardedBuffer {
 public:
  // `size` values from `begin` on are those of the table from `index` on.
  struct Piece {
    size_t begin;
    size_t size;
    const std::byte* table;
    size_t index;
  };

  GuardedBuffer() = default;
  // The buffer begins `skew` values after a cache line does.
  GuardedBuffer(size_t count, size_t element, size_t skew)
      : count_(count),
        element_(element),
        before_(kGuard + skew * element),
        bytes_(before_ + count * element + kGuard, kUntouched) {}

  std::byte* data() { return bytes_.data() + before_; }
  const std::byte* data() const { return bytes_.data() + before_; }

  void Lay(const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      Tiles(piece, [&](size_t at, const std::byte* values, size_t bytes) {
        std::memcpy(data() + at, values, bytes);
        return true;
      });
    }
  }

  // Whether it holds these, which do not overlap, and nothing else.
  bool Holds(std::vector<Piece> pieces) const {
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    size_t end = 0;  // in bytes_
    for (const Piece& piece : pieces) {
      if (piece.size == 0) continue;
      if (!Untouched(end, before_ + piece.begin * element_)) return false;
      end = before_ + (piece.begin + piece.size) * element_;
      const bool same = Tiles(piece, [&](size_t at, const std::byte* values, size_t bytes) {
        return std::memcmp(data() + at, values, bytes) == 0;
      });
      if (!same) return false;
    }
    return Untouched(end, bytes_.size());
  }

  // With the guards.
  absl::Span<std::byte> memory() { return absl::MakeSpan(bytes_); }
  // Where one of its bytes is in a copy of all that.
  std::byte* In(std::byte* copy, const std::byte* byte) const {
    return copy + (byte - bytes_.data());
  }

  uint64_t Load(size_t index) const {
    uint64_t bits = 0;
    std::memcpy(&bits, data() + index * element_, element_);  // little endian
    return bits;
  }
  absl::string_view values() const {
    return {reinterpret_cast<const char*>(data()), count_ * element_};
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr std::byte kUntouched{0xab};

  // Calls use(offset, values, bytes) for parts of the piece that lie together in the table, as long
  // as it returns true.
  template <class Use>
  bool Tiles(const Piece& piece, Use use) const {
    for (size_t done = 0; done < piece.size;) {
      const size_t index = (piece.index + done) % ValueTable::kPeriod;
      const size_t size = std::min(piece.size - done, ValueTable::kPeriod - index);
      if (!use((piece.begin + done) * element_, piece.table + index * element_, size * element_)) {
        return false;
      }
      done += size;
    }
    return true;
  }
  bool Untouched(size_t begin, size_t end) const {
    // Every byte is as the one before it: much faster than one by one, under a sanitizer.
    const std::byte* const first = bytes_.data() + begin;
    return begin == end ||
           (*first == kUntouched && std::memcmp(first, first + 1, end - begin - 1) == 0);
  }

  size_t count_ = 0;
  size_t element_ = 1;
  size_t before_ = 0;
  std::vector<std::byte> bytes_;
};

class Trial {
 public:
  // `seed`: which values these are; the same on all ranks.
  Trial(const CollectiveCase& c, int rank, int ranks, uint64_t seed)
      : case_(c),
        rank_(static_cast<size_t>(rank)),
        ranks_(static_cast<size_t>(ranks)),
        shift_(Mix(seed) % ValueTable::kPeriod),
        table_(ValueTable::Of(OperationOf(c, ranks))),
        sends_(SendPartsOf(rank_)),
        receives_(ReceiveParts()) {
    const size_t element = reduce::SizeOf(c.type);
    const size_t skew = Mix(seed + rank_) % 4;
    const size_t send_count = sends_.extent;
    const size_t receive_count = receives_.extent;
    const std::vector<Piece> input = {Input(rank_, 0, 0, send_count)};
    shared_ = SharesBuffer();
    if (!shared_) {
      send_ = GuardedBuffer(send_count, element, skew);
      send_.Lay(input);
      sent_ = input;
      receive_ = GuardedBuffer(receive_count, element, skew / 2);
    } else {
      // One buffer, in the place of the larger one.
      receive_ = GuardedBuffer(std::max(send_count, receive_count), element, skew);
      if (SendsParts() || !ReceivesParts()) {
        before_ = input;
      } else {
        before_ = {Input(rank_, receives_.begins[rank_], 0, sends_.sizes[0])};
      }
      receive_.Lay(before_);
    }
  }

  const CollectiveCase& what() const { return case_; }

  // Its buffers, guards included. From PassInstead on it passes copies of them, null: themselves.
  // What the call leaves there must be here again for Check.
  absl::Span<std::byte> send_memory() { return send_.memory(); }
  absl::Span<std::byte> receive_memory() { return receive_.memory(); }
  void PassInstead(std::byte* send_copy, std::byte* receive_copy) {
    send_copy_ = send_copy;
    receive_copy_ = receive_copy;
  }

  const std::byte* send() const {
    const std::byte* const send = OwnSend();
    const GuardedBuffer& in = shared_ ? receive_ : send_;
    std::byte* const copy = shared_ ? receive_copy_ : send_copy_;
    return send == nullptr || copy == nullptr ? send : in.In(copy, send);
  }
  std::byte* receive() {
    std::byte* const receive = OwnReceive();
    return receive == nullptr || receive_copy_ == nullptr ? receive
                                                          : receive_.In(receive_copy_, receive);
  }
  // What the functions for parts that differ are given.
  const std::vector<size_t>& send_counts() const { return sends_.sizes; }
  const std::vector<size_t>& send_displs() const { return sends_.begins; }
  const std::vector<size_t>& receive_counts() const { return receives_.sizes; }
  const std::vector<size_t>& receive_displs() const { return receives_.begins; }
  // A value's bits.
  uint64_t factor() const { return table_.factor(rank_); }

  // What is not as it must be; "" if all is.
  std::string Check() const {
    if (!shared_ && !send_.Holds(sent_)) return Wrong("wrong send buffer afterwards");
    if (!DependsOnOrder() || !HasResult()) {
      return receive_.Holds(After()) ? "" : Wrong("wrong result");
    }
    const Piece result = Result();
    for (size_t i = 0; i < result.size; ++i) {
      const size_t index = (result.index + i) % ValueTable::kPeriod;
      if (!table_.Accepts(receive_.Load(result.begin + i), index)) return Wrong("wrong result");
    }
    // Around the result there is what was there before.
    GuardedBuffer copy = receive_;
    copy.Lay({result});
    return copy.Holds(After()) ? "" : Wrong("written beside the result");
  }

  // Of an all-reduce: the bits of the result, which are the same on all ranks.
  absl::string_view result() const { return receive_.values(); }

 private:
  using Piece = GuardedBuffer::Piece;
  // A buffer's parts, in values; one part alone where it has none for each rank.
  struct Layout {
    std::vector<size_t> sizes;
    std::vector<size_t> begins;
    size_t extent = 0;
  };

  const std::byte* OwnSend() const {
    const bool only_root =
        case_.collective == Collective::kBroadcast || case_.collective == Collective::kScatter;
    if (only_root && !IsRoot()) return nullptr;
    if (!shared_) return send_.data();
    const bool in_receive = ReceivesParts() && !SendsParts();
    return At(receive_.data(), in_receive ? receives_.begins[rank_] : 0);
  }
  std::byte* OwnReceive() {
    if (case_.collective == Collective::kGather && !IsRoot()) return nullptr;
    if (case_.collective == Collective::kReduce && !shared_ && !IsRoot()) return nullptr;
    const bool in_send = shared_ && SendsParts() && !ReceivesParts();
    return receive_.data() +
           (in_send ? sends_.begins[rank_] * reduce::SizeOf(case_.type) : size_t{0});
  }

  bool DependsOnOrder() const {
    return OperationOf(case_, static_cast<int>(ranks_)).depends_on_order();
  }

  bool IsRoot() const { return rank_ == static_cast<size_t>(case_.root); }
  bool SendsParts() const {
    return case_.collective == Collective::kReduceScatter ||
           case_.collective == Collective::kAllToAll || case_.collective == Collective::kScatter;
  }
  bool ReceivesParts() const {
    return case_.collective == Collective::kAllGather ||
           case_.collective == Collective::kAllToAll || case_.collective == Collective::kGather;
  }
  // Whether this rank has one buffer for both.
  bool SharesBuffer() const {
    if (!case_.in_place || case_.collective == Collective::kSendReceive) return false;
    const bool only_root =
        case_.collective == Collective::kGather || case_.collective == Collective::kScatter;
    return !only_root || IsRoot();
  }
  bool HasResult() const {
    return Reduces(case_.collective) && (case_.collective != Collective::kReduce || IsRoot());
  }

  // How many values are in a part, by its rank, or, of an all-to-all, by both.
  size_t PartSize(size_t from, size_t to) const {
    if (!case_.uneven) return case_.count;
    const size_t kind =
        case_.collective == Collective::kAllToAll ? from + 2 * to : std::max(from, to);
    const std::array<size_t, 3> sizes = {case_.count, 0, (case_.count + 1) / 2};
    return sizes[(kind + static_cast<size_t>(case_.root)) % sizes.size()];
  }
  template <class SizeOfPart>
  Layout Parted(SizeOfPart size, size_t gap) const {
    Layout layout;
    for (size_t rank = 0; rank < ranks_; ++rank) {
      layout.begins.push_back(layout.extent + gap);
      layout.sizes.push_back(size(rank));
      layout.extent = layout.begins.back() + layout.sizes.back();
    }
    return layout;
  }
  Layout SendPartsOf(size_t from) const {
    if (case_.collective == Collective::kBarrier) return {{0}, {0}, 0};
    const bool exchange = case_.collective == Collective::kAllToAll;
    if (SendsParts()) {
      return Parted([&](size_t to) { return PartSize(exchange ? from : 0, to); },
                    case_.uneven && exchange ? 3 : 0);
    }
    const size_t size =
        case_.collective == Collective::kAllGather ? PartSize(from, 0) : case_.count;
    return {{size}, {0}, size};
  }
  Layout ReceiveParts() const {
    if (case_.collective == Collective::kBarrier) return {{0}, {0}, 0};
    if (ReceivesParts()) {
      const bool exchange = case_.collective == Collective::kAllToAll;
      return Parted([&](size_t from) { return PartSize(from, exchange ? rank_ : 0); },
                    case_.uneven ? 5 : 0);
    }
    const size_t size =
        case_.collective == Collective::kReduceScatter ? PartSize(0, rank_) : case_.count;
    return {{size}, {0}, size};
  }

  // Values from `from` on of what a rank sends.
  Piece Input(size_t rank, size_t begin, size_t from, size_t size) const {
    return {begin, size, table_.input(rank), shift_ + from};
  }

  // What is reduced, and where it goes.
  Piece Result() const {
    if (case_.collective != Collective::kReduceScatter) {
      return {0, case_.count, table_.result(), shift_};
    }
    const size_t begin = sends_.begins[rank_];
    return {shared_ ? begin : 0, sends_.sizes[rank_], table_.result(), shift_ + begin};
  }

  // What the receive buffer holds afterwards.
  std::vector<Piece> After() const {
    const auto root = static_cast<size_t>(case_.root);
    std::vector<Piece> after;
    switch (case_.collective) {
      case Collective::kAllReduce:
        return {Result()};
      case Collective::kReduce:
        return IsRoot() ? std::vector<Piece>{Result()} : before_;
      case Collective::kReduceScatter:
        if (shared_) {
          const size_t end = sends_.begins[rank_] + sends_.sizes[rank_];
          after = {Input(rank_, 0, 0, sends_.begins[rank_]),
                   Input(rank_, end, end, sends_.extent - end)};
        }
        after.push_back(Result());
        return after;
      case Collective::kAllGather:
      case Collective::kAllToAll:
        for (size_t rank = 0; rank < ranks_; ++rank) {
          const size_t from = SendsParts() ? SendPartsOf(rank).begins[rank_] : 0;
          after.push_back(Input(rank, receives_.begins[rank], from, receives_.sizes[rank]));
        }
        return after;
      case Collective::kGather:
        for (size_t rank = 0; IsRoot() && rank < ranks_; ++rank) {
          after.push_back(Input(rank, receives_.begins[rank], 0, receives_.sizes[rank]));
        }
        return after;
      case Collective::kBroadcast:
        return {Input(root, 0, 0, case_.count)};
      case Collective::kScatter:
        if (shared_) return before_;
        return {Input(root, 0, rank_ * case_.count, case_.count)};
      case Collective::kSendReceive:
        return {Input((rank_ + ranks_ - root % ranks_) % ranks_, 0, 0, case_.count)};
      case Collective::kBarrier:
        break;
    }
    return after;
  }

  const std::byte* At(const std::byte* data, size_t index) const {
    return data + index * reduce::SizeOf(case_.type);
  }
  std::string Wrong(absl::string_view what) const {
    return absl::StrCat(ToString(case_), ": ", what);
  }

  const CollectiveCase case_;
  const size_t rank_;
  const size_t ranks_;
  const size_t shift_;  // where in the tables the values begin
  const ValueTable& table_;
  const Layout sends_;
  const Layout receives_;
  bool shared_ = false;        // one buffer for both
  std::vector<Piece> sent_;    // what the send buffer holds
  std::vector<Piece> before_;  // what the receive buffer held before
  GuardedBuffer send_;
  GuardedBuffer receive_;
  std::byte* send_copy_ = nullptr;
  std::byte* receive_copy_ = nullptr;
};

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_COLLECTIVES_H_
