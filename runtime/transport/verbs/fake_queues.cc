// SPDX-License-Identifier: Apache-2.0
//
// Queue pairs and completion queues of fake NICs: made, changed and destroyed, posted to and
// polled.
#include <infiniband/verbs.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/transport/verbs/fake_fabric.h"

namespace railhead::transport::verbs {

uint64_t FakeVerbs::Fabric::SizeOf(const std::vector<ibv_sge>& pieces) {
  uint64_t size = 0;
  for (const ibv_sge& piece : pieces) size += piece.length;
  return size;
}

int FakeVerbs::Fabric::PostSend(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** refused) {
  Pair& pair = Of(qp);
  Fabric& fabric = *Of(qp->context).fabric;
  const std::lock_guard<std::mutex> hold(fabric.lock);
  for (; request != nullptr; request = request->next) {
    *refused = request;
    if (const int error = fabric.PostOne(pair, *request); error != 0) return error;
  }
  if (!fabric.random.has_value()) fabric.Move();
  return 0;
}

int FakeVerbs::Fabric::PostOne(Pair& pair, const ibv_send_wr& request) {
  const ibv_qp_state state = pair.attributes.qp_state;
  if (state != IBV_QPS_RTS && state != IBV_QPS_ERR) {
    return Refuse("a send to a queue pair that is not ready to send", EINVAL);
  }
  if (pair.entries.size() >= pair.cap.max_send_wr) {
    return Refuse("a send to a full send queue", ENOMEM);
  }
  if (static_cast<uint32_t>(request.num_sge) > pair.cap.max_send_sge) {
    return Refuse("a send with more pieces than agreed", EINVAL);
  }
  const bool iwarp = IsIwarp(pair);
  if (iwarp && request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    return Refuse("a write with immediate over iWARP", EINVAL);
  }
  if (iwarp && !pair.may_speak) {
    return Refuse("the side that was called has spoken first", EINVAL);
  }
  Send send;
  send.request = request;
  send.request.next = nullptr;
  send.pieces.assign(request.sg_list, request.sg_list + request.num_sge);
  const uint64_t size = SizeOf(send.pieces);
  if ((request.send_flags & IBV_SEND_INLINE) != 0) {
    if (size > pair.cap.max_inline_data) return Refuse("too much inline data", EINVAL);
    for (const ibv_sge& piece : send.pieces) {
      send.inline_data.insert(send.inline_data.end(), Pointer(piece.addr),
                              Pointer(piece.addr) + piece.length);
    }
    ++inline_sends;
  }
  ++sends;
  if (request.num_sge > 1) ++gathered_sends;
  const bool read_later = (request.send_flags & IBV_SEND_INLINE) == 0;
  pair.entries.push_back(read_later ? send.pieces : std::vector<ibv_sge>());
  ++pair.entries_since_signal;
  if ((request.send_flags & IBV_SEND_SIGNALED) != 0) {
    ++signaled_sends;
    pair.signaled.emplace_back(request.wr_id, std::exchange(pair.entries_since_signal, 0));
  }
  if (state == IBV_QPS_ERR) {
    Complete(pair, send, IBV_WC_WR_FLUSH_ERR);
    return 0;
  }
  send.psn = pair.next_psn;
  pair.next_psn = (pair.next_psn + PacketsOf(size, pair.attributes.path_mtu)) & kPsnMask;
  // A receiver that is there now notices the gap before this packet and asks for the first again.
  if (Reach(pair) != nullptr) pair.waiting = false;
  if (pair.overlooked && now > pair.first_sent) pair.overlooked = false;
  pair.first_sent = std::min(pair.first_sent, now);
  if (iwarp && request.opcode != IBV_WR_RDMA_READ) {
    Complete(pair, send, IBV_WC_SUCCESS);
    send.completed = true;
  }
  pair.sends.push_back(std::move(send));
  return 0;
}

int FakeVerbs::Fabric::PostReceive(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** refused) {
  Pair& pair = Of(qp);
  Fabric& fabric = *Of(qp->context).fabric;
  const std::lock_guard<std::mutex> hold(fabric.lock);
  for (; request != nullptr; request = request->next) {
    *refused = request;
    if (pair.attributes.qp_state == IBV_QPS_RESET) {
      return fabric.Refuse("a receive posted to a queue pair in RESET", EINVAL);
    }
    if (pair.receives.size() >= pair.cap.max_recv_wr) {
      return fabric.Refuse("a receive posted to a full receive queue", ENOMEM);
    }
    pair.receives.push_back(
        {request->wr_id, request->num_sge == 1 ? *request->sg_list : ibv_sge{}});
  }
  return 0;
}

int FakeVerbs::Fabric::PollCq(ibv_cq* cq, int most, ibv_wc* completions) {
  Queue& queue = Of(cq);
  Fabric& fabric = *Of(cq->context).fabric;
  const std::lock_guard<std::mutex> hold(fabric.lock);
  fabric.Move();
  int count = 0;
  for (; count < most && !queue.done.empty(); ++count) {
    completions[count] = queue.done.front();
    queue.done.pop_front();
    const auto found = fabric.pairs.find(completions[count].qp_num);
    if (found == fabric.pairs.end()) continue;
    Pair& pair = *found->second;
    if (!pair.signaled.empty() && pair.signaled.front().first == completions[count].wr_id) {
      const auto freed = static_cast<std::ptrdiff_t>(pair.signaled.front().second);
      pair.entries.erase(pair.entries.begin(), pair.entries.begin() + freed);
      pair.signaled.pop_front();
    }
  }
  return count;
}

int FakeVerbs::Fabric::RequestNotify(ibv_cq* cq, int solicited_only) {
  Fabric& fabric = *Of(cq->context).fabric;
  const std::lock_guard<std::mutex> hold(fabric.lock);
  // Asked for more before, it stays so until the next event.
  Queue& queue = Of(cq);
  queue.solicited_only = solicited_only != 0 && (!queue.armed || queue.solicited_only);
  queue.armed = true;
  return 0;
}

ibv_comp_channel* FakeVerbs::CreateCompChannel(ibv_context* context) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  auto channel = std::make_unique<Fabric::Channel>();
  channel->verbs.context = context;
  channel->verbs.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  fabric_->channels.push_back(std::move(channel));
  return &fabric_->channels.back()->verbs;
}

