// SPDX-License-Identifier: Apache-2.0
#include "backend.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <numeric>
#include <utility>

#include "arguments.h"
#include "monitored_barrier.h"
#include "transfer_watch.h"

namespace railhead_torch {
namespace {

using at::Tensor;
using WorkPtr = RailheadBackend::WorkPtr;

// Notes what is on the caller's stream of a device now.
void AddQueued(c10::Device device, std::vector<c10::Event>& queued) {
  if (device.is_cpu()) return;
  c10::Event event(device.type());
  event.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  queued.push_back(std::move(event));
}

}  // namespace

RailheadBackend::RailheadBackend(rhComm_t comm, const rhUniqueId& id, int rank, int size,
                                 std::chrono::milliseconds timeout)
    : Backend(rank, size), id_(id), executor_(Executor::Create(comm)), timeout_(timeout) {}

RailheadBackend::~RailheadBackend() {
  TransferWatch::Get().Leave(executor_.get());
  executor_->Leave();
}

void RailheadBackend::shutdown() {
  TransferWatch::Get().Leave(executor_.get());
  executor_->Drain();
}

void RailheadBackend::abort() {
  executor_->End("this rank has aborted the process group");
  executor_->Drain();
}

template <class Options>
RailheadBackend::How RailheadBackend::HowOf(c10d::OpType type, const Options& options,
                                            c10::Device device) {
  How how = {type, device};
  if constexpr (requires { options.timeout; }) how.timeout = options.timeout;
  // Newer versions of torch pass whether the caller waits.
  if constexpr (requires { options.asyncOp; }) how.waited_for = !options.asyncOp;
  return how;
}

WorkPtr RailheadBackend::Post(const How& how, Tensors results, Step step) {
  if (coalescing_ > 0) {
    TORCH_CHECK_NOT_IMPLEMENTED(!held_transfers_, "railhead: ", c10d::opTypeToString(how.type),
                                kMixed);
    if (!held_.work) {
      held_.work = c10::make_intrusive<RailWork>(getRank(), held_.type, how.device);
      held_.device = how.device;
    }
    TORCH_CHECK_TYPE(held_.device == how.device, "railhead: ", c10d::opTypeToString(how.type),
                     ": its tensors are on ", how.device, ", and those of earlier calls of the ",
                     "group on ", held_.device);
    AddQueued(how.device, held_.queued);
    held_.steps.push_back(std::move(step));
    held_.results.insert(held_.results.end(), results.begin(), results.end());
    // torch would wait for it at once, and it begins with endCoalescing.
    return how.waited_for ? WorkPtr() : WorkPtr(held_.work);
  }
  Job job;
  job.work = c10::make_intrusive<RailWork>(getRank(), how.type, how.device);
  job.type = how.type;
  job.device = how.device;
  AddQueued(how.device, job.queued);
  job.number = ++number_;
  job.steps.push_back(std::move(step));
  job.results = std::move(results);
  job.timeout = how.timeout.count() > 0 ? how.timeout : timeout_.load();
  WorkPtr work = job.work;
  executor_->Submit(std::move(job), how.waited_for);
  return work;
}

void RailheadBackend::startCoalescing() {
  if (coalescing_++ > 0) return;
  held_ = Job();
  held_.type = c10d::OpType::COALESCED;
  held_transfers_.reset();
}

WorkPtr RailheadBackend::endCoalescing() {
  TORCH_CHECK(coalescing_ > 0, "railhead: endCoalescing: there was no startCoalescing before it");
  if (--coalescing_ > 0) return held_.work;
  if (auto transfers = std::move(held_transfers_)) {
    TransferWork::Start(transfers);
    return transfers;
  }
  Job job = std::exchange(held_, Job());
  if (!job.work) {
    job.work = c10::make_intrusive<RailWork>(getRank(), job.type, c10::kCPU);
    job.work->Succeed({})->Set();
    return job.work;
  }
  WorkPtr work = job.work;
  job.number = ++number_;
  job.timeout = timeout_;
  executor_->Submit(std::move(job), false);
  return work;
}

// Calls that are made by `body` and done together, unless it throws.
template <class Options, class Body>
WorkPtr RailheadBackend::Together(const Options& options, Body body) {
  startCoalescing();
  const size_t steps = held_.steps.size();
  const size_t results = held_.results.size();
  try {
    body();
  } catch (...) {
    held_.steps.resize(steps);
    held_.results.resize(results);
    --coalescing_;
    throw;
  }
  WorkPtr work = endCoalescing();
  const bool begins_later = coalescing_ > 0;
  return begins_later && HowOf(c10d::OpType::COALESCED, options, c10::kCPU).waited_for ? WorkPtr()
                                                                                       : work;
}

template <class Call>
Step RailheadBackend::Reduction(const char* name, const Tensor& tensor, const c10d::ReduceOp& op,
                                Call call) {
  const rhDataType_t type = TypeOf(name, tensor);
  const Operator wanted = OperatorOf(name, op, tensor);
  return {[=](Running& running) {
            rhRedOp_t number = wanted.op;
            if (wanted.factor.defined()) {
              const rhResult_t made = running.MakeFactor(wanted.factor.data_ptr(), type, &number);
              if (made != rhSuccess) return made;
            }
            return call(running.comm(), type, number);
          },
          {}};
}

WorkPtr RailheadBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const Dense data = MakeDense("broadcast", OnlyOne("broadcast", tensors));
  const int root = static_cast<int>(options.rootRank);
  CheckPeer("broadcast", root);
  void* const begin = data.elements.data_ptr();
  return Post(HowOf(c10d::OpType::BROADCAST, options, data.original.device()), {data.original},
              {[=, bytes = BytesOf(data.elements)](Running& running) {
                 return rhBroadcast(begin, begin, bytes, rhUint8, root, running.comm(), nullptr);
               },
               [data, receives = root != getRank()] {
                 if (receives) data.CopyBack();
               }});
}

