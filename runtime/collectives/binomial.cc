// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/binomial_place.h"
#include "runtime/collectives/reducing.h"
#include "runtime/collectives/schedule.h"

namespace railhead::collectives {
namespace {

BinomialPlace PlaceIn(const Operation& operation, int rank) {
  return {rank, operation.ranks, operation.root};
}

class Broadcast final : public Schedule {
 public:
  Broadcast(const BinomialPlace& place, std::byte* data, size_t bytes)
      : place_(place), data_(data), bytes_(bytes) {}

  size_t sends() const override { return place_.children(); }
  size_t receives() const override { return place_.is_root() ? 0 : 1; }
  Outgoing Send(size_t n) const override {
    // Starts with the child that has the most ranks below it.
    Outgoing outgoing = To(place_.child(place_.children() - 1 - n), data_, bytes_);
    if (!place_.is_root()) outgoing.needs = 0;
    return outgoing;
  }
  Incoming Receive(size_t /*n*/) const override { return From(place_.parent(), data_, bytes_); }

 private:
  const BinomialPlace place_;
  std::byte* const data_;
  const size_t bytes_;
};

class Reduce final : public Schedule {
 public:
  // `result`: where this rank reduces; not used by one without children.
  Reduce(const BinomialPlace& place, const reduce::Reduction& reduction, const std::byte* send,
         std::byte* result, size_t bytes)
      : place_(place),
        whole_(reduction),
        partial_(Partial(reduction)),
        send_(send),
        result_(result),
        bytes_(bytes) {}

  size_t sends() const override { return place_.is_root() ? 0 : 1; }
  size_t receives() const override { return place_.children(); }
  Outgoing Send(size_t /*n*/) const override {
    Outgoing outgoing = To(place_.parent(), receives() == 0 ? send_ : result_, bytes_);
    if (receives() > 0) outgoing.needs = receives() - 1;
    return outgoing;
  }
  Incoming Receive(size_t n) const override {
    Incoming incoming = From(place_.child(n), result_, bytes_);
    incoming.buffer.operand = n == 0 ? send_ : result_;
    incoming.buffer.reduction = place_.is_root() && n + 1 == receives() ? &whole_ : &partial_;
    if (n > 0) incoming.needs = n - 1;
    return incoming;
  }

 private:
  const BinomialPlace place_;
  const reduce::Reduction whole_;
  const reduce::Reduction partial_;
  const std::byte* const send_;
  std::byte* const result_;
  const size_t bytes_;
};

// The blocks of this rank and of those below it, in that order, on their way to the parent.
class Gather final : public Schedule {
 public:
  Gather(const BinomialPlace& place, std::byte* blocks, size_t bytes)
      : place_(place), blocks_(blocks), bytes_(bytes) {}

  size_t sends() const override { return place_.is_root() ? 0 : 1; }
  size_t receives() const override { return place_.children(); }
  Outgoing Send(size_t /*n*/) const override {
    Outgoing outgoing = To(place_.parent(), blocks_, place_.size() * bytes_);
    if (receives() > 0) outgoing.needs = receives() - 1;
    return outgoing;
  }
  Incoming Receive(size_t n) const override {
    return From(place_.child(n), blocks_ + (size_t{1} << n) * bytes_,
                place_.child_size(n) * bytes_);
  }

 private:
  const BinomialPlace place_;
  std::byte* const blocks_;
  const size_t bytes_;
};

// Scatter: blocks as above, on their way from the parent.
class Scatter final : public Schedule {
 public:
  Scatter(const BinomialPlace& place, std::byte* blocks, size_t bytes)
      : place_(place), blocks_(blocks), bytes_(bytes) {}

  size_t sends() const override { return place_.children(); }
  size_t receives() const override { return place_.is_root() ? 0 : 1; }
  Outgoing Send(size_t n) const override {
    // Starts with the child that has the most ranks below it.
    const size_t child = place_.children() - 1 - n;
    Outgoing outgoing = To(place_.child(child), blocks_ + (size_t{1} << child) * bytes_,
                           place_.child_size(child) * bytes_);
    if (!place_.is_root()) outgoing.needs = 0;
    return outgoing;
  }
  Incoming Receive(size_t /*n*/) const override {
    return From(place_.parent(), blocks_, place_.size() * bytes_);
  }

 private:
  const BinomialPlace place_;
  std::byte* const blocks_;
  const size_t bytes_;
};

}  // namespace

absl::Status BinomialBroadcast(Messenger& messenger, int rank, const Operation& operation) {
  CopyAtRoot(rank, operation);
  return Run(messenger, Broadcast(PlaceIn(operation, rank), operation.receive, operation.count));
}

absl::Status BinomialReduce(Messenger& messenger, int rank, const Operation& operation) {
  if (ReducedAlone(operation)) return absl::OkStatus();
  const BinomialPlace place = PlaceIn(operation, rank);
  const size_t bytes = operation.count * operation.element();
  std::vector<std::byte> memory(place.is_root() || place.children() == 0 ? 0 : bytes);
  std::byte* const result = place.is_root() ? operation.receive : memory.data();
  return Run(messenger, Reduce(place, operation.reduction, operation.send, result, bytes));
}

absl::Status BinomialGather(Messenger& messenger, int rank, const Operation& operation) {
  const size_t bytes = operation.count;
  if (bytes == 0) return absl::OkStatus();
  const BinomialPlace place = PlaceIn(operation, rank);
  std::vector<std::byte> blocks(place.size() * bytes);
  reduce::Copy(operation.send, blocks.data(), bytes, reduce::Stores::kNormal);
  if (absl::Status status = Run(messenger, Gather(place, blocks.data(), bytes)); !status.ok()) {
    return status;
  }
  if (!place.is_root()) return absl::OkStatus();
  // Block 0 is the root's.
  const size_t before = static_cast<size_t>(operation.root) * bytes;
  const size_t after = blocks.size() - before;
  reduce::Copy(blocks.data(), operation.receive + before, after, reduce::Stores::kNormal);
  reduce::Copy(blocks.data() + after, operation.receive, before, reduce::Stores::kNormal);
  return absl::OkStatus();
}

absl::Status BinomialScatter(Messenger& messenger, int rank, const Operation& operation) {
  const size_t bytes = operation.count;
  if (bytes == 0) return absl::OkStatus();
  const BinomialPlace place = PlaceIn(operation, rank);
  std::vector<std::byte> blocks(place.size() * bytes);
  if (place.is_root()) {
    const size_t before = static_cast<size_t>(operation.root) * bytes;
    const size_t after = blocks.size() - before;
    reduce::Copy(operation.send + before, blocks.data(), after, reduce::Stores::kNormal);
    reduce::Copy(operation.send, blocks.data() + after, before, reduce::Stores::kNormal);
  }
  if (absl::Status status = Run(messenger, Scatter(place, blocks.data(), bytes)); !status.ok()) {
    return status;
  }
  reduce::Copy(blocks.data(), operation.receive, bytes, reduce::Stores::kNormal);
  return absl::OkStatus();
}

}  // namespace railhead::collectives
