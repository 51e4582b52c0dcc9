// SPDX-License-Identifier: Apache-2.0
#include "monitored_barrier.h"

#include <c10/util/Exception.h>

#include <string>
#include <thread>
#include <vector>

#include "transfer_work.h"

namespace railhead_torch {
namespace {

using BytePtr = c10::intrusive_ptr<TransferWork>;

BytePtr StartByte(const GroupMember& self, bool sends, int peer,
                  std::chrono::milliseconds timeout) {
  auto work = c10::make_intrusive<TransferWork>(self.executor, self.rank,
                                                sends ? c10d::OpType::SEND : c10d::OpType::RECV,
                                                c10::kCPU, timeout);
  const at::Tensor byte = at::zeros({1}, at::device(at::kCPU).dtype(at::kByte));
  if (sends) {
    work->AddSend(byte, peer, kBarrierTag);
  } else {
    work->AddReceive(byte, peer, kBarrierTag);
  }
  TransferWork::Start(work);
  return work;
}

// "Rank 1", or "Ranks 1, 2"; "" if all have come.
std::string Absent(const std::vector<BytePtr>& arrivals, bool all) {
  std::string ranks;
  size_t count = 0;
  for (size_t i = 0; i < arrivals.size() && (all || count == 0); ++i) {
    if (arrivals[i]->isCompleted()) continue;
    ranks += (count++ == 0 ? "" : ", ") + std::to_string(i + 1);
  }
  return count == 0 ? "" : (count == 1 ? "Rank " : "Ranks ") + ranks;
}

void AwaitAll(const GroupMember& self, std::chrono::milliseconds timeout, bool all) {
  const auto latest = std::chrono::steady_clock::now() + timeout;
  std::vector<BytePtr> arrivals;
  for (int peer = 1; peer < self.size; ++peer) {
    arrivals.push_back(StartByte(self, false, peer, timeout));
  }
  std::string absent = Absent(arrivals, all);
  while (!absent.empty() && std::chrono::steady_clock::now() < latest) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    absent = Absent(arrivals, all);
  }
  if (!absent.empty()) {
    const std::string why = "Rank 0 timed out in monitoredBarrier: " + absent +
                            " failed to pass monitoredBarrier in " +
                            std::to_string(timeout.count()) + " ms";
    self.executor->End(why);
    C10_THROW_ERROR(DistBackendError, "railhead: " + why);
  }
  for (const BytePtr& arrival : arrivals) arrival->synchronize();
  for (int peer = 1; peer < self.size; ++peer) StartByte(self, true, peer, timeout)->synchronize();
}

}  // namespace

void MonitoredBarrier(const GroupMember& self, std::chrono::milliseconds timeout, bool all) {
  if (self.rank == 0) {
    AwaitAll(self, timeout, all);
    return;
  }
  try {
    // Longer than rank 0 waits: it names the rank that is absent.
    StartByte(self, true, 0, 2 * timeout)->synchronize();
    StartByte(self, false, 0, 2 * timeout)->synchronize();
  } catch (const c10::Error& error) {
    C10_THROW_ERROR(DistBackendError,
                    "railhead: Rank " + std::to_string(self.rank) +
                        " successfully reached monitoredBarrier, but received errors while waiting "
                        "for send/recv from rank 0: " +
                        error.msg());
  }
}

}  // namespace railhead_torch
