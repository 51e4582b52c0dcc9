// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/queue_pair.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/transport/verbs/immediate_pair.h"
#include "runtime/transport/verbs/iwarp_pair.h"

namespace railhead::transport::verbs {
namespace {

// Enough for a header and a small all-reduce; for NICs that support less, a lower value is tried.
constexpr std::array<uint32_t, 4> kInlineSizes = {220, 124, 60, 0};

// 4.096 us * 2^15 = 0.13 s without any acknowledgement before the NIC sends again (NICs may take up
// to four times as long). The rails keep a few milliseconds' worth under way, so a slow rail with
// much other traffic queued in front still answers in time.
constexpr uint8_t kTimeoutExponent = 15;
// Six repetitions, so that a rail that does not work is known after about 1 s. Not seven: rdma_rxe
// takes the largest value of this 3-bit field for "for ever", as the standard does for the next
// one.
constexpr uint8_t kRetries = 6;
// "For ever": a peer that is slow to post receives is not an error. Credits keep this from
// happening at all.
constexpr uint8_t kReceiverNotReadyRetries = 7;
constexpr uint8_t kReceiverNotReadyTimer = 12;  // 0.64 ms

}  // namespace

uint32_t QueuePair::CompletionsOf(const DevicePort& port, QueueDepths depths) {
  const uint32_t requests =
      port.iwarp() ? IwarpPair::kRequestsPerSend : ImmediatePair::kRequestsPerSend;
  return requests * depths.send + depths.receive;
}

absl::StatusOr<std::unique_ptr<QueuePair>> QueuePair::Create(
    const DevicePort& port, std::shared_ptr<CompletionQueue> completions, QueueDepths depths) {
  if (port.iwarp()) return IwarpPair::Create(port, std::move(completions), depths);
  return ImmediatePair::Create(port, std::move(completions), depths);
}

absl::Status QueuePair::CreatePair() {
  const VerbsApi* const api = &port_.api();
  const uint32_t sends = requests_per_send_ * depths_.send;
  for (const uint32_t inline_size : kInlineSizes) {
    ibv_qp_init_attr attributes = {};
    attributes.send_cq = completions_->get();
    attributes.recv_cq = completions_->get();
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap.max_send_wr = sends;
    attributes.cap.max_recv_wr = depths_.receive;
    attributes.cap.max_send_sge = 2;
    attributes.cap.max_recv_sge = 1;
    attributes.cap.max_inline_data = inline_size;
    errno = 0;
    ibv_qp* const pair = api->CreateQp(port_.domain(), &attributes);
    if (pair == nullptr) continue;
    pair_ = Owned<ibv_qp>(pair, [api](ibv_qp* p) { static_cast<void>(api->DestroyQp(p)); });
    max_inline_ = inline_size;
    return Initialize();
  }
  return VerbsError(
      port_.name(),
      absl::StrCat("create a queue pair of ", sends, " sends and ", depths_.receive, " receives"),
      errno);
}

absl::Status QueuePair::Modify(ibv_qp_attr& attributes, int mask, absl::string_view what) {
  const int error = port_.api().ModifyQp(pair_.get(), &attributes, mask);
  if (error == 0) return absl::OkStatus();
  return VerbsError(port_.name(), what, error);
}

absl::Status QueuePair::Initialize() {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.pkey_index = 0;  // until Connect knows the peer's
  attributes.port_num = port_.port();
  attributes.qp_access_flags = static_cast<unsigned>(access_);
  return Modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                "initialize the queue pair");
}

absl::Status QueuePair::Connect(const PeerPath& path, uint32_t receive_psn, uint32_t send_psn,
                                uint8_t reads) {
  ibv_qp_attr receive = {};
  receive.qp_state = IBV_QPS_RTR;
  receive.path_mtu = path.mtu;
  receive.pkey_index = path.pkey_index;
  receive.dest_qp_num = path.qp_number;
  receive.rq_psn = receive_psn;
  receive.max_dest_rd_atomic = reads;
  receive.min_rnr_timer = kReceiverNotReadyTimer;
  receive.ah_attr = path.route;
  if (absl::Status status =
          Modify(receive,
                 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_PKEY_INDEX | IBV_QP_DEST_QPN |
                     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                 "make the queue pair ready to receive");
      !status.ok()) {
    return status;
  }

  ibv_qp_attr send = {};
  send.qp_state = IBV_QPS_RTS;
  send.sq_psn = send_psn;
  send.timeout = kTimeoutExponent;
  send.retry_cnt = kRetries;
  send.rnr_retry = kReceiverNotReadyRetries;
  send.max_rd_atomic = reads;
  return Modify(send,
                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                "make the queue pair ready to send");
}

absl::Status QueuePair::PostReceiveList(ibv_recv_wr& first) {
  ibv_recv_wr* refused = nullptr;
  if (const int error = ibv_post_recv(pair_.get(), &first, &refused); error != 0) {
    return VerbsError(port_.name(), "post a receive", std::abs(error));
  }
  return absl::OkStatus();
}

QueuePair::Write QueuePair::WriteOf(const Message& message) const {
  Write write = {};
  size_t size = 0;
  for (const LocalBytes* piece : {&message.first, &message.second}) {
    if (piece->bytes.empty()) break;
    ibv_sge& entry = write.pieces[static_cast<size_t>(write.count++)];
    entry.addr = reinterpret_cast<uintptr_t>(piece->bytes.data());
    entry.length = static_cast<uint32_t>(piece->bytes.size());
    entry.lkey = piece->local_key;
    size += piece->bytes.size();
  }
  // The CPU, which copies what is inlined, may not be able to access the second piece.
  if (write.count == 1 && size <= max_inline_) write.flags = IBV_SEND_INLINE;
  return write;
}

ibv_send_wr QueuePair::OneSided(ibv_wr_opcode opcode, const LocalBytes& bytes, uint64_t address,
                                uint32_t key, uint64_t id, ibv_sge& piece) {
  piece = {reinterpret_cast<uintptr_t>(bytes.bytes.data()),
           static_cast<uint32_t>(bytes.bytes.size()), bytes.local_key};
  ibv_send_wr request = {};
  request.wr_id = id;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = opcode;
  request.wr.rdma.remote_addr = address;
  request.wr.rdma.rkey = key;
  return request;
}

std::optional<ibv_send_wr> QueuePair::PlacedWrite(const Message& message, uint64_t id,
                                                  ibv_sge& piece) {
  if (message.placed.bytes.empty()) return std::nullopt;
  return OneSided(IBV_WR_RDMA_WRITE, message.placed, message.placed_address, message.placed_key, id,
                  piece);
}

absl::Status QueuePair::PostSends(ibv_send_wr& first) {
  ibv_send_wr* refused = nullptr;
  if (const int error = ibv_post_send(pair_.get(), &first, &refused); error != 0) {
    return VerbsError(port_.name(), "post a send", std::abs(error));
  }
  return absl::OkStatus();
}

}  // namespace railhead::transport::verbs