WorkPtr RailheadBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const Dense data = MakeDense("all_reduce", OnlyOne("all_reduce", tensors));
  void* const begin = data.elements.data_ptr();
  Step step = Reduction(
      "all_reduce", data.elements, options.reduceOp,
      [begin, count = ElementsOf(data.elements)](rhComm_t comm, rhDataType_t type, rhRedOp_t op) {
        return rhAllReduce(begin, begin, count, type, op, comm, nullptr);
      });
  step.finish = [data] { data.CopyBack(); };
  return Post(HowOf(c10d::OpType::ALLREDUCE, options, data.original.device()), {data.original},
              std::move(step));
}

WorkPtr RailheadBackend::allreduce_coalesced(Tensors& tensors,
                                             const c10d::AllreduceCoalescedOptions& options) {
  return Together(options, [&] {
    for (const Tensor& tensor : tensors) {
      Tensors one = {tensor};
      allreduce(one, options);
    }
  });
}

WorkPtr RailheadBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const Dense data = MakeDense("reduce", OnlyOne("reduce", tensors));
  const int root = static_cast<int>(options.rootRank);
  CheckPeer("reduce", root);
  void* const begin = data.elements.data_ptr();
  Step step = Reduction(
      "reduce", data.elements, options.reduceOp,
      [=, count = ElementsOf(data.elements)](rhComm_t comm, rhDataType_t type, rhRedOp_t op) {
        return rhReduce(begin, begin, count, type, op, root, comm, nullptr);
      });
  step.finish = [data, here = root == getRank()] {
    if (here) data.CopyBack();
  };
  return Post(HowOf(c10d::OpType::REDUCE, options, data.original.device()), {data.original},
              std::move(step));
}

WorkPtr RailheadBackend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                   const c10d::AllgatherOptions& options) {
  const Parts parts("all_gather", OnlyList("all_gather", outputs, getSize()));
  const Dense input = MakeDense("all_gather", OnlyOne("all_gather", inputs));
  for (const Tensor& part : parts.tensors) CheckSame("all_gather", part, input.original);
  TORCH_CHECK_VALUE(parts.bytes[getRank()] == BytesOf(input.elements),
                    "railhead: all_gather: output ", getRank(), " has ",
                    parts.tensors[getRank()].numel(), " elements, and the input ",
                    input.original.numel());
  const Tensor memory = Bytes(parts.total, input.original.device());
  return Post(HowOf(c10d::OpType::ALLGATHER, options, input.original.device()), parts.tensors,
              {[=](Running& running) {
                 return rhAllGatherv(input.elements.data_ptr(), memory.data_ptr(),
                                     parts.bytes.data(), nullptr, rhUint8, running.comm(), nullptr);
               },
               [parts, memory] { parts.Spread(memory); }});
}

