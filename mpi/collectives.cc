// SPDX-License-Identifier: Apache-2.0
#include "mpi/collectives.h"

#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "mpi/reduction.h"
#include "railhead/railhead.h"

namespace railhead::mpi {
namespace {

using Sizes = std::vector<size_t>;

const char* At(const void* base, size_t bytes) { return static_cast<const char*>(base) + bytes; }
char* At(void* base, size_t bytes) { return static_cast<char*>(base) + bytes; }

size_t Bytes(int count, const Datatype& type) { return static_cast<size_t>(count) * type.bytes; }

// One size for each rank, in bytes.
Sizes BytesOf(const int* counts, int ranks, const Datatype& type) {
  Sizes bytes(static_cast<size_t>(ranks));
  for (size_t r = 0; r < bytes.size(); ++r) bytes[r] = Bytes(counts[r], type);
  return bytes;
}

// Where parts of these sizes begin that follow each other.
Sizes Offsets(const Sizes& sizes) {
  Sizes offsets(sizes.size());
  std::exclusive_scan(sizes.begin(), sizes.end(), offsets.begin(), size_t{0});
  return offsets;
}

Outcome NotDefined() { return {kErrorOp, "the operator is not defined for this type"}; }

// Each rank gets its part of the ranks' inputs and folds it, in the order of ranks. Parts are in
// elements of `bytes` bytes and follow each other in `send`. `result` is this rank's part.
Outcome FoldParts(Group& group, const void* send, const Sizes& parts, size_t bytes,
                  const Fold& fold, void* result) {
  const auto ranks = static_cast<size_t>(group.size());
  Sizes sent(ranks);
  for (size_t r = 0; r < ranks; ++r) sent[r] = parts[r] * bytes;
  const size_t elements = parts[static_cast<size_t>(group.rank())];
  const size_t mine = elements * bytes;
  const Sizes arriving(ranks, mine);
  std::vector<char> inputs(mine * ranks);
  Outcome outcome =
      group.Check(rhAlltoAllv(send, sent.data(), nullptr, inputs.data(), arriving.data(), nullptr,
                              rhUint8, group.comm(), nullptr));
  if (!outcome.ok() || mine == 0) return outcome;
  char* const sum = inputs.data() + (ranks - 1) * mine;
  for (size_t r = ranks - 1; r-- > 0;) fold(inputs.data() + r * mine, sum, elements);
  std::memcpy(result, sum, mine);
  return {};
}

// All ranks get the fold of all inputs: each folds a part, and they gather the parts.
Outcome FoldAll(Group& group, const void* send, void* receive, int count, size_t bytes,
                const Fold& fold) {
  const auto ranks = static_cast<size_t>(group.size());
  const auto all = static_cast<size_t>(count);
  Sizes parts(ranks);
  for (size_t r = 0; r < ranks; ++r) parts[r] = all * (r + 1) / ranks - all * r / ranks;
  Sizes sizes(ranks);
  for (size_t r = 0; r < ranks; ++r) sizes[r] = parts[r] * bytes;
  char* const mine = At(receive, Offsets(sizes)[static_cast<size_t>(group.rank())]);
  Outcome outcome = FoldParts(group, send, parts, bytes, fold, mine);
  if (!outcome.ok()) return outcome;
  return group.Check(
      rhAllGatherv(mine, receive, sizes.data(), nullptr, rhUint8, group.comm(), nullptr));
}

}  // namespace

Outcome AllReduce(Group& group, const void* send, void* receive, int count, Datatype* type,
                  const Operator& op) {
  if (send == kInPlace) send = receive;
  if (const std::optional<Native> native = NativeReduction(*type, op)) {
    return group.Check(rhAllReduce(send, receive, static_cast<size_t>(count) * native->parts,
                                   native->type, native->op, group.comm(), nullptr));
  }
  const Fold fold = FoldedReduction(type, op);
  if (fold == nullptr) return NotDefined();
  return FoldAll(group, send, receive, count, type->bytes, fold);
}

Outcome Reduce(Group& group, const void* send, void* receive, int count, Datatype* type,
               const Operator& op, int root) {
  const bool is_root = group.rank() == root;
  if (is_root && send == kInPlace) send = receive;
  if (const std::optional<Native> native = NativeReduction(*type, op)) {
    return group.Check(rhReduce(send, receive, static_cast<size_t>(count) * native->parts,
                                native->type, native->op, root, group.comm(), nullptr));
  }
  const Fold fold = FoldedReduction(type, op);
  if (fold == nullptr) return NotDefined();
  // Ranks that are not the root have no place for the result.
  std::vector<char> own(is_root ? 0 : Bytes(count, *type));
  return FoldAll(group, send, is_root ? receive : own.data(), count, type->bytes, fold);
}

Outcome ReduceScatter(Group& group, const void* send, void* receive, const int* counts,
                      Datatype* type, const Operator& op) {
  const std::optional<Native> native = NativeReduction(*type, op);
  const Fold fold = native.has_value() ? nullptr : FoldedReduction(type, op);
  if (!native.has_value() && fold == nullptr) return NotDefined();
  Sizes parts(static_cast<size_t>(group.size()));
  for (size_t r = 0; r < parts.size(); ++r) parts[r] = static_cast<size_t>(counts[r]);
  const size_t mine = parts[static_cast<size_t>(group.rank())];
  std::vector<char> own;
  if (send == kInPlace) {
    // MPI has the input in `receive` and wants the result at its beginning; here the two may not
    // overlap.
    own.assign(At(receive, 0),
               At(receive, std::accumulate(parts.begin(), parts.end(), size_t{0}) * type->bytes));
    send = own.data();
  }
  if (!native.has_value()) {
    std::vector<char> result(mine * type->bytes);
    Outcome outcome = FoldParts(group, send, parts, type->bytes, fold, result.data());
    if (outcome.ok() && !result.empty()) std::memcpy(receive, result.data(), result.size());
    return outcome;
  }
  for (size_t& part : parts) part *= native->parts;
  return group.Check(rhReduceScatterv(send, receive, parts.data(), native->type, native->op,
                                      group.comm(), nullptr));
}

Outcome ReduceScatterBlock(Group& group, const void* send, void* receive, int count, Datatype* type,
                           const Operator& op) {
  const std::vector<int> counts(static_cast<size_t>(group.size()), count);
  return ReduceScatter(group, send, receive, counts.data(), type, op);
}

Outcome AllGather(Group& group, const void* send, int send_count, const Datatype* send_type,
                  void* receive, int count, const Datatype& type) {
  size_t mine = 0;
  if (send == kInPlace) {
    mine = Bytes(count, type);
    send = At(receive, static_cast<size_t>(group.rank()) * mine);
  } else {
    mine = Bytes(send_count, *send_type);
  }
  return group.Check(rhAllGather(send, receive, mine, rhUint8, group.comm(), nullptr));
}

Outcome AllGatherv(Group& group, const void* send, int send_count, const Datatype* send_type,
                   void* receive, const int* counts, const int* displacements,
                   const Datatype& type) {
  const Sizes sizes = BytesOf(counts, group.size(), type);
  const Sizes offsets = BytesOf(displacements, group.size(), type);
  const auto rank = static_cast<size_t>(group.rank());
  if (send == kInPlace) {
    send = At(receive, offsets[rank]);
  } else if (Bytes(send_count, *send_type) != sizes[rank]) {
    return {kErrorCount, "this rank sends " + std::to_string(Bytes(send_count, *send_type)) +
                             " bytes and its count among those to receive is " +
                             std::to_string(sizes[rank])};
  }
  return group.Check(
      rhAllGatherv(send, receive, sizes.data(), offsets.data(), rhUint8, group.comm(), nullptr));
}

Outcome Broadcast(Group& group, void* buffer, int count, const Datatype& type, int root) {
  return group.Check(
      rhBroadcast(buffer, buffer, Bytes(count, type), rhUint8, root, group.comm(), nullptr));
}

Outcome Gather(Group& group, const void* send, int send_count, const Datatype* send_type,
               void* receive, int count, const Datatype* type, int root) {
  size_t mine = 0;
  if (send == kInPlace) {
    mine = Bytes(count, *type);
    send = At(receive, static_cast<size_t>(root) * mine);
  } else {
    mine = Bytes(send_count, *send_type);
  }
  return group.Check(rhGather(send, receive, mine, rhUint8, root, group.comm(), nullptr));
}

Outcome Gatherv(Group& group, const void* send, int send_count, const Datatype* send_type,
                void* receive, const int* counts, const int* displacements, const Datatype* type,
                int root) {
  if (group.rank() != root) {
    const size_t mine = Bytes(send_count, *send_type);
    return mine == 0 ? Outcome{}
                     : group.Check(rhSend(send, mine, rhUint8, root, group.comm(), nullptr));
  }
  const Sizes sizes = BytesOf(counts, group.size(), *type);
  const Sizes offsets = BytesOf(displacements, group.size(), *type);
  Outcome outcome = group.Check(rhGroupStart());
  for (int r = 0; r < group.size() && outcome.ok(); ++r) {
    const auto at = static_cast<size_t>(r);
    if (r == root || sizes[at] == 0) continue;
    outcome =
        group.Check(rhRecv(At(receive, offsets[at]), sizes[at], rhUint8, r, group.comm(), nullptr));
  }
  if (Outcome end = group.Check(rhGroupEnd()); outcome.ok()) outcome = std::move(end);
  const auto mine = static_cast<size_t>(root);
  if (outcome.ok() && send != kInPlace && sizes[mine] > 0) {
    std::memmove(At(receive, offsets[mine]), send, sizes[mine]);
  }
  return outcome;
}

Outcome Scatter(Group& group, const void* send, int send_count, const Datatype* send_type,
                void* receive, int count, const Datatype* type, int root) {
  size_t mine = 0;
  if (receive == kInPlace) {
    mine = Bytes(send_count, *send_type);
    // The library writes nothing there: it is where this part lies.
    receive = const_cast<char*>(At(send, static_cast<size_t>(root) * mine));
  } else {
    mine = Bytes(count, *type);
  }
  return group.Check(rhScatter(send, receive, mine, rhUint8, root, group.comm(), nullptr));
}

Outcome Scatterv(Group& group, const void* send, const int* counts, const int* displacements,
                 const Datatype* send_type, void* receive, int count, const Datatype* type,
                 int root) {
  if (group.rank() != root) {
    const size_t mine = Bytes(count, *type);
    return mine == 0 ? Outcome{}
                     : group.Check(rhRecv(receive, mine, rhUint8, root, group.comm(), nullptr));
  }
  const Sizes sizes = BytesOf(counts, group.size(), *send_type);
  const Sizes offsets = BytesOf(displacements, group.size(), *send_type);
  Outcome outcome = group.Check(rhGroupStart());
  for (int r = 0; r < group.size() && outcome.ok(); ++r) {
    const auto at = static_cast<size_t>(r);
    if (r == root || sizes[at] == 0) continue;
    outcome =
        group.Check(rhSend(At(send, offsets[at]), sizes[at], rhUint8, r, group.comm(), nullptr));
  }
  if (Outcome end = group.Check(rhGroupEnd()); outcome.ok()) outcome = std::move(end);
  const auto mine = static_cast<size_t>(root);
  if (outcome.ok() && receive != kInPlace && sizes[mine] > 0) {
    std::memmove(receive, At(send, offsets[mine]), sizes[mine]);
  }
  return outcome;
}

Outcome AllToAll(Group& group, const void* send, int send_count, const Datatype* send_type,
                 void* receive, int count, const Datatype& type) {
  const size_t part = send == kInPlace ? Bytes(count, type) : Bytes(send_count, *send_type);
  if (send == kInPlace) send = receive;
  return group.Check(rhAlltoAll(send, receive, part, rhUint8, group.comm(), nullptr));
}

Outcome AllToAllv(Group& group, const void* send, const int* send_counts,
                  const int* send_displacements, const Datatype* send_type, void* receive,
                  const int* counts, const int* displacements, const Datatype& type) {
  const Sizes sizes = BytesOf(counts, group.size(), type);
  const Sizes offsets = BytesOf(displacements, group.size(), type);
  if (send != kInPlace) {
    const Sizes send_sizes = BytesOf(send_counts, group.size(), *send_type);
    const Sizes send_offsets = BytesOf(send_displacements, group.size(), *send_type);
    return group.Check(rhAlltoAllv(send, send_sizes.data(), send_offsets.data(), receive,
                                   sizes.data(), offsets.data(), rhUint8, group.comm(), nullptr));
  }
  // Each part is overwritten by the part that arrives from the same rank: send from a packed copy.
  const Sizes packed = Offsets(sizes);
  std::vector<char> own(std::accumulate(sizes.begin(), sizes.end(), size_t{0}));
  for (size_t r = 0; r < sizes.size(); ++r) {
    if (sizes[r] > 0) std::memcpy(own.data() + packed[r], At(receive, offsets[r]), sizes[r]);
  }
  return group.Check(rhAlltoAllv(own.data(), sizes.data(), nullptr, receive, sizes.data(),
                                 offsets.data(), rhUint8, group.comm(), nullptr));
}

Outcome Barrier(Group& group) { return group.Check(rhBarrier(group.comm(), nullptr)); }

}  // namespace railhead::mpi
