// SPDX-License-Identifier: Apache-2.0
#include "tests/nccl/stock/kernels/run.h"

#include <bit>
#include <string>
#include <thread>
#include <vector>

#include "tests/nccl/stock/cuda/api.h"
#include "tests/nccl/stock/kernels/functions.h"
#include "tests/nccl/stock/kernels/layout.h"
#include "tests/nccl/stock/kernels/work.h"
#include "tests/nccl/stock/redirect.h"

namespace railhead::stock {
namespace {

// Version and functions of the loaded library.
struct Device {
  const Version& version;
  std::vector<Function> functions;
};

Device Load() {
  const void* const get = AddressOf("ncclGetVersion");
  const void* const rows = AddressOf("ncclDevFuncRowToId");
  if (get == nullptr || rows == nullptr) GiveUp("the library has no table of functions");
  int number = 0;
  reinterpret_cast<int (*)(int*)>(const_cast<void*>(get))(&number);
  const Version& version = VersionOf(number);
  return {version, FunctionsOf(version, static_cast<const int*>(rows))};
}

const Device& TheDevice() {
  static const auto* const device = new Device(Load());
  return *device;
}

// The works of a batch, as the addresses where NCCL has written them.
class Works {
 public:
  Works(const Arguments& arguments, size_t bytes) : arguments_(arguments), bytes_(bytes) {}

  void Add(const Batch& batch) {
    for (unsigned place = 0; place < 64; ++place) {
      if ((batch.works >> place & 1U) == 0) continue;
      const size_t offset = batch.offset + place * bytes_;
      found_.push_back(arguments_.storage == kBehindArguments
                           ? reinterpret_cast<const char*>(&arguments_) + offset
                           : arguments_.works + (offset & arguments_.mask));
    }
  }
  const std::vector<const char*>& found() const { return found_; }
  // The offset behind the last work of a batch.
  size_t EndOf(const Batch& batch) const {
    return batch.offset + static_cast<size_t>(std::bit_width(batch.works)) * bytes_;
  }

 private:
  const Arguments& arguments_;
  const size_t bytes_;
  std::vector<const char*> found_;
};

// Transfers of a batch wait for each other's peers, so all run at once.
void RunTransfers(const Block& block, const std::vector<const char*>& works) {
  std::vector<std::jthread> threads;
  for (const char* const work : works) {
    const auto* const transfer = reinterpret_cast<const Transfer*>(work);
    threads.emplace_back([&block, transfer] { RunSend(block, *transfer); });
    threads.emplace_back([&block, transfer] { RunReceive(block, *transfer); });
  }
}

void RunCollectives(const Block& block, unsigned number, const std::vector<const char*>& works) {
  const std::vector<Function>& functions = TheDevice().functions;
  if (number >= functions.size() || functions[number].kind == kNoKind) {
    GiveUp("there is no function %u", number);
  }
  LogFirstUse(functions[number]);
  for (const char* const work : works) {
    RunCollective(block, functions[number], ReadCollective(block.version, work));
  }
}

void RunBlock(const Block& block, const Arguments& arguments, size_t first) {
  const auto* batch = reinterpret_cast<const Batch*>(&arguments + 1) + first;
  while (true) {
    const Batch& begin = *batch;
    if (begin.type > kCollectiveWork) GiveUp("work of type %u is not emulated", begin.type);
    const bool transfers = begin.type == kTransferWork;
    Works works(arguments, transfers ? sizeof(Transfer) : block.version.collective_bytes);
    works.Add(*batch);
    while (batch->extends != 0) {
      batch += batch->next;
      works.Add(*batch);
    }
    if (block.communicator.consumed != nullptr && arguments.storage == kRingBuffer) {
      block.communicator.consumed[block.number] = static_cast<uint32_t>(works.EndOf(*batch));
    }
    if (transfers) {
      RunTransfers(block, works.found());
    } else {
      RunCollectives(block, begin.function & ((1U << block.version.function_bits) - 1),
                     works.found());
    }
    if (batch->next == 0) return;
    batch += batch->next;
  }
}

}  // namespace

void RunKernel(const std::string& name, const char* bytes) {
  if (name.find("ncclDevKernel_") == std::string::npos) {
    GiveUp("kernel %s is not emulated", name.c_str());
  }
  const auto& arguments = *reinterpret_cast<const Arguments*>(bytes);
  const Version& version = TheDevice().version;
  const Communicator communicator = ReadCommunicator(version, arguments.communicator);
  std::vector<std::jthread> blocks;
  size_t first = 0;
  for (int number = 0; number < kChannels; ++number) {
    if ((arguments.channels >> static_cast<unsigned>(number) & 1U) == 0) continue;
    blocks.emplace_back([&, number, first] {
      const Channel channel = ReadChannel(version, communicator, number);
      RunBlock({version, communicator, channel, number}, arguments, first);
    });
    ++first;
  }
}

}  // namespace railhead::stock