Step RailheadBackend::GatherBase(const Tensor& output, const Tensor& input) {
  const char* const call = "all_gather_into_tensor";
  CheckSame(call, output, input);
  const Dense from = MakeDense(call, input);
  const Dense to = MakeDenseResult(call, output);
  TORCH_CHECK_VALUE(output.numel() == input.numel() * getSize(), "railhead: ", call,
                    ": the output has ", output.numel(), " elements, and must have ", getSize(),
                    " times the input's ", input.numel());
  return {[from, to](Running& running) {
            return rhAllGather(from.elements.data_ptr(), to.elements.data_ptr(),
                               BytesOf(from.elements), rhUint8, running.comm(), nullptr);
          },
          [to] { to.CopyBack(); }};
}

WorkPtr RailheadBackend::_allgather_base(Tensor& output, Tensor& input,
                                         const c10d::AllgatherOptions& options) {
  return Post(HowOf(c10d::OpType::_ALLGATHER_BASE, options, output.device()), {output},
              GatherBase(output, input));
}

WorkPtr RailheadBackend::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                             const c10d::AllgatherOptions& options) {
  // outputs[r] is what rank r has put in.
  TORCH_CHECK_VALUE(outputs.size() == static_cast<size_t>(getSize()),
                    "railhead: all_gather_coalesced: there must be a list for each rank");
  return Together(options, [&] {
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::vector<Tensors> of_one(1);
      for (const Tensors& rank : outputs) {
        TORCH_CHECK_VALUE(
            rank.size() == inputs.size(),
            "railhead: all_gather_coalesced: each list must have an output for each input");
        of_one.front().push_back(rank[i]);
      }
      Tensors one = {inputs[i]};
      allgather(of_one, one, options);
    }
  });
}

WorkPtr RailheadBackend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                         const c10d::AllgatherOptions& options) {
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(),
                    "railhead: all_gather_into_tensor_coalesced: ", outputs.size(), " outputs for ",
                    inputs.size(), " inputs");
  return Together(options, [&] {
    for (size_t i = 0; i < inputs.size(); ++i) _allgather_base(outputs[i], inputs[i], options);
  });
}

WorkPtr RailheadBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                const c10d::GatherOptions& options) {
  const Dense input = MakeDense("gather", OnlyOne("gather", inputs));
  const int root = static_cast<int>(options.rootRank);
  CheckPeer("gather", root);
  const bool here = root == getRank();
  const Parts parts("gather", here ? OnlyList("gather", outputs, getSize()) : Tensors());
  for (const Tensor& part : parts.tensors) {
    CheckSame("gather", part, input.original);
    TORCH_CHECK_VALUE(part.numel() == input.original.numel(), "railhead: gather: an output has ",
                      part.numel(), " elements, and the input ", input.original.numel());
  }
  const Tensor memory = Bytes(parts.total, input.original.device());
  return Post(HowOf(c10d::OpType::GATHER, options, input.original.device()), parts.tensors,
              {[=](Running& running) {
                 return rhGather(input.elements.data_ptr(), here ? memory.data_ptr() : nullptr,
                                 BytesOf(input.elements), rhUint8, root, running.comm(), nullptr);
               },
               [parts, memory] { parts.Spread(memory); }});
}

WorkPtr RailheadBackend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                 const c10d::ScatterOptions& options) {
  const Dense output = MakeDenseResult("scatter", OnlyOne("scatter", outputs));
  const int root = static_cast<int>(options.rootRank);
  CheckPeer("scatter", root);
  Tensor memory;
  if (root == getRank()) {
    const Tensors& parts = OnlyList("scatter", inputs, getSize());
    for (const Tensor& part : parts) {
      CheckSame("scatter", part, output.original);
      TORCH_CHECK_VALUE(part.numel() == output.original.numel(), "railhead: scatter: an input has ",
                        part.numel(), " elements, and the output ", output.original.numel());
    }
    memory = Joined("scatter", parts);
  }
  return Post(HowOf(c10d::OpType::SCATTER, options, output.original.device()), {output.original},
              {[=](Running& running) {
                 return rhScatter(memory.defined() ? memory.data_ptr() : nullptr,
                                  output.elements.data_ptr(), BytesOf(output.elements), rhUint8,
                                  root, running.comm(), nullptr);
               },
               [output] { output.CopyBack(); }});
}