int FakeVerbs::DestroyCompChannel(ibv_comp_channel* channel) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  for (const std::unique_ptr<Fabric::Queue>& queue : fabric_->queues) {
    if (queue->verbs.channel == channel) {
      return fabric_->Refuse("a channel destroyed while in use", EBUSY);
    }
  }
  close(channel->fd);
  Fabric::Erase(fabric_->channels, channel);
  return 0;
}

ibv_cq* FakeVerbs::CreateCq(ibv_context* context, int entries, ibv_comp_channel* channel) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  auto queue = std::make_unique<Fabric::Queue>();
  queue->verbs.context = context;
  queue->verbs.channel = channel;
  queue->verbs.cqe = entries;
  queue->channel = reinterpret_cast<Fabric::Channel*>(channel);
  fabric_->queues.push_back(std::move(queue));
  return &fabric_->queues.back()->verbs;
}

int FakeVerbs::DestroyCq(ibv_cq* cq) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  for (const auto& [number, pair] : fabric_->pairs) {
    if (pair->verbs.send_cq == cq || pair->verbs.recv_cq == cq) {
      return fabric_->Refuse("a completion queue destroyed while in use", EBUSY);
    }
  }
  // A real one would wait for ever for events that were read and not acknowledged.
  Fabric::Queue& queue = Fabric::Of(cq);
  uint64_t unread = 0;
  if (queue.channel != nullptr) {
    uint64_t one = 0;
    while (queue.events_unacknowledged > unread &&
           read(queue.channel->verbs.fd, &one, sizeof(one)) == sizeof(one)) {
      ++unread;
    }
  }
  if (queue.events_unacknowledged > unread) {
    fabric_->violations.emplace_back("events read and not acknowledged");
  }
  Fabric::Erase(fabric_->queues, cq);
  return 0;
}

int FakeVerbs::GetCqEvent(ibv_comp_channel* channel, ibv_cq** queue, void** cookie) const {
  uint64_t one = 0;
  if (read(channel->fd, &one, sizeof(one)) != sizeof(one)) return -1;
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  for (const std::unique_ptr<Fabric::Queue>& candidate : fabric_->queues) {
    if (candidate->verbs.channel == channel) *queue = &candidate->verbs;
  }
  *cookie = nullptr;
  return 0;
}

void FakeVerbs::AckCqEvents(ibv_cq* queue, unsigned count) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  Fabric::Of(queue).events_unacknowledged -= count;
}

