// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/immediate_pair.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace railhead::transport::verbs {

absl::StatusOr<std::unique_ptr<QueuePair>> ImmediatePair::Create(
    const DevicePort& port, std::shared_ptr<CompletionQueue> completions, QueueDepths depths) {
  return CreateWith(port, std::move(completions), depths, IBV_ACCESS_REMOTE_WRITE);
}

absl::StatusOr<std::unique_ptr<ImmediatePair>> ImmediatePair::CreateReadable(
    const DevicePort& port, std::shared_ptr<CompletionQueue> completions, QueueDepths depths) {
  return CreateWith(port, std::move(completions), depths,
                    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
}

absl::StatusOr<std::unique_ptr<ImmediatePair>> ImmediatePair::CreateWith(
    const DevicePort& port, std::shared_ptr<CompletionQueue> completions, QueueDepths depths,
    int access) {
  std::unique_ptr<ImmediatePair> pair(
      new ImmediatePair(port, std::move(completions), depths, access));
  if (absl::Status status = pair->CreatePair(); !status.ok()) return status;
  return pair;
}

absl::Status ImmediatePair::PostReceives(uint32_t count, uint64_t id) {
  std::array<ibv_recv_wr, 32> requests;
  while (count > 0) {
    const uint32_t batch = std::min<uint32_t>(count, requests.size());
    for (uint32_t i = 0; i < batch; ++i) {
      requests[i] = {};
      requests[i].wr_id = id;
      requests[i].next = i + 1 < batch ? &requests[i + 1] : nullptr;
    }
    if (absl::Status status = PostReceiveList(requests.front()); !status.ok()) return status;
    count -= batch;
  }
  return absl::OkStatus();
}

absl::Status ImmediatePair::Send(const Message& message, uint64_t id, bool signaled) {
  Write write = WriteOf(message);
  ibv_send_wr request = {};
  request.wr_id = id;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.imm_data = htonl(message.value);
  request.wr.rdma.remote_addr = message.remote_address;
  request.wr.rdma.rkey = message.remote_key;
  request.send_flags = write.flags | IBV_SEND_SOLICITED;
  if (signaled) request.send_flags |= IBV_SEND_SIGNALED;
  request.sg_list = write.pieces.data();
  request.num_sge = write.count;
  ibv_sge piece = {};
  std::optional<ibv_send_wr> placed = PlacedWrite(message, id, piece);
  if (!placed.has_value()) return PostSends(request);
  placed->next = &request;
  return PostSends(*placed);
}

absl::Status ImmediatePair::PostWrite(const Message& message, uint64_t id) {
  ibv_sge piece = {};
  std::optional<ibv_send_wr> write = PlacedWrite(message, id, piece);
  if (!write.has_value()) return absl::InvalidArgumentError("a write of nothing");
  write->send_flags = IBV_SEND_SIGNALED;
  return PostSends(*write);
}

absl::Status ImmediatePair::PostRead(const LocalBytes& into, uint64_t remote_address,
                                     uint32_t remote_key, uint64_t id) {
  ibv_sge piece = {};
  ibv_send_wr request = OneSided(IBV_WR_RDMA_READ, into, remote_address, remote_key, id, piece);
  request.send_flags = IBV_SEND_SIGNALED;
  return PostSends(request);
}

absl::Status ImmediatePair::Probe(uint64_t id, uint64_t remote_address, uint32_t remote_key) {
  ibv_send_wr request = {};
  request.wr_id = id;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = remote_address;
  request.wr.rdma.rkey = remote_key;
  return PostSends(request);
}

absl::StatusOr<uint32_t> ImmediatePair::Take(const ibv_wc& completion) {
  if (completion.opcode != IBV_WC_RECV_RDMA_WITH_IMM ||
      (completion.wc_flags & IBV_WC_WITH_IMM) == 0) {
    return absl::InvalidArgumentError("a message that is not a write with immediate");
  }
  return ntohl(completion.imm_data);
}

}  // namespace railhead::transport::verbs
