// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "tests/nccl/stock/cuda/api.h"
#include "tests/nccl/stock/kernels/work.h"

namespace railhead::stock {
namespace {

// Bytes of the unit in which the chunks of a protocol are given.
size_t GrainOf(Protocol protocol) {
  constexpr size_t kGrains[kProtocols] = {16, 1920, 512};
  return kGrains[protocol];
}

}  // namespace

void RunCollective(const Block& block, const Function& function, const Collective& work) {
  if (work.registered) GiveUp("registered buffers are not emulated");
  const size_t bytes = BytesOf(function.type);
  const int middles = work.last_channel - work.first_channel - 1;
  const auto before_last =
      work.first.elements + work.middle.elements * static_cast<size_t>(std::max(middles, 0));
  // A single channel has the first part; the last one's is then empty, and there are -1 middle
  // ones.
  const size_t count = work.first.elements + work.last.elements +
                       work.middle.elements * static_cast<size_t>(middles);
  Collective::Share share = work.middle;
  size_t begin = 0;
  if (block.number == work.first_channel) {
    share = work.first;
  } else if (block.number == work.last_channel) {
    share = work.last;
    begin = before_last;
  } else {
    begin = work.first.elements +
            work.middle.elements * static_cast<size_t>(block.number - work.first_channel - 1);
  }
  uint64_t argument = work.argument;
  if (work.argument_is_pointer) {
    argument = 0;
    std::memcpy(&argument, reinterpret_cast<const void*>(work.argument), bytes);
  }
  const Part part = {.function = function,
                     .work = work,
                     .argument = argument,
                     .begin = begin,
                     .elements = share.elements,
                     .chunk = share.grains * (GrainOf(function.protocol) / bytes),
                     .count = count};
  if (function.algorithm == kTree && function.kind == kAllReduce) return RunTree(block, part);
  if (function.algorithm == kRing) return RunRing(block, part);
  GiveUp("%s is not emulated", NameOf(function).c_str());
}

}  // namespace railhead::stock
