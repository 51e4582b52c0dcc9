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
#include "runtime/collectives/collective.h"
#include "runtime/reduce/reduce.h"
#include "runtime/testing/arithmetic.h"

namespace railhead::testing {

using collectives::Collective;
using collectives::HasRoot;
using collectives::Reduces;

// Those that a Trial plays.
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
  int root;
  bool in_place;
};

inline std::string ToString(const CollectiveCase& c) {
  return absl::StrCat(Name(c.collective), " of ", c.count, ", type ", c.type, ", operator ", c.op,
                      ", root ", c.root, c.in_place ? ", in place" : "");
}

class Trial {
 public:
  Trial(const CollectiveCase& c, int rank, int ranks, uint64_t seed)
      : case_(c),
        rank_(static_cast<size_t>(rank)),
        ranks_(static_cast<size_t>(ranks)),
        seed_(seed) {
    part_ = c.count * reduce::SizeOf(c.type);
    const size_t all = ranks_ * part_;
    send_size_ = SendsParts() ? all : part_;
    receive_size_ = ReceivesParts() ? all : part_;
    receive_.assign(receive_size_ + kGuard, kUntouched);
    send_ = Input(rank_);
    if (c.in_place) {
      // One buffer, in the place of the larger one.
      if (!InSend() && (c.collective != Collective::kGather || IsRoot())) {
        std::copy(send_.begin(), send_.end(), receive_.data() + OwnPlace());
      }
    }
  }

  const std::byte* send() const {
    const bool only_root =
        case_.collective == Collective::kBroadcast || case_.collective == Collective::kScatter;
    if (only_root && !IsRoot()) return nullptr;
    if (case_.collective == Collective::kGather && !IsRoot()) return send_.data();
    return case_.in_place && !InSend() ? receive_.data() + OwnPlace() : send_.data();
  }
  std::byte* receive() {
    if (case_.collective == Collective::kGather && !IsRoot()) return nullptr;
    if (case_.collective == Collective::kReduce && !case_.in_place && !IsRoot()) return nullptr;
    if (case_.collective == Collective::kScatter && !IsRoot()) return receive_.data();
    return case_.in_place && InSend() ? send_.data() + rank_ * part_ : receive_.data();
  }

  // What is not as it must be; "" if all is.
  std::string Check() const {
    std::vector<std::byte> receive(receive_size_ + kGuard, kUntouched);
    std::vector<std::byte> send = Input(rank_);
    const auto place = [&](const std::vector<std::byte>& bytes, size_t from, size_t size,
                           size_t to) {
      std::copy_n(bytes.data() + from, size, receive.data() + to);
    };
    switch (case_.collective) {
      case Collective::kAllReduce:
        place(Reduced(), 0, part_, 0);
        break;
      case Collective::kAllGather:
        for (size_t rank = 0; rank < ranks_; ++rank) place(Input(rank), 0, part_, rank * part_);
        break;
      case Collective::kReduceScatter: {
        const std::vector<std::byte> reduced = Reduced();
        if (case_.in_place) {
          std::copy_n(reduced.data() + rank_ * part_, part_, send.data() + rank_ * part_);
        } else {
          place(reduced, rank_ * part_, part_, 0);
        }
        break;
      }
      case Collective::kBroadcast:
        place(Input(static_cast<size_t>(case_.root)), 0, part_, 0);
        break;
      case Collective::kReduce:
        if (IsRoot()) {
          place(Reduced(), 0, part_, 0);
        } else if (case_.in_place) {
          place(send, 0, part_, 0);
        }
        break;
      case Collective::kBarrier:
        if (case_.in_place) place(send, 0, part_, 0);
        break;
      case Collective::kAllToAll:
        for (size_t rank = 0; rank < ranks_; ++rank) {
          place(Input(rank), rank_ * part_, part_, rank * part_);
        }
        break;
      case Collective::kGather:
        for (size_t rank = 0; IsRoot() && rank < ranks_; ++rank) {
          place(Input(rank), 0, part_, rank * part_);
        }
        break;
      case Collective::kSendReceive:
        return "no trial of sends and receives";
      case Collective::kScatter:
        if (!case_.in_place || !IsRoot()) {
          place(Input(static_cast<size_t>(case_.root)), rank_ * part_, part_, 0);
        }
        break;
    }
    if (receive != receive_) return absl::StrCat(ToString(case_), ": wrong result");
    if (send != send_) return absl::StrCat(ToString(case_), ": wrong send buffer afterwards");
    return "";
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr std::byte kUntouched{0xab};

  bool IsRoot() const { return rank_ == static_cast<size_t>(case_.root); }
  bool SendsParts() const {
    return case_.collective == Collective::kReduceScatter ||
           case_.collective == Collective::kAllToAll || case_.collective == Collective::kScatter;
  }
  bool ReceivesParts() const {
    return case_.collective == Collective::kAllGather ||
           case_.collective == Collective::kAllToAll || case_.collective == Collective::kGather;
  }
  // Whether in place the send buffer is the larger one.
  bool InSend() const { return SendsParts() && !ReceivesParts(); }
  // Where in a larger receive buffer this rank's part is.
  size_t OwnPlace() const { return ReceivesParts() && !SendsParts() ? rank_ * part_ : 0; }

  static uint64_t Mix(uint64_t value) {
    value *= 0x9e3779b97f4a7c15U;
    value ^= value >> 29U;
    return value * 0xbf58476d1ce4e5b9U ^ value >> 32U;
  }

  // What a rank passes. Integers are arbitrary. Floats are ones, and now and then on one rank a
  // two: so every type holds every result exactly, in whatever order ranks meet.
  std::vector<std::byte> Input(size_t rank) const {
    std::vector<std::byte> input(send_size_);
    if (case_.type < rhFloat16 || case_.type > rhFloat8e5m2) {
      const uint64_t start = Mix(seed_ * 64 + rank);
      for (size_t at = 0; at < input.size(); at += sizeof(uint64_t)) {
        const uint64_t word = Mix(start + at);
        std::memcpy(input.data() + at, &word, std::min(sizeof word, input.size() - at));
      }
      return input;
    }
    const FloatFormat format = FormatOf(case_.type);
    const std::array<uint64_t, 2> values = {Encode(format, 1), Encode(format, 2)};
    const size_t element = reduce::SizeOf(case_.type);
    for (size_t at = 0; at < input.size(); at += element) {
      const bool two = Mix(seed_ + at) % (2 * ranks_) == rank;
      std::memcpy(input.data() + at, &values[two ? 1 : 0], element);  // little endian
    }
    return input;
  }

  std::vector<std::byte> Reduced() const {
    std::vector<std::vector<std::byte>> inputs;
    std::vector<const std::byte*> pointers;
    for (size_t rank = 0; rank < ranks_; ++rank) inputs.push_back(Input(rank));
    for (const std::vector<std::byte>& input : inputs) pointers.push_back(input.data());
    std::vector<std::byte> result(send_size_);
    reduce::Reduce({case_.type, case_.op, static_cast<int>(ranks_), {}}, pointers, result.data(),
                   send_size_ / reduce::SizeOf(case_.type), reduce::Stores::kNormal);
    return result;
  }

  CollectiveCase case_;
  size_t rank_;
  size_t ranks_;
  uint64_t seed_;
  size_t part_ = 0;  // bytes
  size_t send_size_ = 0;
  size_t receive_size_ = 0;
  std::vector<std::byte> send_;
  std::vector<std::byte> receive_;
};

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_COLLECTIVES_H_
