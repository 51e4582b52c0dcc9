// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"
#include "backend.h"
#include "monitored_barrier.h"
#include "transfer_work.h"

namespace railhead_torch {

template <class Add>
RailheadBackend::WorkPtr RailheadBackend::PostTransfer(const char* call, c10d::OpType type,
                                                       const Tensors& tensors, int tag, Add add) {
  const at::Tensor& tensor = OnlyOne(call, tensors);
  CheckTensor(call, tensor);
  TORCH_CHECK_VALUE(tag >= 0 && tag != kBarrierTag, "railhead: ", call, ": tag ", tag,
                    " is not from 0 to ", kBarrierTag - 1);
  const auto make = [&](c10d::OpType of) {
    return c10::make_intrusive<TransferWork>(executor_, getRank(), of, tensor.device(),
                                             timeout_.load());
  };
  if (coalescing_ == 0) {
    const auto work = make(type);
    add(*work, tensor);
    TransferWork::Start(work);
    return work;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(held_.steps.empty(), "railhead: ", call, kMixed);
  if (!held_transfers_) held_transfers_ = make(c10d::OpType::COALESCED);
  TORCH_CHECK_TYPE(held_transfers_->device() == tensor.device(), "railhead: ", call,
                   ": the tensor is on ", tensor.device(), ", and those of earlier calls of the ",
                   "group on ", held_transfers_->device());
  add(*held_transfers_, tensor);
  return {};  // torch does not wait for it then; endCoalescing's covers it
}

RailheadBackend::WorkPtr RailheadBackend::send(Tensors& tensors, int to, int tag) {
  CheckPeer("send", to);
  return PostTransfer(
      "send", c10d::OpType::SEND, tensors, tag,
      [=](TransferWork& work, const at::Tensor& tensor) { work.AddSend(tensor, to, tag); });
}

RailheadBackend::WorkPtr RailheadBackend::recv(Tensors& tensors, int from, int tag) {
  CheckPeer("recv", from);
  return PostTransfer(
      "recv", c10d::OpType::RECV, tensors, tag,
      [=](TransferWork& work, const at::Tensor& tensor) { work.AddReceive(tensor, from, tag); });
}

RailheadBackend::WorkPtr RailheadBackend::recvAnysource(Tensors& tensors, int tag) {
  return PostTransfer("recv", c10d::OpType::RECVANYSOURCE, tensors, tag,
                      [=](TransferWork& work, const at::Tensor& tensor) {
                        work.AddReceive(tensor, RH_ANY_SOURCE, tag);
                      });
}

}  // namespace railhead_torch
