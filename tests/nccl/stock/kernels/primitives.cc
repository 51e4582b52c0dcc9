// SPDX-License-Identifier: Apache-2.0
#include "tests/nccl/stock/kernels/primitives.h"

#include <cstring>

#include "tests/nccl/stock/kernels/arithmetic.h"
#include "tests/nccl/stock/kernels/lines.h"
#include "tests/nccl/stock/kernels/poll.h"

namespace railhead::stock {
namespace {

std::vector<int> Present(const std::vector<int>& ranks) {
  std::vector<int> present;
  for (const int rank : ranks) {
    if (rank >= 0) present.push_back(rank);
  }
  return present;
}

}  // namespace

Primitives::Primitives(const Version& version, const Communicator& communicator,
                       const Function& function, uint64_t argument, Peer** peers,
                       const std::vector<int>& from, const std::vector<int>& to,
                       const Slicing& slicing)
    : version_(version),
      communicator_(communicator),
      function_(function),
      argument_(argument),
      slicing_(slicing) {
  // A chunk of Simple begins at a multiple of its steps.
  const uint64_t unit = function.protocol == kSimple ? slicing.slices * slicing.steps_per_slice : 1;
  const auto open = [&](Connection& connection) {
    return End{&connection, (connection.step + unit - 1) / unit * unit};
  };
  for (const int rank : Present(from)) {
    receive_.push_back(open(peers[rank]->receive[slicing.connection]));
    // Frees the slots that were skipped.
    if (function.protocol == kSimple) *receive_.back().connection->head = receive_.back().step;
  }
  for (const int rank : Present(to)) {
    send_.push_back(open(peers[rank]->send[slicing.connection]));
  }
}

Primitives::~Primitives() {
  for (const End& end : receive_) end.connection->step = end.step;
  for (const End& end : send_) end.connection->step = end.step;
}

void Primitives::Run(const Step& step) {
  switch (function_.protocol) {
    case kLl:
      return Lines<LlLine>(step);
    case kLl128:
      return Lines<Ll128Line>(step);
    default:
      return Simple(step);
  }
}

void Primitives::Combine(char* sum, const char* source, const std::vector<const char*>& received,
                         size_t elements, bool last) const {
  if (elements == 0) return;
  std::memmove(sum, source != nullptr ? source : received.front(), elements * element_bytes());
  if (function_.kind < kAllReduce) return;
  const Reduction reduction = {function_.op, function_.type, argument_};
  if (source != nullptr) Prepare(reduction, sum, elements);
  for (size_t i = source != nullptr ? 0 : 1; i < received.size(); ++i) {
    Reduce(reduction, sum, received[i], elements);
  }
  if (last) Finish(reduction, sum, elements);
}

bool Primitives::WaitForRoom(const End& end, uint64_t steps) const {
  return Poll(communicator_.abort,
              [&] { return *end.connection->head + kSlots >= end.step + steps; });
}

bool Primitives::WaitForData(const End& end, uint64_t steps) const {
  return Poll(communicator_.abort, [&] { return *end.connection->tail >= end.step + steps; });
}

}  // namespace railhead::stock
