// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/tuner/costs.h"

#include <array>

#include "plugins/nccl/abi/tuner.h"

namespace railhead::nccl {
namespace {

// Bytes on the wire for each byte of data, by protocol: LL sends 4 bytes of data in 8, LL128 120 in
// 128.
constexpr std::array<double, abi::kProtocols> kOverhead = {2.0, 128.0 / 120.0, 1.0};
constexpr double kBitsPerMicrosecond = 1000;  // at 1 Gbit/s
constexpr double kBitsPerByte = 8;

// Of an all-reduce in trees. Half of the data goes through each of two trees; a node is inside one,
// where it sends to its parent and two children, and a leaf of the other. Two nodes are each the
// other's only parent or child.
double TreeBytes(const CommunicatorSize& size, double bytes) {
  return size.nodes == 2 ? bytes : 2 * bytes;
}

}  // namespace

double NetworkBytes(const CommunicatorSize& size, const CollectiveCall& call, int algorithm) {
  if (size.nodes < 2 || size.ranks < 2) return 0;
  const auto bytes = static_cast<double>(call.bytes);
  const auto ranks = static_cast<double>(size.ranks);
  const double all_but_one = bytes * (ranks - 1) / ranks;
  const bool is_all_reduce = call.collective == abi::kAllReduce;
  const bool is_half = call.collective == abi::kAllGather || call.collective == abi::kReduceScatter;
  switch (algorithm) {
    case abi::kRing:
      return is_all_reduce ? 2 * all_but_one : is_half ? all_but_one : bytes;
    case abi::kPat:
      return is_half ? all_but_one : bytes;
    case abi::kTree:
    case abi::kNvlsTree:
      return is_all_reduce ? TreeBytes(size, bytes) : bytes;
    default:  // switches reduce (CollNet, NVLS)
      return bytes;
  }
}

void CorrectCosts(const CommunicatorSize& size, const CollectiveCall& call,
                  const NetworkRates& rates, absl::Span<float> costs, int protocols) {
  if (protocols != abi::kProtocols) return;
  const double longer = kBitsPerByte / kBitsPerMicrosecond * (1 / rates.real - 1 / rates.told);
  for (size_t i = 0; i < costs.size(); ++i) {
    if (!(costs[i] >= 0)) continue;
    const int algorithm = static_cast<int>(i / kOverhead.size());
    const double bytes = NetworkBytes(size, call, algorithm) * kOverhead[i % kOverhead.size()];
    costs[i] = static_cast<float>(costs[i] + bytes * longer);
  }
}

}  // namespace railhead::nccl
