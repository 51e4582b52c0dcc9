// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/iwarp_pair.h"

#include <arpa/inet.h>

#include <cstring>
#include <optional>
#include <utility>

namespace railhead::transport::verbs {
namespace {

ibv_sge Piece(const std::byte* start, uint32_t size, const ibv_mr& region) {
  ibv_sge piece = {};
  piece.addr = reinterpret_cast<uintptr_t>(start);
  piece.length = size;
  piece.lkey = region.lkey;
  return piece;
}

}  // namespace

IwarpPair::IwarpPair(const DevicePort& port, std::shared_ptr<CompletionQueue> completions,
                     QueueDepths depths)
    : QueuePair(port, std::move(completions), depths,
                IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ, kRequestsPerSend),
      values_((depths.send + depths.receive) * kValueSize),
      sink_(kReadSize) {}

// The queue pair goes before the memory that it uses.
IwarpPair::~IwarpPair() { DestroyPair(); }

absl::StatusOr<std::unique_ptr<QueuePair>> IwarpPair::Create(
    const DevicePort& port, std::shared_ptr<CompletionQueue> completions, QueueDepths depths) {
  std::unique_ptr<IwarpPair> pair(new IwarpPair(port, std::move(completions), depths));
  absl::StatusOr<Owned<ibv_mr>> region =
      port.Register(pair->values_.data(), pair->values_.size(), IBV_ACCESS_LOCAL_WRITE);
  if (!region.ok()) return region.status();
  pair->region_ = *std::move(region);
  region = port.Register(pair->sink_.data(), pair->sink_.size(),
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (!region.ok()) return region.status();
  pair->sink_region_ = *std::move(region);
  if (absl::Status status = pair->CreatePair(); !status.ok()) return status;
  return pair;
}

absl::Status IwarpPair::PostReceives(uint32_t count, uint64_t id) {
  for (; count > 0; --count) {
    ibv_sge piece = Piece(Received(posted_++), kValueSize, *region_);
    ibv_recv_wr request = {};
    request.wr_id = id;
    request.sg_list = &piece;
    request.num_sge = 1;
    if (absl::Status status = PostReceiveList(request); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status IwarpPair::Send(const Message& message, uint64_t id, bool signaled) {
  std::byte* const value = Sent(sent_++);
  const uint32_t network_order = htonl(message.value);
  std::memcpy(value, &network_order, kValueSize);

  Write bytes = WriteOf(message);
  ibv_send_wr write = {};
  write.wr_id = id;
  write.sg_list = bytes.pieces.data();
  write.num_sge = bytes.count;
  write.opcode = IBV_WR_RDMA_WRITE;
  write.send_flags = bytes.flags;
  write.wr.rdma.remote_addr = message.remote_address;
  write.wr.rdma.rkey = message.remote_key;

  ibv_sge word = Piece(value, kValueSize, *region_);
  ibv_send_wr send = {};
  send.wr_id = id;
  send.sg_list = &word;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SOLICITED;
  if (kValueSize <= max_inline()) send.send_flags |= IBV_SEND_INLINE;
  write.next = &send;
  ibv_send_wr* first = bytes.count == 0 ? &send : &write;
  ibv_sge piece = {};
  std::optional<ibv_send_wr> placed = PlacedWrite(message, id, piece);
  if (placed.has_value()) {
    placed->next = first;
    first = &*placed;
  }
  if (absl::Status status = PostSends(*first); !status.ok()) return status;
  return signaled ? Probe(id, message.remote_address, message.remote_key) : absl::OkStatus();
}

absl::Status IwarpPair::Probe(uint64_t id, uint64_t remote_address, uint32_t remote_key) {
  ibv_sge piece = {};
  ibv_send_wr read = OneSided(IBV_WR_RDMA_READ, {sink_, sink_region_->lkey}, remote_address,
                              remote_key, id, piece);
  read.send_flags = IBV_SEND_SIGNALED;
  return PostSends(read);
}

absl::StatusOr<uint32_t> IwarpPair::Take(const ibv_wc& completion) {
  const uint64_t number = taken_++;
  if (completion.opcode != IBV_WC_RECV || completion.byte_len != kValueSize) {
    return absl::InvalidArgumentError("a message that is not a send of a value");
  }
  uint32_t network_order = 0;
  std::memcpy(&network_order, Received(number), kValueSize);
  return ntohl(network_order);
}

}  // namespace railhead::transport::verbs
