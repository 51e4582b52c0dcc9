// SPDX-License-Identifier: Apache-2.0
#include "transfer_work.h"

#include <c10/core/InferenceMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

#include "transfer_watch.h"

namespace railhead_torch {
namespace {

// Elements of any type, as bytes.
at::Tensor BytesIn(const at::Tensor& elements) { return elements.reshape(-1).view(at::kByte); }

// Memory of the host that a device copies to and from directly.
at::Tensor Pinned(size_t bytes) {
  return at::empty({static_cast<int64_t>(bytes)},
                   at::device(at::kCPU).dtype(at::kByte).pinned_memory(true));
}

}  // namespace

std::string TransferWork::Part::What() const {
  const std::string rank = peer == RH_ANY_SOURCE ? "any rank" : "rank " + std::to_string(peer);
  return (sends ? "SEND to " : "RECV from ") + rank + " with tag " + std::to_string(tag);
}

TransferWork::~TransferWork() {
  for (rhRequest_t request : requests_) rhRequestFree(request);
}

void TransferWork::AddSend(const at::Tensor& tensor, int to, int tag) {
  Part part;
  part.sends = true;
  part.peer = to;
  part.tag = tag;
  part.data = MakeDense("send", tensor);
  if (!device_.is_cpu() && part.bytes() > 0) {
    part.host = Pinned(part.bytes());
    part.host.copy_(BytesIn(part.data.elements));
  }
  parts_.push_back(std::move(part));
}

void TransferWork::AddReceive(const at::Tensor& tensor, int from, int tag) {
  Part part;
  part.peer = from;
  part.tag = tag;
  part.data = MakeDenseResult("recv", tensor);
  if (!device_.is_cpu() && part.bytes() > 0) {
    part.host = Pinned(part.bytes());
    c10::Event event(device_.type());
    event.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
    part.queued.push_back(std::move(event));
  }
  parts_.push_back(std::move(part));
}

void TransferWork::Start(const c10::intrusive_ptr<TransferWork>& work) {
  Executor& executor = *work->executor_;
  std::string why = executor.WhyUnusable();
  for (const Part& part : work->parts_) {
    if (!why.empty()) break;
    rhRequest_t request = nullptr;
    const rhResult_t begun = part.sends ? rhIsend(part.begin(), part.bytes(), rhUint8, part.peer,
                                                  part.tag, executor.comm(), &request)
                                        : rhIrecv(part.begin(), part.bytes(), rhUint8, part.peer,
                                                  part.tag, executor.comm(), &request);
    if (begun == rhSuccess) {
      work->requests_.push_back(request);
    } else {
      why = executor.WhyEndedOr(rhGetLastError(executor.comm()));
    }
  }
  // The parts that have begun would never be done without the others.
  if (!why.empty() && !work->requests_.empty()) executor.End(why);
  work->not_begun_ = std::move(why);
  // Small sends are done now, and receives whose message had arrived. Delivery to a device would
  // block the caller.
  if (work->not_begun_.empty() && work->device_.is_cpu() && work->IsDone()) {
    Complete(work);
  } else {
    TransferWatch::Get().Add(work);
  }
}

bool TransferWork::wait(std::chrono::milliseconds timeout) {
  // With a timeout, the caller waits for the watch, which polls often enough.
  if (timeout.count() <= 0 && !isCompleted()) {
    Clock::time_point none = Clock::time_point::max();
    deadline_.compare_exchange_strong(none, Clock::now() + timeout_ + kGrace);
    for (rhRequest_t request : requests_) rhRequestWait(request);
    if (auto mine = TransferWatch::Get().Take(this)) Complete(std::move(mine));
  }
  return RailWork::wait(timeout);
}

int TransferWork::sourceRank() const {
  const int source = source_;
  TORCH_CHECK(source >= 0, "railhead: only a receive that is done has a source rank");
  return source;
}

bool TransferWork::IsDone() const {
  for (rhRequest_t request : requests_) {
    int done = 0;
    if (rhRequestTest(request, &done) == rhSuccess && done == 0) return false;
  }
  return true;
}

void TransferWork::EndIfLate(Clock::time_point now) {
  if (now < deadline_.load()) return;
  deadline_ = Clock::time_point::max();
  for (size_t i = 0; i < requests_.size(); ++i) {
    int done = 0;
    if (rhRequestTest(requests_[i], &done) != rhSuccess || done != 0) continue;
    const Part& part = parts_[i];
    const std::string peer =
        part.peer == RH_ANY_SOURCE ? "no rank" : "rank " + std::to_string(part.peer);
    executor_->End(std::string(destroyed_ ? "the process group was destroyed before it was done, "
                                          : "not done within the timeout of the process group, ") +
                   "so it was ended on all ranks: " + peer +
                   (part.peer == RH_ANY_SOURCE ? " has" : " has not") +
                   (part.sends ? " received it" : " sent it"));
    return;
  }
}

void TransferWork::EndAfter(Clock::time_point latest) {
  if (deadline_.load() <= latest) return;
  destroyed_ = true;
  deadline_ = latest;
}

void TransferWork::Complete(c10::intrusive_ptr<TransferWork> work) {
  const std::shared_ptr<Finished> finished = work->Finish();
  work.reset();
  finished->Set();
}

std::shared_ptr<RailWork::Finished> TransferWork::Finish() {
  std::string error = not_begun_.empty() ? "" : parts_[requests_.size()].What() + ": " + not_begun_;
  for (size_t i = 0; i < requests_.size() && error.empty(); ++i) {
    error = Result(parts_[i], requests_[i]);
  }
  std::vector<at::Tensor> results;
  std::exception_ptr failed;
  if (error.empty()) {
    try {
      for (const Part& part : parts_) {
        Deliver(part);
        results.push_back(part.data.original);
      }
    } catch (...) {
      failed = std::current_exception();
    }
  }
  parts_.clear();
  executor_.reset();
  if (failed) return Fail(failed);
  return error.empty() ? Succeed(std::move(results)) : Fail(error);
}

// "", or why the transfer failed.
std::string TransferWork::Result(const Part& part, rhRequest_t request) {
  int done = 0;
  if (rhRequestTest(request, &done) != rhSuccess) {
    return part.What() + ": " + executor_->WhyEndedOr(rhGetLastError(nullptr));
  }
  if (part.sends) return "";
  rhRequestInfo_t info{};
  info.struct_size = sizeof info;
  rhRequestGetInfo(request, &info);
  source_ = info.peer;
  if (info.bytes == part.bytes()) return "";
  // The library ends the group if the message is longer.
  const std::string error = part.What() + ": rank " + std::to_string(info.peer) + " sent " +
                            std::to_string(info.bytes) + " bytes to rank " + std::to_string(rank_) +
                            ", whose tensor has " + std::to_string(part.bytes()) +
                            "; do both ranks pass the same shape and type?";
  executor_->End(error);
  return error;
}

void TransferWork::Deliver(const Part& part) const {
  if (part.sends) return;
  const c10::InferenceMode no_autograd;  // as in Executor::FinishSteps
  for (const c10::Event& event : part.queued) event.synchronize();
  if (part.host.defined()) BytesIn(part.data.elements).copy_(part.host);
  part.data.CopyBack();
  // The copies run on a stream of this thread.
  if (!device_.is_cpu()) {
    c10::impl::VirtualGuardImpl(device_.type()).getStream(device_).synchronize();
  }
}

}  // namespace railhead_torch
