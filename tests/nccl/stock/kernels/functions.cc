// SPDX-License-Identifier: Apache-2.0
#include "tests/nccl/stock/kernels/functions.h"

#include <initializer_list>
#include <mutex>
#include <set>

#include "tests/nccl/stock/cuda/api.h"

namespace railhead::stock {
namespace {

// The rows of the table, in NCCL's order. A row has the number of its function, or -1; rows of
// types that need no function of their own share one, and the last of them stands for it.
class Rows {
 public:
  explicit Rows(const int* numbers) : next_(numbers) {}

  void Add(Kind kind, Operator op, Type type, std::initializer_list<Algorithm> algorithms) {
    for (const Algorithm algorithm : algorithms) {
      for (int protocol = 0; protocol < kProtocols; ++protocol) {
        Add({kind, op, type, algorithm, static_cast<Protocol>(protocol)});
      }
    }
  }
  void AddReductions(Kind kind, std::initializer_list<Algorithm> algorithms) {
    for (int op = 0; op < kOperators; ++op) {
      for (int type = 0; type < kTypes; ++type) {
        Add(kind, static_cast<Operator>(op), static_cast<Type>(type), algorithms);
      }
    }
  }
  void Add(const Function& function) {
    const int number = *next_++;
    if (number < 0) return;
    const auto index = static_cast<size_t>(number);
    if (index >= functions_.size()) functions_.resize(index + 1);
    functions_[index] = function;
  }
  std::vector<Function> Take() {
    if (*next_ != -1) GiveUp("the table of functions does not end where this version's should");
    return functions_;
  }

 private:
  const int* next_;
  std::vector<Function> functions_;
};

}  // namespace

size_t BytesOf(Type type) {
  constexpr size_t kBytes[kTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return kBytes[type];
}

std::string NameOf(const Function& function) {
  constexpr const char* kKinds[] = {"send-receive", "all-gather", "broadcast",     "all-gather-v",
                                    "all-reduce",   "reduce",     "reduce-scatter"};
  constexpr const char* kAlgorithms[] = {
      "tree", "ring", "collnet-direct", "collnet-chain", "nvls", "nvls-tree", "pat"};
  constexpr const char* kProtocolNames[] = {"LL", "LL128", "Simple"};
  return std::string(kKinds[function.kind]) + " " + kAlgorithms[function.algorithm] + " " +
         kProtocolNames[function.protocol];
}

void LogFirstUse(const Function& function) {
  static auto* const mutex = new std::mutex;
  static auto* const used = new std::set<std::string>;
  const std::lock_guard<std::mutex> lock(*mutex);
  if (used->insert(NameOf(function)).second) Log("runs %s", NameOf(function).c_str());
}

std::vector<Function> FunctionsOf(const Version& version, const int* numbers) {
  Rows rows(numbers);
  rows.Add({kSendReceive, kSum, kI8, kRing, kSimple});
  rows.Add(kAllGather, kSum, kI8, {kRing, kCollnetDirect, kNvls, kPat});
  rows.Add(kBroadcast, kSum, kI8, {kRing});
  if (version.gathers_of_any_size) rows.Add(kAllGatherV, kSum, kI8, {kRing});
  rows.AddReductions(kAllReduce, {kTree, kRing, kCollnetDirect, kCollnetChain, kNvls, kNvlsTree});
  rows.AddReductions(kReduce, {kRing});
  rows.AddReductions(kReduceScatter, {kRing, kCollnetDirect, kNvls, kPat});
  return rows.Take();
}

}  // namespace railhead::stock
