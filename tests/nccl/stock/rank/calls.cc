// SPDX-License-Identifier: Apache-2.0
#include "tests/nccl/stock/rank/calls.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/nccl/stock/cuda/api.h"

namespace railhead::stock {
namespace {

// All-reduces of a group.
constexpr size_t kGroup = 60;

template <class Op>
double Fold(const Use& use, size_t index, Op op,
            double (*value)(int rank, int round, size_t index) = Value) {
  double result = value(0, use.round, index);
  for (int rank = 1; rank < use.ranks; ++rank) result = op(result, value(rank, use.round, index));
  return result;
}

double Sum(const Use& use, size_t index) { return Fold(use, index, std::plus<>()); }

// Returns value() for the first `count` elements; the others must not be written.
template <class Result>
std::optional<double> Within(const Use& use, size_t index, Result value) {
  return index < use.count ? value() : kUntouched;
}

template <NcclOp kOp>
int AllReduce(const Use& use) {
  return use.nccl.AllReduce(use.input, use.output, use.count, use.type.number, kOp, use.comm,
                            use.stream);
}

int AllGather(const Use& use) {
  return use.nccl.AllGather(use.input, use.output, use.count, use.type.number, use.comm,
                            use.stream);
}

int ReduceScatter(const Use& use) {
  return use.nccl.ReduceScatter(use.input, use.output, use.count, use.type.number, kNcclSum,
                                use.comm, use.stream);
}

int Broadcast(const Use& use) {
  return use.nccl.Broadcast(use.input, use.output, use.count, use.type.number, use.root(), use.comm,
                            use.stream);
}

int Reduce(const Use& use) {
  return use.nccl.Reduce(use.input, use.output, use.count, use.type.number, kNcclSum, use.root(),
                         use.comm, use.stream);
}

// Calls body(start), which starts calls by start(result); returns the first error.
template <class Body>
int Grouped(const Use& use, Body body) {
  int first = use.nccl.GroupStart();
  body([&first](int result) {
    if (first == 0) first = result;
  });
  const int end = use.nccl.GroupEnd();
  return first != 0 ? first : end;
}

int Shift(const Use& use, char* output) {
  return Grouped(use, [&](auto start) {
    start(use.nccl.Send(use.input, use.count, use.type.number, use.next(), use.comm, use.stream));
    start(use.nccl.Recv(output, use.count, use.type.number, use.previous(), use.comm, use.stream));
  });
}

int AllToAll(const Use& use) {
  return Grouped(use, [&](auto start) {
    for (int peer = 0; peer < use.ranks; ++peer) {
      const size_t offset = static_cast<size_t>(peer) * use.count * use.type.bytes;
      start(use.nccl.Send(use.input + offset, use.count, use.type.number, peer, use.comm,
                          use.stream));
      start(use.nccl.Recv(use.output + offset, use.count, use.type.number, peer, use.comm,
                          use.stream));
    }
  });
}

// Many all-reduces, and a shift into the elements behind them.
int Many(const Use& use) {
  return Grouped(use, [&](auto start) {
    const size_t each = use.count / kGroup;
    for (size_t i = 0; i < kGroup; ++i) {
      const size_t offset = i * each * use.type.bytes;
      start(use.nccl.AllReduce(use.input + offset, use.output + offset, each, use.type.number,
                               kNcclSum, use.comm, use.stream));
    }
    start(Shift(use, use.output + use.count * use.type.bytes));
  });
}

double Mean(const Use& use, size_t index) {
  const double mean = Sum(use, index) / use.ranks;
  return use.type.integer() ? std::trunc(mean) : mean;
}

const std::vector<Call>& Calls() {
  using Index = size_t;
  static const auto* const calls = new std::vector<Call>{
      {"allreduce", AllReduce<kNcclSum>,
       [](const Use& use, Index i) { return Within(use, i, [&] { return Sum(use, i); }); }},
      {"avg", AllReduce<kNcclAvg>,
       [](const Use& use, Index i) { return Within(use, i, [&] { return Mean(use, i); }); }, Value,
       true},
      {"max", AllReduce<kNcclMax>,
       [](const Use& use, Index i) {
         return Within(use, i, [&] {
           return Fold(use, i, [](double a, double b) { return std::max(a, b); });
         });
       }},
      {"min", AllReduce<kNcclMin>,
       [](const Use& use, Index i) {
         return Within(use, i, [&] {
           return Fold(use, i, [](double a, double b) { return std::min(a, b); });
         });
       }},
      {"prod", AllReduce<kNcclProd>,
       [](const Use& use, Index i) {
         return Within(use, i, [&] { return Fold(use, i, std::multiplies<>(), Factor); });
       },
       Factor},
      {"allgather", AllGather,
       [](const Use& use, Index i) -> std::optional<double> {
         return Value(static_cast<int>(i / use.count), use.round, i % use.count);
       }},
      {"reducescatter", ReduceScatter,
       [](const Use& use, Index i) {
         return Within(use, i,
                       [&] { return Sum(use, static_cast<size_t>(use.rank) * use.count + i); });
       }},
      {"broadcast", Broadcast,
       [](const Use& use, Index i) {
         return Within(use, i, [&] { return Value(use.root(), use.round, i); });
       }},
      {"reduce", Reduce,
       [](const Use& use, Index i) -> std::optional<double> {
         // NCCL may use the output of other ranks than the root.
         if (use.rank != use.root()) return std::nullopt;
         return Within(use, i, [&] { return Sum(use, i); });
       }},
      {"sendrecv", [](const Use& use) { return Shift(use, use.output); },
       [](const Use& use, Index i) {
         return Within(use, i, [&] { return Value(use.previous(), use.round, i); });
       }},
      {"alltoall", AllToAll,
       [](const Use& use, Index i) -> std::optional<double> {
         return Value(static_cast<int>(i / use.count), use.round,
                      static_cast<size_t>(use.rank) * use.count + i % use.count);
       }},
      {"many", Many,
       [](const Use& use, Index i) -> std::optional<double> {
         if (i < use.count / kGroup * kGroup) return Sum(use, i);
         if (i < use.count || i >= 2 * use.count) return kUntouched;
         return Value(use.previous(), use.round, i - use.count);
       }},
  };
  return *calls;
}

}  // namespace

const Call& CallOf(const std::string& name) {
  for (const Call& call : Calls()) {
    if (call.name == name) return call;
  }
  GiveUp("there is no call %s", name.c_str());
}

}  // namespace railhead::stock
