// SPDX-License-Identifier: Apache-2.0
//
// What ranks pass to calls, and what must come of it: values computed from the number of the step,
// the rank and the index. Both are periodic, so that a large buffer is filled and compared by
// pieces.
#ifndef RAILHEAD_TESTS_RAILS_PLAYER_CONTENT_H_
#define RAILHEAD_TESTS_RAILS_PLAYER_CONTENT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/reduce/reduce.h"
#include "runtime/testing/values.h"

namespace railhead::player {

// Periodic content: byte i is table[(start + i) % period].
class Content {
 public:
  Content(const std::byte* table, size_t period, size_t start)
      : table_(table), period_(period), start_(start % period) {}

  void Write(std::byte* to, size_t bytes) const {
    Pieces(bytes, [&](size_t done, const std::byte* piece, size_t size) {
      std::memcpy(to + done, piece, size);
      return true;
    });
  }
  // Returns the offset of the first byte that differs.
  std::optional<size_t> Difference(const std::byte* in, size_t bytes) const {
    std::optional<size_t> found;
    Pieces(bytes, [&](size_t done, const std::byte* piece, size_t size) {
      if (std::memcmp(in + done, piece, size) == 0) return true;
      found =
          done + static_cast<size_t>(std::mismatch(piece, piece + size, in + done).first - piece);
      return false;
    });
    return found;
  }
  std::byte at(size_t index) const { return table_[(start_ + index) % period_]; }

 private:
  template <class Each>
  void Pieces(size_t bytes, Each each) const {
    for (size_t done = 0; done < bytes;) {
      const size_t at = (start_ + done) % period_;
      const size_t size = std::min(bytes - done, period_ - at);
      if (!each(done, table_ + at, size)) return;
      done += size;
    }
  }

  const std::byte* table_;
  size_t period_;
  size_t start_;
};

inline uint64_t Hash(uint64_t a, uint64_t b, uint64_t c) {
  return testing::Mix(testing::Mix(testing::Mix(a + 1) + b + 1) + c + 1);
}

// Content of what is only moved: any bytes.
inline Content Moved(uint64_t step, int from, int to) {
  constexpr size_t kPeriod = 65521;  // prime
  static const std::vector<std::byte> table = [] {
    std::vector<std::byte> bytes(kPeriod);
    for (size_t i = 0; i < kPeriod; ++i)
      bytes[i] = static_cast<std::byte>(testing::Mix(i + 1) >> 9U);
    return bytes;
  }();
  return {table.data(), kPeriod,
          Hash(step, static_cast<uint64_t>(from), static_cast<uint64_t>(to)) % kPeriod};
}

// Content of what is reduced; elements are shifted by the step, so that an old result is another
// one.
class Reduced {
 public:
  Reduced(uint64_t step, const testing::Operation& operation)
      : table_(testing::ValueTable::Of(operation)),
        operation_(operation),
        element_(reduce::SizeOf(operation.type)),
        shift_(Hash(step, 0, 0) % testing::ValueTable::kPeriod) {}

  // From element `first` on.
  Content Input(int rank, size_t first) const {
    return At(table_.input(static_cast<size_t>(rank)), first);
  }
  // Returns "" or the first difference of a result that begins at element `first`.
  std::string Difference(const std::byte* in, size_t first, size_t count) const {
    size_t wrong = count;
    if (operation_.depends_on_order()) {
      for (size_t i = 0; i < count && wrong == count; ++i) {
        if (!table_.Accepts(Bits(in + i * element_), Index(first + i))) wrong = i;
      }
    } else if (const auto byte = At(table_.result(), first).Difference(in, count * element_)) {
      wrong = *byte / element_;
    }
    if (wrong == count) return "";
    return absl::StrCat("element ", wrong, " is 0x", absl::Hex(Bits(in + wrong * element_)),
                        ", not 0x",
                        absl::Hex(Bits(table_.result() + Index(first + wrong) * element_)));
  }
  uint64_t factor(int rank) const { return table_.factor(static_cast<size_t>(rank)); }

 private:
  size_t Index(size_t element) const { return (shift_ + element) % testing::ValueTable::kPeriod; }
  Content At(const std::byte* table, size_t first) const {
    return {table, testing::ValueTable::kPeriod * element_, Index(first) * element_};
  }
  uint64_t Bits(const std::byte* element) const {
    uint64_t bits = 0;
    std::memcpy(&bits, element, element_);
    return bits;
  }

  const testing::ValueTable& table_;
  const testing::Operation operation_;
  const size_t element_;
  const size_t shift_;
};

}  // namespace railhead::player

#endif  // RAILHEAD_TESTS_RAILS_PLAYER_CONTENT_H_
