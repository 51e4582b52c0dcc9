// SPDX-License-Identifier: Apache-2.0
#include "mpi/extents.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>

namespace railhead::mpi {
namespace {

constexpr auto kMostBytes = static_cast<size_t>(std::numeric_limits<ptrdiff_t>::max());

Outcome TooLarge(int error, const char* what, int number, const Datatype& type) {
  return {error, std::string(what) + " of " + std::to_string(number) + " elements of " +
                     std::to_string(type.bytes) + " bytes is more memory than a process can have"};
}

// Sets *bytes to number * size, unless that is more than any memory.
bool Multiply(int number, size_t size, ptrdiff_t* bytes) {
  return size <= kMostBytes && !__builtin_mul_overflow(static_cast<ptrdiff_t>(number),
                                                       static_cast<ptrdiff_t>(size), bytes);
}

}  // namespace

Outcome SizeOf(int count, const Datatype& type, int parts, size_t* bytes) {
  ptrdiff_t size = 0;
  ptrdiff_t all = 0;
  if (!Multiply(count, type.bytes, &size) || !Multiply(parts, static_cast<size_t>(size), &all)) {
    return TooLarge(kErrorCount, "a count", count, type);
  }
  *bytes = static_cast<size_t>(size);
  return {};
}

size_t Parts::total() const { return std::accumulate(sizes.begin(), sizes.end(), size_t{0}); }

Outcome PartsOf(const int* counts, const int* displacements, int ranks, const Datatype& type,
                Parts* parts) {
  std::vector<ptrdiff_t> begins(static_cast<size_t>(ranks));
  parts->sizes.assign(begins.size(), 0);
  parts->offsets.assign(begins.size(), 0);
  ptrdiff_t total = 0;
  bool found = false;
  for (size_t r = 0; r < begins.size(); ++r) {
    Outcome outcome = SizeOf(counts[r], type, 1, &parts->sizes[r]);
    if (!outcome.ok()) return outcome;
    const auto size = static_cast<ptrdiff_t>(parts->sizes[r]);
    const ptrdiff_t before = total;
    if (__builtin_add_overflow(total, size, &total)) {
      return TooLarge(kErrorCount, "a count", counts[r], type);
    }
    if (size == 0) continue;
    ptrdiff_t end = 0;
    if (displacements == nullptr) {
      begins[r] = before;
    } else if (!Multiply(displacements[r], type.bytes, &begins[r]) ||
               __builtin_add_overflow(begins[r], size, &end)) {
      return TooLarge(kErrorArg, "a displacement", displacements[r], type);
    }
    parts->lowest = found ? std::min(parts->lowest, begins[r]) : begins[r];
    found = true;
  }
  for (size_t r = 0; r < begins.size(); ++r) {
    if (parts->sizes[r] == 0) continue;
    // From the most negative to the most positive place is less than twice kMostBytes.
    parts->offsets[r] = static_cast<size_t>(begins[r]) - static_cast<size_t>(parts->lowest);
  }
  return {};
}

Outcome Agree(size_t sent, size_t expected) {
  if (sent == expected) return {};
  return {sent > expected ? kErrorTruncate : kErrorCount,
          "a message of " + std::to_string(sent) + " bytes goes into a buffer of " +
              std::to_string(expected) +
              " bytes for it; pass counts and types of equal size on both sides"};
}

}  // namespace railhead::mpi