ibv_qp* FakeVerbs::CreateQp(ibv_pd* domain, ibv_qp_init_attr* attributes) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  Fabric::Nic& nic = *Fabric::Of(domain->context).nic;
  if (attributes->cap.max_inline_data > nic.config.max_inline) {
    errno = EINVAL;
    return nullptr;
  }
  const auto ours = std::count_if(fabric_->pairs.begin(), fabric_->pairs.end(),
                                  [&nic](const auto& pair) { return pair.second->nic == &nic; });
  if (static_cast<size_t>(ours) >= nic.config.queue_pairs) {
    errno = ENOMEM;
    return nullptr;
  }
  auto pair = std::make_unique<Fabric::Pair>();
  pair->nic = &nic;
  pair->cap = attributes->cap;
  pair->attributes.qp_state = IBV_QPS_RESET;
  pair->verbs.context = domain->context;
  pair->verbs.pd = domain;
  pair->verbs.send_cq = attributes->send_cq;
  pair->verbs.recv_cq = attributes->recv_cq;
  pair->verbs.qp_type = attributes->qp_type;
  pair->verbs.qp_num = fabric_->next_pair++;
  const uint32_t number = pair->verbs.qp_num;
  return &fabric_->pairs.emplace(number, std::move(pair)).first->second->verbs;
}

int FakeVerbs::ModifyQp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  Fabric::Pair& pair = Fabric::Of(qp);
  const ibv_qp_state from = pair.attributes.qp_state;
  const ibv_qp_state to = attributes->qp_state;
  const bool forward = (from == IBV_QPS_RESET && to == IBV_QPS_INIT) ||
                       (from == IBV_QPS_INIT && to == IBV_QPS_RTR) ||
                       (from == IBV_QPS_RTR && to == IBV_QPS_RTS);
  if (Fabric::IsIwarp(pair) && to != IBV_QPS_INIT && to != IBV_QPS_ERR) {
    return fabric_->Refuse("a transition that is the connection manager's over iWARP", EINVAL);
  }
  if (!forward && to != IBV_QPS_ERR && to != IBV_QPS_RESET) {
    return fabric_->Refuse("a transition that queue pairs do not make", EINVAL);
  }
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) {
    pair.attributes.qp_access_flags = attributes->qp_access_flags;
  }
  if ((mask & IBV_QP_PKEY_INDEX) != 0) {
    if (attributes->pkey_index >= pair.nic->config.pkeys.size()) {
      return fabric_->Refuse("a P_Key index beyond the port's table", EINVAL);
    }
    pair.attributes.pkey_index = attributes->pkey_index;
  }
  if ((mask & IBV_QP_AV) != 0) pair.attributes.ah_attr = attributes->ah_attr;
  if ((mask & IBV_QP_PATH_MTU) != 0) pair.attributes.path_mtu = attributes->path_mtu;
  if ((mask & IBV_QP_DEST_QPN) != 0) pair.attributes.dest_qp_num = attributes->dest_qp_num;
  if ((mask & IBV_QP_RQ_PSN) != 0) pair.expected_psn = attributes->rq_psn;
  if ((mask & IBV_QP_SQ_PSN) != 0) pair.next_psn = attributes->sq_psn;
  if ((mask & IBV_QP_TIMEOUT) != 0) pair.attributes.timeout = attributes->timeout;
  if ((mask & IBV_QP_RETRY_CNT) != 0) pair.attributes.retry_cnt = attributes->retry_cnt;
  if (pair.attributes.path_mtu > pair.nic->config.mtu) {
    return fabric_->Refuse("a path MTU larger than the port's", EINVAL);
  }
  if (to == IBV_QPS_ERR) {
    fabric_->Fail(pair);
    return 0;
  }
  if (to == IBV_QPS_RESET) {
    pair.sends.clear();
    pair.receives.clear();
    pair.signaled.clear();
    pair.entries.clear();
    pair.entries_since_signal = 0;
    pair.waiting = false;
    pair.repeats = 0;
    pair.attributes.dest_qp_num = 0;
  }
  pair.attributes.qp_state = to;
  return 0;
}

int FakeVerbs::DestroyQp(ibv_qp* pair) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  Fabric::Pair& doomed = Fabric::Of(pair);
  if (Fabric::IsIwarp(doomed)) fabric_->BreakPeer(doomed);
  fabric_->LeaveStrays(doomed);
  fabric_->pairs.erase(pair->qp_num);
  return 0;
}

const char* FakeVerbs::WcStatusText(ibv_wc_status status) const {
  switch (status) {
    case IBV_WC_SUCCESS:
      return "success";
    case IBV_WC_WR_FLUSH_ERR:
      return "Work Request Flushed Error";
    case IBV_WC_REM_ACCESS_ERR:
      return "remote access error";
    case IBV_WC_RETRY_EXC_ERR:
      return "transport retry counter exceeded";
    default:
      return "another error";
  }
}

}  // namespace railhead::transport::verbs
