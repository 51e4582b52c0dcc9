// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/api/arguments.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "runtime/reduce/reduce.h"

namespace railhead::comm {
namespace {

template <class... Words>
absl::Status Wrong(const Words&... words) {
  return absl::InvalidArgumentError(absl::StrCat(words...));
}

absl::Status WrongBuffer(const char* name, const void* buffer, size_t element) {
  if (buffer == nullptr) return Wrong(name, " is NULL");
  // Elements are powers of two, and a division takes longer than the rest of these checks.
  if ((reinterpret_cast<uintptr_t>(buffer) & (element - 1)) == 0) return absl::OkStatus();
  return Wrong(name, " is not aligned to ", element, " bytes");
}

// Returns true if two ranges of memory share a byte.
bool Share(const void* one, size_t one_size, const void* other, size_t other_size) {
  const auto a = reinterpret_cast<uintptr_t>(one);
  const auto b = reinterpret_cast<uintptr_t>(other);
  return one_size > 0 && other_size > 0 && a < b + other_size && b < a + one_size;
}

// The buffer may be null if its size is 0.
absl::Status WrongBuffer(const NamedBuffer& buffer, size_t size, size_t element) {
  return size == 0 ? absl::OkStatus() : WrongBuffer(buffer.name, buffer.data, element);
}

}  // namespace

absl::Status WrongType(rhDataType_t type) {
  if (reduce::SizeOf(type) != 0) return absl::OkStatus();
  return Wrong("datatype ", static_cast<int>(type), " does not exist");
}

absl::Status WrongOperator(rhDataType_t type, rhRedOp_t op) {
  if (op < rhSum || op > rhBxor) {
    return Wrong("op ", static_cast<int>(op), " does not exist");
  }
  if (reduce::CanReduce(type, op)) return absl::OkStatus();
  return Wrong("op ", static_cast<int>(op), " works on integers only, and datatype ",
               static_cast<int>(type), " is a float");
}

absl::Status WrongRoot(int root, int world_size, const char* name) {
  if (root >= 0 && root < world_size) return absl::OkStatus();
  return Wrong(name, " ", root, " does not exist; ranks go from 0 to ", world_size - 1);
}

absl::Status WrongBuffers(const Buffers& buffers, size_t element) {
  if (buffers.count == 0 || element == 0) return absl::OkStatus();
  const size_t parts = std::max(buffers.send_parts, buffers.receive_parts);
  size_t whole = 0;
  if (__builtin_mul_overflow(buffers.count, element * parts, &whole) || whole > SIZE_MAX / 2) {
    return Wrong(buffers.count_name, " ", buffers.count, " is too large");
  }
  absl::Status wrong;
  if (buffers.send_parts > 0) wrong = WrongBuffer("sendbuf", buffers.send, element);
  if (wrong.ok() && buffers.receive_parts > 0) {
    wrong = WrongBuffer("recvbuf", buffers.receive, element);
  }
  if (!wrong.ok() || buffers.send_parts == 0 || buffers.receive_parts == 0) return wrong;

  const size_t part = buffers.count * element;
  const auto send = reinterpret_cast<uintptr_t>(buffers.send);
  const auto receive = reinterpret_cast<uintptr_t>(buffers.receive);
  if (send >= receive + buffers.receive_parts * part ||
      receive >= send + buffers.send_parts * part) {
    return absl::OkStatus();
  }
  const size_t place = buffers.in_place_part * part;
  if (buffers.send_parts == buffers.receive_parts) {
    if (send == receive) return absl::OkStatus();
    return Wrong("sendbuf and recvbuf overlap; they may be the same, or apart");
  }
  const bool gathers = buffers.send_parts < buffers.receive_parts;
  if (gathers ? send == receive + place : receive == send + place) return absl::OkStatus();
  return Wrong("sendbuf and recvbuf overlap; in place, ",
               gathers ? "sendbuf is recvbuf" : "recvbuf is sendbuf", " + rank * ",
               buffers.count_name, ", and else they are apart");
}

absl::Status WrongMessage(const void* buffer, size_t count, bool sends, size_t element) {
  return WrongBuffers({.send = buffer,
                       .receive = buffer,
                       .count = count,
                       .send_parts = sends ? size_t{1} : 0,
                       .receive_parts = sends ? 0 : size_t{1}},
                      element);
}

ListedParts::ListedParts(const char* counts_name, const size_t* counts, const char* displs_name,
                         const size_t* displs, size_t ranks, size_t element)
    : displs_name_(displs_name), element_(element), sizes_(ranks), begins_(ranks) {
  if (counts == nullptr) {
    wrong_ = Wrong(counts_name, " is NULL");
    return;
  }
  const size_t limit = SIZE_MAX / 2 / std::max<size_t>(element, 1);
  size_t next = 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const size_t begin = displs == nullptr ? next : displs[rank];
    if (counts[rank] > limit || begin > limit - counts[rank]) {
      wrong_ = Wrong(counts_name, "[", rank, "] ", counts[rank], " is too large");
      if (displs != nullptr && counts[rank] <= limit) {
        wrong_ = Wrong(displs_name, "[", rank, "] ", begin, " is too large");
      }
      return;
    }
    sizes_[rank] = counts[rank];
    begins_[rank] = begin;
    next = begin + counts[rank];
  }
}

absl::Status ListedParts::Overlap() const {
  std::vector<size_t> order;
  for (size_t rank = 0; rank < sizes_.size(); ++rank) {
    if (sizes_[rank] > 0) order.push_back(rank);
  }
  std::sort(order.begin(), order.end(),
            [this](size_t a, size_t b) { return begins_[a] < begins_[b]; });
  for (size_t i = 1; i < order.size(); ++i) {
    const size_t before = order[i - 1];
    if (begins_[before] + sizes_[before] <= begins_[order[i]]) continue;
    return Wrong("with these ", displs_name_, " the parts of rank ", before, " and rank ", order[i],
                 " overlap");
  }
  return absl::OkStatus();
}

absl::Status WrongPart(const NamedBuffer& parted, const ListedParts& parts,
                       const NamedBuffer& plain, size_t rank, size_t element) {
  const Range part = parts.InBytes()[rank];
  const size_t extent = parts.extent();
  absl::Status wrong = WrongBuffer(parted, extent, element);
  if (wrong.ok()) wrong = WrongBuffer(plain, part.size, element);
  if (!wrong.ok() || !Share(parted.data, extent, plain.data, part.size)) return wrong;
  const bool in_place = static_cast<const std::byte*>(parted.data) + part.begin == plain.data;
  if (in_place) return absl::OkStatus();
  return Wrong("sendbuf and recvbuf overlap; in place, ", plain.name, " is this rank's part of ",
               parted.name, ", and else they are apart");
}

absl::Status WrongPair(const NamedBuffer& one, const ListedParts& parts_of_one,
                       const NamedBuffer& other, const ListedParts& parts_of_other,
                       size_t element) {
  const size_t one_extent = parts_of_one.extent();
  const size_t other_extent = parts_of_other.extent();
  absl::Status wrong = WrongBuffer(one, one_extent, element);
  if (wrong.ok()) wrong = WrongBuffer(other, other_extent, element);
  if (!wrong.ok() || !Share(one.data, one_extent, other.data, other_extent)) return wrong;
  return Wrong(one.name, " and ", other.name, " overlap; they must be apart");
}

}  // namespace railhead::comm