WorkPtr RailheadBackend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                        const c10d::ReduceScatterOptions& options) {
  const Dense output = MakeDenseResult("reduce_scatter", OnlyOne("reduce_scatter", outputs));
  const Tensors& parts = OnlyList("reduce_scatter", inputs, getSize());
  CheckSame("reduce_scatter", output.original, parts.front());
  TORCH_CHECK_VALUE(output.original.numel() == parts[getRank()].numel(),
                    "railhead: reduce_scatter: the output has ", output.original.numel(),
                    " elements, and input ", getRank(), " has ", parts[getRank()].numel());
  std::vector<size_t> counts;
  for (const Tensor& part : parts) counts.push_back(ElementsOf(part));
  const Tensor memory = Joined("reduce_scatter", parts);
  Step step = Reduction("reduce_scatter", memory, options.reduceOp,
                        [=](rhComm_t comm, rhDataType_t type, rhRedOp_t op) {
                          return rhReduceScatterv(memory.data_ptr(), output.elements.data_ptr(),
                                                  counts.data(), type, op, comm, nullptr);
                        });
  step.finish = [output] { output.CopyBack(); };
  return Post(HowOf(c10d::OpType::REDUCE_SCATTER, options, output.original.device()),
              {output.original}, std::move(step));
}

Step RailheadBackend::ReduceScatterBase(const Tensor& output, const Tensor& input,
                                        const c10d::ReduceOp& op) {
  const char* const call = "reduce_scatter_tensor";
  CheckSame(call, output, input);
  const Dense from = MakeDense(call, input);
  const Dense to = MakeDenseResult(call, output);
  TORCH_CHECK_VALUE(input.numel() == output.numel() * getSize(), "railhead: ", call,
                    ": the input has ", input.numel(), " elements, and must have ", getSize(),
                    " times the output's ", output.numel());
  Step step = Reduction(
      call, from.elements, op, [from, to](rhComm_t comm, rhDataType_t type, rhRedOp_t number) {
        return rhReduceScatter(from.elements.data_ptr(), to.elements.data_ptr(),
                               ElementsOf(to.elements), type, number, comm, nullptr);
      });
  step.finish = [to] { to.CopyBack(); };
  return step;
}

WorkPtr RailheadBackend::_reduce_scatter_base(Tensor& output, Tensor& input,
                                              const c10d::ReduceScatterOptions& options) {
  return Post(HowOf(c10d::OpType::_REDUCE_SCATTER_BASE, options, output.device()), {output},
              ReduceScatterBase(output, input, options.reduceOp));
}

WorkPtr RailheadBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(),
                    "railhead: reduce_scatter_tensor_coalesced: ", outputs.size(), " outputs for ",
                    inputs.size(), " inputs");
  return Together(options, [&] {
    for (size_t i = 0; i < inputs.size(); ++i) _reduce_scatter_base(outputs[i], inputs[i], options);
  });
}

