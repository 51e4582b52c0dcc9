// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/binomial.h"

#include <vector>

#include "runtime/collectives/binomial_place.h"
#include "runtime/collectives/reducing.h"
#include "runtime/collectives/schedule.h"

namespace railhead::collectives {
namespace {

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

absl::Status BinomialBroadcast(Messenger& messenger, int rank, int world_size, int root,
                               const std::byte* send, std::byte* receive, size_t bytes) {
  if (rank == root) reduce::Copy(send, receive, bytes, reduce::Stores::kNormal);
  return Run(messenger, Broadcast(BinomialPlace(rank, world_size, root), receive, bytes));
}

absl::Status BinomialReduce(Messenger& messenger, int rank, int world_size, int root,
                            const reduce::Reduction& reduction, const std::byte* send,
                            std::byte* receive, size_t count) {
  if (ReducedAlone(world_size, reduction, send, receive, count)) return absl::OkStatus();
  const BinomialPlace place(rank, world_size, root);
  const size_t bytes = count * reduce::SizeOf(reduction.type);
  std::vector<std::byte> memory(place.is_root() || place.children() == 0 ? 0 : bytes);
  std::byte* const result = place.is_root() ? receive : memory.data();
  return Run(messenger, Reduce(place, reduction, send, result, bytes));
}

absl::Status BinomialGather(Messenger& messenger, int rank, int world_size, int root,
                            const std::byte* send, std::byte* receive, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  const BinomialPlace place(rank, world_size, root);
  std::vector<std::byte> blocks(place.size() * bytes);
  reduce::Copy(send, blocks.data(), bytes, reduce::Stores::kNormal);
  if (absl::Status status = Run(messenger, Gather(place, blocks.data(), bytes)); !status.ok()) {
    return status;
  }
  if (!place.is_root()) return absl::OkStatus();
  // Block 0 is the root's.
  const size_t before = static_cast<size_t>(root) * bytes;
  reduce::Copy(blocks.data(), receive + before, blocks.size() - before, reduce::Stores::kNormal);
  reduce::Copy(blocks.data() + blocks.size() - before, receive, before, reduce::Stores::kNormal);
  return absl::OkStatus();
}

absl::Status BinomialScatter(Messenger& messenger, int rank, int world_size, int root,
                             const std::byte* send, std::byte* receive, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  const BinomialPlace place(rank, world_size, root);
  std::vector<std::byte> blocks(place.size() * bytes);
  if (place.is_root()) {
    const size_t before = static_cast<size_t>(root) * bytes;
    reduce::Copy(send + before, blocks.data(), blocks.size() - before, reduce::Stores::kNormal);
    reduce::Copy(send, blocks.data() + blocks.size() - before, before, reduce::Stores::kNormal);
  }
  if (absl::Status status = Run(messenger, Scatter(place, blocks.data(), bytes)); !status.ok()) {
    return status;
  }
  reduce::Copy(blocks.data(), receive, bytes, reduce::Stores::kNormal);
  return absl::OkStatus();
}

}  // namespace railhead::collectives
