// SPDX-License-Identifier: Apache-2.0
#include "mpi/collectives.h"

#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "mpi/extents.h"
#include "mpi/reduction.h"
#include "railhead/railhead.h"

namespace railhead::mpi {
namespace {

using Sizes = std::vector<size_t>;

template <typename Bytes>  // signed or not
const char* At(const void* base, Bytes bytes) {
  return static_cast<const char*>(base) + bytes;
}
template <typename Bytes>
char* At(void* base, Bytes bytes) {
  return static_cast<char*>(base) + bytes;
}

// Checks that `count` elements of `type`, which this rank sends to itself, are the `expected` bytes
// that it receives.
Outcome CheckOwn(int count, const Datatype& type, size_t expected) {
  size_t sent = 0;
  Outcome outcome = SizeOf(count, type, 1, &sent);
  return outcome.ok() ? Agree(sent, expected) : outcome;
}

// Returns the offsets of adjacent parts of these sizes.
Sizes Offsets(const Sizes& sizes) {
  Sizes offsets(sizes.size());
  std::exclusive_scan(sizes.begin(), sizes.end(), offsets.begin(), size_t{0});
  return offsets;
}

Parts NoParts(const Group& group) {
  const Sizes none(static_cast<size_t>(group.size()));
  return {none, none};
}

// Each rank sends the others its parts `to` and receives `from` them. One collective, and not sends
// and receives: a part that its receiver does not expect must not arrive in a later call. A buffer
// without parts may be any pointer: MPI ignores it, or it is MPI_IN_PLACE.
Outcome Exchange(Group& group, const void* send, const Parts& to, void* receive,
                 const Parts& from) {
  const auto rank = static_cast<size_t>(group.rank());
  if (Outcome outcome = Agree(to.sizes[rank], from.sizes[rank]); !outcome.ok()) return outcome;
  const char* const lowest_sent = to.total() == 0 ? nullptr : At(send, to.lowest);
  char* const lowest_received = from.total() == 0 ? nullptr : At(receive, from.lowest);
  return group.Check(rhAlltoAllv(lowest_sent, to.sizes.data(), to.offsets.data(), lowest_received,
                                 from.sizes.data(), from.offsets.data(), rhUint8, group.comm(),
                                 nullptr));
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
  size_t bytes = 0;
  Outcome outcome = SizeOf(count, *type, 1, &bytes);
  return outcome.ok() ? FoldAll(group, send, receive, count, type->bytes, fold) : outcome;
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
  size_t bytes = 0;
  if (Outcome outcome = SizeOf(count, *type, 1, &bytes); !outcome.ok()) return outcome;
  // Ranks that are not the root have no place for the result.
  std::vector<char> own(is_root ? 0 : bytes);
  return FoldAll(group, send, is_root ? receive : own.data(), count, type->bytes, fold);
}

Outcome ReduceScatter(Group& group, const void* send, void* receive, const int* counts,
                      Datatype* type, const Operator& op) {
  const std::optional<Native> native = NativeReduction(*type, op);
  const Fold fold = native.has_value() ? nullptr : FoldedReduction(type, op);
  if (!native.has_value() && fold == nullptr) return NotDefined();
  Sizes parts(static_cast<size_t>(group.size()));
  for (size_t r = 0; r < parts.size(); ++r) parts[r] = static_cast<size_t>(counts[r]);
  Parts input;
  size_t bytes = 0;
  Outcome outcome = PartsOf(counts, nullptr, group.size(), *type, &input);
  // FoldParts has the inputs of all ranks for the part of this one.
  if (outcome.ok()) outcome = SizeOf(counts[group.rank()], *type, group.size(), &bytes);
  if (!outcome.ok()) return outcome;
  std::vector<char> own;
  if (send == kInPlace) {
    // MPI has the input in `receive` and wants the result at its beginning; here the two may not
    // overlap.
    own.assign(At(receive, 0), At(receive, input.total()));
    send = own.data();
  }
  if (!native.has_value()) {
    std::vector<char> result(bytes);
    outcome = FoldParts(group, send, parts, type->bytes, fold, result.data());
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
  size_t part = 0;
  Outcome outcome = SizeOf(count, type, group.size(), &part);
  if (outcome.ok() && send != kInPlace) outcome = CheckOwn(send_count, *send_type, part);
  if (!outcome.ok()) return outcome;
  if (send == kInPlace) send = At(receive, static_cast<size_t>(group.rank()) * part);
  return group.Check(rhAllGather(send, receive, part, rhUint8, group.comm(), nullptr));
}

Outcome AllGatherv(Group& group, const void* send, int send_count, const Datatype* send_type,
                   void* receive, const int* counts, const int* displacements,
                   const Datatype& type) {
  const auto rank = static_cast<size_t>(group.rank());
  Parts parts;
  Outcome outcome = PartsOf(counts, displacements, group.size(), type, &parts);
  if (outcome.ok() && send != kInPlace) {
    outcome = CheckOwn(send_count, *send_type, parts.sizes[rank]);
  }
  if (!outcome.ok()) return outcome;
  char* const lowest = At(receive, parts.lowest);
  if (send == kInPlace) send = At(lowest, parts.offsets[rank]);
  return group.Check(rhAllGatherv(send, lowest, parts.sizes.data(), parts.offsets.data(), rhUint8,
                                  group.comm(), nullptr));
}

Outcome Broadcast(Group& group, void* buffer, int count, const Datatype& type, int root) {
  size_t bytes = 0;
  if (Outcome outcome = SizeOf(count, type, 1, &bytes); !outcome.ok()) return outcome;
  return group.Check(rhBroadcast(buffer, buffer, bytes, rhUint8, root, group.comm(), nullptr));
}

Outcome Gather(Group& group, const void* send, int send_count, const Datatype* send_type,
               void* receive, int count, const Datatype* type, int root) {
  size_t part = 0;
  Outcome outcome;
  if (group.rank() != root) {
    outcome = SizeOf(send_count, *send_type, 1, &part);
  } else {
    outcome = SizeOf(count, *type, group.size(), &part);
    if (outcome.ok() && send != kInPlace) outcome = CheckOwn(send_count, *send_type, part);
  }
  if (!outcome.ok()) return outcome;
  if (send == kInPlace) send = At(receive, static_cast<size_t>(root) * part);
  return group.Check(rhGather(send, receive, part, rhUint8, root, group.comm(), nullptr));
}

Outcome Gatherv(Group& group, const void* send, int send_count, const Datatype* send_type,
                void* receive, const int* counts, const int* displacements, const Datatype* type,
                int root) {
  const auto at_root = static_cast<size_t>(root);
  Parts from = NoParts(group);
  Parts to = NoParts(group);
  Outcome outcome;
  if (group.rank() == root) {
    outcome = PartsOf(counts, displacements, group.size(), *type, &from);
    if (send == kInPlace) from.sizes[at_root] = 0;  // it is there already
  }
  if (outcome.ok() && send != kInPlace) {
    outcome = SizeOf(send_count, *send_type, 1, &to.sizes[at_root]);
  }
  return outcome.ok() ? Exchange(group, send, to, receive, from) : outcome;
}

Outcome Scatter(Group& group, const void* send, int send_count, const Datatype* send_type,
                void* receive, int count, const Datatype* type, int root) {
  size_t part = 0;
  Outcome outcome;
  if (group.rank() != root) {
    outcome = SizeOf(count, *type, 1, &part);
  } else {
    outcome = SizeOf(send_count, *send_type, group.size(), &part);
    size_t expected = part;
    if (outcome.ok() && receive != kInPlace) outcome = SizeOf(count, *type, 1, &expected);
    if (outcome.ok()) outcome = Agree(part, expected);
  }
  if (!outcome.ok()) return outcome;
  // The library writes nothing there: it is where this part lies.
  if (receive == kInPlace) {
    receive = const_cast<char*>(At(send, static_cast<size_t>(root) * part));
  }
  return group.Check(rhScatter(send, receive, part, rhUint8, root, group.comm(), nullptr));
}

Outcome Scatterv(Group& group, const void* send, const int* counts, const int* displacements,
                 const Datatype* send_type, void* receive, int count, const Datatype* type,
                 int root) {
  const auto at_root = static_cast<size_t>(root);
  Parts to = NoParts(group);
  Parts from = NoParts(group);
  Outcome outcome;
  if (group.rank() == root) {
    outcome = PartsOf(counts, displacements, group.size(), *send_type, &to);
    if (receive == kInPlace) to.sizes[at_root] = 0;  // it stays there
  }
  if (outcome.ok() && receive != kInPlace) {
    outcome = SizeOf(count, *type, 1, &from.sizes[at_root]);
  }
  return outcome.ok() ? Exchange(group, send, to, receive, from) : outcome;
}

Outcome AllToAll(Group& group, const void* send, int send_count, const Datatype* send_type,
                 void* receive, int count, const Datatype& type) {
  size_t part = 0;
  Outcome outcome = SizeOf(count, type, group.size(), &part);
  if (outcome.ok() && send != kInPlace) outcome = CheckOwn(send_count, *send_type, part);
  if (!outcome.ok()) return outcome;
  if (send == kInPlace) send = receive;
  return group.Check(rhAlltoAll(send, receive, part, rhUint8, group.comm(), nullptr));
}

Outcome AllToAllv(Group& group, const void* send, const int* send_counts,
                  const int* send_displacements, const Datatype* send_type, void* receive,
                  const int* counts, const int* displacements, const Datatype& type) {
  Parts from;
  Outcome outcome = PartsOf(counts, displacements, group.size(), type, &from);
  if (outcome.ok() && send != kInPlace) {
    Parts to;
    outcome = PartsOf(send_counts, send_displacements, group.size(), *send_type, &to);
    return outcome.ok() ? Exchange(group, send, to, receive, from) : outcome;
  }
  if (!outcome.ok()) return outcome;
  char* const lowest = At(receive, from.lowest);
  // Each part is overwritten by the part that arrives from the same rank: send from a packed copy.
  const Sizes packed = Offsets(from.sizes);
  std::vector<char> own(from.total());
  for (size_t r = 0; r < from.sizes.size(); ++r) {
    if (from.sizes[r] == 0) continue;
    std::memcpy(own.data() + packed[r], At(lowest, from.offsets[r]), from.sizes[r]);
  }
  return group.Check(rhAlltoAllv(own.data(), from.sizes.data(), nullptr, lowest, from.sizes.data(),
                                 from.offsets.data(), rhUint8, group.comm(), nullptr));
}

Outcome Barrier(Group& group) { return group.Check(rhBarrier(group.comm(), nullptr)); }

}  // namespace railhead::mpi
