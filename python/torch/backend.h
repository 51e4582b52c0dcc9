// SPDX-License-Identifier: Apache-2.0
//
// torch's process-group backend "railhead": turns c10d's calls on tensors of the CPU and
// of CUDA devices into calls of the C API.
//
// A collective is checked here, in the caller's thread, and throws what is wrong with its
// arguments; what goes wrong later is in the Work that it returns. Collectives of a group are done
// in the order in which they were made (executor.h). Transfers progress beside them
// (transfer_work.h).
//
// Of CUDA tensors: a call begins when what was on the caller's stream before it is done, and
// completes when the host knows that its results are in the device's memory. So every stream sees
// them after wait(), which blocks the caller's thread.
#ifndef RAILHEAD_PYTHON_TORCH_BACKEND_H_
#define RAILHEAD_PYTHON_TORCH_BACKEND_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "arguments.h"
#include "executor.h"
#include "transfer_work.h"
#include "types.h"

namespace railhead_torch {

class RailheadBackend final : public c10d::Backend {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  // Takes over the communicator, which the ranks with this id have made.
  RailheadBackend(rhComm_t comm, const rhUniqueId& id, int rank, int size,
                  std::chrono::milliseconds timeout);
  ~RailheadBackend() override;

  const std::string getBackendName() const override { return "railhead"; }
  bool supportsCoalescing() const override { return true; }
  void startCoalescing() override;
  WorkPtr endCoalescing() override;
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return number_; }
  void setTimeout(std::chrono::milliseconds timeout) override { timeout_ = timeout; }
  bool supportsSplitting() const override { return true; }
  // A copy, which split groups begin with.
  c10::intrusive_ptr<Options> getBackendOptions() override {
    return c10::make_intrusive<Options>(getBackendName(), timeout_.load());
  }
  c10::intrusive_ptr<Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                    const std::vector<int>& ranks,
                                    const c10::intrusive_ptr<Options>& options) override;
  void shutdown() override;
  void abort() override;

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
                        std::vector<int64_t>& input_sizes,
                        const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override;
  WorkPtr send(Tensors& tensors, int to, int tag) override;
  WorkPtr recv(Tensors& tensors, int from, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

 private:
  // Properties of a call that do not depend on the collective.
  struct How {
    c10d::OpType type;
    c10::Device device;                                                 // of its tensors
    std::chrono::milliseconds timeout = std::chrono::milliseconds(-1);  // not above 0: the group's
    bool waited_for = false;                                            // the caller waits anyway
  };
  template <class Options>
  static How HowOf(c10d::OpType type, const Options& options, c10::Device device);
  WorkPtr Post(const How& how, Tensors results, Step step);
  template <class Options, class Body>
  WorkPtr Together(const Options& options, Body body);
  template <class Call>
  Step Reduction(const char* name, const at::Tensor& tensor, const c10d::ReduceOp& op, Call call);
  Step GatherBase(const at::Tensor& output, const at::Tensor& input);
  Step ReduceScatterBase(const at::Tensor& output, const at::Tensor& input,
                         const c10d::ReduceOp& op);
  void CheckPeer(const char* call, int peer) const;
  static constexpr const char* kMixed =
      ": a group of coalesced calls has either collectives or transfers: make two groups";
  template <class Add>
  WorkPtr PostTransfer(const char* call, c10d::OpType type, const Tensors& tensors, int tag,
                       Add add);

  const rhUniqueId id_;
  const std::shared_ptr<Executor> executor_;
  std::atomic<std::chrono::milliseconds> timeout_;
  std::atomic<uint64_t> number_ = 0;
  int coalescing_ = 0;
  // Between startCoalescing and endCoalescing: collectives, or else transfers.
  Job held_;
  c10::intrusive_ptr<TransferWork> held_transfers_;
};

}  // namespace railhead_torch

#endif  // RAILHEAD_PYTHON_TORCH_BACKEND_H_