WorkPtr RailheadBackend::alltoall_base(Tensor& output, Tensor& input,
                                       std::vector<int64_t>& output_sizes,
                                       std::vector<int64_t>& input_sizes,
                                       const c10d::AllToAllOptions& options) {
  const char* const call = "all_to_all_single";
  CheckSame(call, output, input);
  const Dense from = MakeDense(call, input);
  const Dense to = MakeDenseResult(call, output);
  // Bytes for each rank, from rows.
  const auto bytes = [&](const char* which, const Tensor& tensor,
                         const std::vector<int64_t>& rows) {
    const int64_t all = tensor.dim() > 0 ? tensor.size(0) : 1;
    TORCH_CHECK_VALUE(
        rows.empty() ? all % getSize() == 0 : rows.size() == static_cast<size_t>(getSize()),
        "railhead: ", call, ": the ", which, "'s ", all,
        " rows are not the same number for each of ", getSize(),
        " ranks: give split sizes, one for each");
    TORCH_CHECK_VALUE(rows.empty() || std::accumulate(rows.begin(), rows.end(), int64_t{0}) == all,
                      "railhead: ", call, ": the ", which, "'s split sizes do not add up to its ",
                      all, " rows");
    std::vector<size_t> sizes;
    const size_t row = all > 0 ? BytesOf(tensor) / static_cast<size_t>(all) : 0;
    for (int rank = 0; rank < getSize(); ++rank) {
      const int64_t count = rows.empty() ? all / getSize() : rows[rank];
      TORCH_CHECK_VALUE(count >= 0, "railhead: ", call, ": a split size is negative");
      sizes.push_back(row * static_cast<size_t>(count));
    }
    return sizes;
  };
  const std::vector<size_t> sent = bytes("input", input, input_sizes);
  const std::vector<size_t> received = bytes("output", output, output_sizes);
  const bool even = input_sizes.empty() && output_sizes.empty();
  if (even) {
    TORCH_CHECK_VALUE(sent.front() == received.front(), "railhead: ", call, ": the output has ",
                      output.numel(), " elements, and the input ", input.numel());
  }
  return Post(HowOf(c10d::OpType::ALLTOALL_BASE, options, output.device()), {output},
              {[=](Running& running) {
                 void* const begin = from.elements.data_ptr();
                 void* const end = to.elements.data_ptr();
                 return even
                            ? rhAlltoAll(begin, end, sent.front(), rhUint8, running.comm(), nullptr)
                            : rhAlltoAllv(begin, sent.data(), nullptr, end, received.data(),
                                          nullptr, rhUint8, running.comm(), nullptr);
               },
               [to] { to.CopyBack(); }});
}

WorkPtr RailheadBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                  const c10d::AllToAllOptions& options) {
  const char* const call = "all_to_all";
  const auto ranks = static_cast<size_t>(getSize());
  TORCH_CHECK_VALUE(outputs.size() == ranks && inputs.size() == ranks, "railhead: ", call,
                    ": there must be ", ranks, " inputs and outputs, one for each rank");
  std::vector<Dense> to;
  std::vector<Dense> from;
  for (size_t rank = 0; rank < ranks; ++rank) {
    CheckSame(call, outputs[rank], inputs[rank]);
    CheckSame(call, outputs[rank], outputs.front());
    from.push_back(MakeDense(call, inputs[rank]));
    to.push_back(MakeDenseResult(call, outputs[rank]));
  }
  return Post(HowOf(c10d::OpType::ALLTOALL, options, outputs.front().device()), outputs,
              {[from, to](Running& running) {
                 rhGroupStart();
                 rhResult_t first = rhSuccess;
                 for (size_t rank = 0; rank < to.size(); ++rank) {
                   const int peer = static_cast<int>(rank);
                   const rhResult_t sent =
                       rhSend(from[rank].elements.data_ptr(), BytesOf(from[rank].elements), rhUint8,
                              peer, running.comm(), nullptr);
                   const rhResult_t received =
                       rhRecv(to[rank].elements.data_ptr(), BytesOf(to[rank].elements), rhUint8,
                              peer, running.comm(), nullptr);
                   if (first == rhSuccess) first = sent != rhSuccess ? sent : received;
                 }
                 const rhResult_t result = rhGroupEnd();
                 return first != rhSuccess ? first : result;
               },
               [to] {
                 for (const Dense& dense : to) dense.CopyBack();
               }});
}

void RailheadBackend::CheckPeer(const char* call, int peer) const {
  TORCH_CHECK_VALUE(peer >= 0 && peer < getSize(), "railhead: ", call, ": rank ", peer,
                    " does not exist; ranks go from 0 to ", getSize() - 1);
}

WorkPtr RailheadBackend::barrier(const c10d::BarrierOptions& options) {
  return Post(HowOf(c10d::OpType::BARRIER, options, c10::kCPU), {},
              {[](Running& running) { return rhBarrier(running.comm(), nullptr); }, {}});
}

void RailheadBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  // A negative timeout is torch's "not set".
  MonitoredBarrier({executor_, getRank(), getSize()},
                   options.timeout.count() >= 0 ? options.timeout : timeout_.load(),
                   wait_all_ranks);
}

}  // namespace railhead_torch
