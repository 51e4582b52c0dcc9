// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/api/collective_call.h"

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/operation.h"
#include "runtime/comm/api/arguments.h"
#include "runtime/comm/api/calls.h"
#include "runtime/comm/api/on_host.h"
#include "runtime/comm/api/operators.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/reduce/reduce.h"

namespace railhead::comm {
namespace {

using collectives::Collective;
using collectives::Operation;
using collectives::Shape;

// The body of a call (calls.h): an operation, and what it refers to.
struct Prepared {
  // An aggregate would be zeroed as a whole first, which takes as long as the checks.
  explicit Prepared(const char* called) : name(called) {}
  absl::Status operator()(Communicator& communicator) const;

  const char* name;
  Operation operation;
  std::optional<reduce::Scalar> factor;  // multiplies this rank's values first
  std::shared_ptr<const ListedParts> send_list;
  std::shared_ptr<const ListedParts> receive_list;
};

void Multiply(const reduce::Reduction& reduction, const reduce::Scalar& factor,
              const std::byte* from, std::byte* to, size_t count) {
  reduce::Reduce({reduction.type, rhSum, 1, absl::MakeConstSpan(&factor, 1)}, {from}, to, count,
                 reduce::Stores::kNormal);
}

// Runs an operation of this rank's products.
absl::Status RunMultiplied(Communicator& communicator, Operation operation,
                           const reduce::Scalar& factor) {
  const bool scatters = operation.collective == Collective::kReduceScatter;
  const size_t count = scatters ? operation.send_parts.total() : operation.count;
  std::unique_ptr<std::byte[]> products;
  std::byte* to = operation.receive;
  // The result of an all-reduce may take their place.
  if (operation.collective != Collective::kAllReduce) {
    products = std::make_unique_for_overwrite<std::byte[]>(count * operation.element());
    to = products.get();
  }
  if (count > 0) Multiply(operation.reduction, factor, operation.send, to, count);
  operation.send = to;
  return communicator.Run(operation);
}

// `operation` has buffers in host memory, and is otherwise that of `prepared`.
absl::Status RunOnHost(Communicator& communicator, const Prepared& prepared,
                       const Operation& operation) {
  if (prepared.factor.has_value()) {
    return RunMultiplied(communicator, operation, *prepared.factor);
  }
  // No algorithm sends all to all in place.
  if (operation.collective == Collective::kAllToAll && operation.send == operation.receive) {
    const std::vector<std::byte> copy(operation.send,
                                      operation.send + operation.send_parts.total());
    Operation apart = operation;
    apart.send = copy.data();
    return communicator.Run(apart);
  }
  return communicator.Run(operation);
}

absl::Status Prepared::operator()(Communicator& communicator) const {
  const device::CudaApi* const cuda = communicator.memory().cuda();
  if (cuda == nullptr) return RunOnHost(communicator, *this, operation);
  return RunStaged(name, communicator, *cuda, operation, [&](const Operation& on_host) {
    return RunOnHost(communicator, *this, on_host);
  });
}

bool HasLists(const PartLists& lists) { return lists.counts_name != nullptr; }

// Makes the parts of lists; returns why there are none.
absl::Status List(const PartLists& lists, size_t ranks, size_t element,
                  std::shared_ptr<const ListedParts>& parts) {
  parts = std::make_shared<const ListedParts>(lists.counts_name, lists.counts, lists.displs_name,
                                              lists.displs, ranks, element);
  return parts->wrong();
}

// Returns the error in buffers of which at least one has listed parts.
absl::Status WrongListed(const CollectiveCall& call, const Prepared& prepared, size_t rank,
                         size_t element) {
  const NamedBuffer send = {"sendbuf", call.send};
  const NamedBuffer receive = {"recvbuf", call.receive};
  if (prepared.receive_list != nullptr) {
    if (absl::Status wrong = prepared.receive_list->Overlap(); !wrong.ok()) return wrong;
  }
  if (prepared.receive_list == nullptr) {
    return WrongPart(send, *prepared.send_list, receive, rank, element);
  }
  if (prepared.send_list == nullptr) {
    return WrongPart(receive, *prepared.receive_list, send, rank, element);
  }
  absl::Status wrong =
      WrongPair(send, *prepared.send_list, receive, *prepared.receive_list, element);
  if (!wrong.ok()) return wrong;
  const Range own = prepared.send_list->InBytes()[rank];
  if (own.size == prepared.receive_list->InBytes()[rank].size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "sendcounts and recvcounts of this rank's part for itself differ");
}

// Sets the parts of an operation whose blocks may differ.
void Divide(const CollectiveCall& call, Prepared& prepared, size_t ranks, size_t element) {
  Operation& operation = prepared.operation;
  const Shape& shape = ShapeOf(call.collective);
  const Parts equal(ranks, ranks * call.count * (Reduces(call.collective) ? 1 : element));
  const auto parts_of = [&](const std::shared_ptr<const ListedParts>& list) {
    if (list == nullptr) return equal;
    return Reduces(call.collective) ? list->InValues() : list->InBytes();
  };
  if (shape.send == collectives::Share::kEach) operation.send_parts = parts_of(prepared.send_list);
  if (shape.receive == collectives::Share::kEach) {
    operation.receive_parts = parts_of(prepared.receive_list);
  }
}

// Returns the error in the lists of a call, or in its buffers; makes the parts of the lists.
absl::Status CheckLists(const CollectiveCall& call, Prepared& prepared, size_t ranks, size_t rank,
                        size_t element) {
  absl::Status wrong;
  if (HasLists(call.send_lists)) wrong = List(call.send_lists, ranks, element, prepared.send_list);
  if (wrong.ok() && HasLists(call.receive_lists)) {
    wrong = List(call.receive_lists, ranks, element, prepared.receive_list);
  }
  return wrong.ok() ? WrongListed(call, prepared, rank, element) : wrong;
}

// Returns the error in the buffers of a call without lists.
absl::Status CheckBuffers(const CollectiveCall& call, const Communicator& communicator,
                          size_t element) {
  const auto ranks = static_cast<size_t>(communicator.world_size());
  const bool is_root = call.root == communicator.rank();
  const Shape& shape = ShapeOf(call.collective);
  const Buffers buffers = {.send = call.send,
                           .receive = call.receive,
                           .count_name = call.count_name,
                           .count = call.count,
                           .send_parts = shape.SendBlocks(ranks, is_root),
                           .receive_parts = shape.ReceiveBlocks(ranks, is_root),
                           .in_place_part = static_cast<size_t>(communicator.rank())};
  return ArePlain(buffers, element) ? absl::OkStatus() : WrongBuffers(buffers, element);
}

// Makes the operation of a call; returns the error in its arguments.
absl::Status Prepare(const CollectiveCall& call, rhComm_t comm, Prepared& prepared) {
  const Communicator& communicator = *comm->communicator;
  const int world_size = communicator.world_size();
  const auto ranks = static_cast<size_t>(world_size);
  const size_t element = reduce::SizeOf(call.type);
  const bool reduces = Reduces(call.collective);
  Operation& operation = prepared.operation;
  if (element == 0) return WrongType(call.type);
  operation.reduction = {call.type, call.op, world_size, {}};
  if (reduces && (call.op < rhSum || call.op > rhAvg)) {
    absl::Status wrong = FindOperator(comm, call.type, &operation.reduction.op, prepared.factor);
    if (!wrong.ok()) return wrong;
  }
  if (HasRoot(call.collective) && (call.root < 0 || call.root >= world_size)) {
    return WrongRoot(call.root, world_size, "root");
  }
  absl::Status wrong =
      HasLists(call.send_lists) || HasLists(call.receive_lists)
          ? CheckLists(call, prepared, ranks, static_cast<size_t>(communicator.rank()), element)
          : CheckBuffers(call, communicator, element);
  if (!wrong.ok()) return wrong;
  operation.collective = call.collective;
  operation.ranks = world_size;
  operation.root = call.root;
  operation.send = static_cast<const std::byte*>(call.send);
  operation.receive = static_cast<std::byte*>(call.receive);
  operation.count = reduces ? call.count : call.count * element;
  if (UsesParts(call.collective)) Divide(call, prepared, ranks, element);
  return wrong;
}

}  // namespace

rhResult_t Start(const CollectiveCall& call, rhComm_t comm, rhStream_t stream) {
  return Guard(comm, [&] {
    if (const rhResult_t cannot = CannotUse(call.name, comm); cannot != rhSuccess) return cannot;
    Prepared prepared(call.name);
    const absl::Status wrong = Prepare(call, comm, prepared);
    if (!wrong.ok()) return WrongArgument(comm, call.name, wrong);
    return Submit(call.name, comm, stream, prepared);
  });
}

}  // namespace railhead::comm
