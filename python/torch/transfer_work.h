// SPDX-License-Identifier: Apache-2.0
//
// Work of send and receive: one transfer, or those of a coalesced group. Transfers progress beside
// all other calls of their group (rhIsend, rhIrecv); the receiver matches them by source and tag.
//
//   auto work = c10::make_intrusive<TransferWork>(executor, rank, type, device, timeout);
//   work->AddReceive(tensor, /*from=*/1, /*tag=*/0);
//   TransferWork::Start(work);
//
// If all transfers are done when they have begun, Start() completes the work. Otherwise
// TransferWatch keeps the work, and with it the tensors and the communicator, until they are done,
// also if the caller drops it. A caller that waits, or else the watch, then takes the work out of
// the watch and completes it: exactly one of them does.
//
// torch's timeout begins with the first wait() that passes no timeout, as gloo's does: a receive
// may be posted long before its message is sent.
//
// CUDA tensors: AddSend() copies to pinned memory of the host, after the work on the caller's
// stream. Received bytes are copied to the device on completion.
#ifndef RAILHEAD_PYTHON_TORCH_TRANSFER_WORK_H_
#define RAILHEAD_PYTHON_TORCH_TRANSFER_WORK_H_

#include <c10/core/Event.h>
#include <railhead/railhead.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "executor.h"
#include "types.h"
#include "work.h"

namespace railhead_torch {

class TransferWork final : public RailWork {
 public:
  using Clock = std::chrono::steady_clock;

  TransferWork(std::shared_ptr<Executor> executor, int rank, c10d::OpType type, c10::Device device,
               std::chrono::milliseconds timeout)
      : RailWork(rank, type, device),
        device_(device),
        timeout_(timeout),
        executor_(std::move(executor)) {}
  ~TransferWork() override;

  // Before Start(). Throw what is wrong with the tensor.
  void AddSend(const at::Tensor& tensor, int to, int tag);
  void AddReceive(const at::Tensor& tensor, int from, int tag);  // from: or RH_ANY_SOURCE
  static void Start(const c10::intrusive_ptr<TransferWork>& work);

  c10::Device device() const { return device_; }
  bool wait(std::chrono::milliseconds timeout) override;
  // The rank that sent the last message, on completion.
  int sourceRank() const override;

  // For TransferWatch.
  const Executor* executor() const { return executor_.get(); }
  bool IsDone() const;
  // Ends the group if torch's timeout is over.
  void EndIfLate(Clock::time_point now);
  // Call when the group was destroyed: ends it if the transfers are not done at `latest`.
  void EndAfter(Clock::time_point latest);
  // Once, when IsDone(), by Start() or by the thread that has taken it out of the watch. Sets the
  // result.
  static void Complete(c10::intrusive_ptr<TransferWork> work);

 private:
  struct Part {
    bool sends = false;
    int peer = 0;
    int tag = 0;
    Dense data;
    at::Tensor host;                 // bytes of a CUDA tensor
    std::vector<c10::Event> queued;  // on the caller's stream, before a receive
    void* begin() const { return host.defined() ? host.data_ptr() : data.elements.data_ptr(); }
    size_t bytes() const { return data.elements.nbytes(); }
    std::string What() const;  // for messages
  };

  std::shared_ptr<Finished> Finish();
  std::string Result(const Part& part, rhRequest_t request);
  void Deliver(const Part& part) const;

  const c10::Device device_;
  const std::chrono::milliseconds timeout_;
  std::vector<rhRequest_t> requests_;  // of parts, in order; constant after Start()
  std::atomic<Clock::time_point> deadline_ = Clock::time_point::max();
  std::atomic<int> source_ = -1;
  // Released on completion.
  std::vector<Part> parts_;
  std::shared_ptr<Executor> executor_;
  std::string not_begun_;  // why
  bool destroyed_ = false;
};

}  // namespace railhead_torch

#endif  // RAILHEAD_PYTHON_TORCH_TRANSFER_WORK_H_
