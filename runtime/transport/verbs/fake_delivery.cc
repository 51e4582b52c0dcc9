// SPDX-License-Identifier: Apache-2.0
//
// Delivery between fake NICs: which packets arrive, are repeated or refused, what they write
// into memory there, and the completions that result.
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/transport/verbs/fake_fabric.h"

namespace railhead::transport::verbs {

uint32_t FakeVerbs::Fabric::PacketsOf(uint64_t bytes, ibv_mtu mtu) {
  const uint64_t packet = uint64_t{128} << static_cast<int>(mtu);
  return bytes == 0 ? 1 : static_cast<uint32_t>((bytes + packet - 1) / packet);
}

void FakeVerbs::Fabric::Show(Queue& queue, const ibv_wc& completion, bool solicited) {
  if (queue.done.size() >= static_cast<size_t>(queue.verbs.cqe)) {
    violations.push_back("a completion queue overflowed");
    return;
  }
  queue.done.push_back(completion);
  // As rdma_rxe does: failures wake nobody who asked for what is solicited.
  const bool wakes = queue.armed && (solicited || !queue.solicited_only);
  if (wakes && queue.channel != nullptr) {
    queue.armed = false;
    ++queue.events_unacknowledged;
    const uint64_t one = 1;
    if (write(queue.channel->verbs.fd, &one, sizeof(one)) != sizeof(one)) {
      violations.push_back("cannot write an event");
    }
  }
}

void FakeVerbs::Fabric::ShowLate(Queue& queue) {
  while (!queue.late.empty()) {
    const auto found = pairs.find(static_cast<uint32_t>(queue.late.front().second));
    const bool held = found != pairs.end() && found->second->nic->hold_completions;
    if (held && !IsOfSelf(*found->second)) return;
    if (!Chance()) return;
    Show(queue, queue.late.front().first, /*solicited=*/false);
    queue.late.pop_front();
  }
}

void FakeVerbs::Fabric::Complete(Pair& pair, const Send& send, ibv_wc_status status) {
  if (send.completed) return;
  if (status == IBV_WC_SUCCESS && (send.request.send_flags & IBV_SEND_SIGNALED) == 0) return;
  ibv_wc completion = {};
  completion.wr_id = send.request.wr_id;
  completion.status = status;
  completion.opcode = IBV_WC_RDMA_WRITE;
  completion.qp_num = pair.verbs.qp_num;
  Queue& queue = Of(pair.verbs.send_cq);
  queue.late.emplace_back(completion, pair.verbs.qp_num);
}

void FakeVerbs::Fabric::Fail(Pair& pair) {
  pair.attributes.qp_state = IBV_QPS_ERR;
  for (const Send& send : pair.sends) Complete(pair, send, IBV_WC_WR_FLUSH_ERR);
  pair.sends.clear();
  for (const Receive& receive : pair.receives) {
    ibv_wc completion = {};
    completion.wr_id = receive.id;
    completion.status = IBV_WC_WR_FLUSH_ERR;
    completion.qp_num = pair.verbs.qp_num;
    Queue& queue = Of(pair.verbs.recv_cq);
    queue.late.emplace_back(completion, pair.verbs.qp_num);
  }
  pair.receives.clear();
  if (IsIwarp(pair)) BreakPeer(pair);
}

bool FakeVerbs::Fabric::IsIwarp(const Pair& pair) {
  return pair.nic->config.transport == IBV_TRANSPORT_IWARP;
}

bool FakeVerbs::Fabric::Reaches(const Nic& from, const Nic& to) {
  return from.config.state == IBV_PORT_ACTIVE && to.config.state == IBV_PORT_ACTIVE;
}

void FakeVerbs::Fabric::BreakPeer(const Pair& pair) {
  const auto found = pairs.find(pair.attributes.dest_qp_num);
  if (found == pairs.end() || !Reaches(*pair.nic, *found->second->nic)) return;
  if (found->second->attributes.qp_state == IBV_QPS_RTS) Fail(*found->second);
}

bool FakeVerbs::Fabric::MoveIwarpHead(Pair& pair) {
  const auto found = pairs.find(pair.attributes.dest_qp_num);
  if (found != pairs.end() && !Reaches(*pair.nic, *found->second->nic)) return false;
  if (found == pairs.end() || found->second->attributes.qp_state != IBV_QPS_RTS) {
    if (pair.nic->config.state != IBV_PORT_ACTIVE) return false;
    Fail(pair);
    return true;
  }
  if (pair.nic->fail_next.has_value()) {
    FailHead(pair, *std::exchange(pair.nic->fail_next, std::nullopt));
    return true;
  }
  if (pair.overlooked) return false;
  const bool done = Execute(pair, *found->second, pair.sends.front());
  if (pair.attributes.qp_state == IBV_QPS_ERR) return true;
  if (!done) {
    // There is no "receiver not ready" over TCP.
    Fail(pair);
    return true;
  }
  found->second->may_speak = true;
  Complete(pair, pair.sends.front(), IBV_WC_SUCCESS);
  pair.sends.pop_front();
  return true;
}

bool FakeVerbs::Fabric::Fill(const ibv_sge& piece, int access, const std::byte* data,
                             uint64_t size) {
  const auto found = regions.find(piece.lkey);
  if (found == regions.end() || piece.length < size) return false;
  const auto start = reinterpret_cast<uint64_t>(found->second->verbs.addr);
  if ((found->second->access & access) != access || piece.addr < start ||
      piece.addr + size > start + found->second->verbs.length) {
    return false;
  }
  std::memcpy(Pointer(piece.addr), data, size);
  return true;
}

bool FakeVerbs::Fabric::Read(const Pair& from, const Pair& to, const Send& send) {
  if (send.pieces.size() != 1) return false;
  const uint64_t address = send.request.wr.rdma.remote_addr;
  const ibv_sge& sink = send.pieces.front();
  if (sink.length == 0 ||
      !May(IBV_ACCESS_REMOTE_READ, to, send.request.wr.rdma.rkey, address, sink.length)) {
    return false;
  }
  std::vector<std::byte> bytes(sink.length);
  const Region& source = *regions.find(send.request.wr.rdma.rkey)->second;
  const int access = IBV_ACCESS_LOCAL_WRITE | (IsIwarp(from) ? IBV_ACCESS_REMOTE_WRITE : 0);
  return source.Read(address, bytes.size(), bytes.data()) &&
         Fill(sink, access, bytes.data(), bytes.size());
}

FakeVerbs::Fabric::Pair* FakeVerbs::Fabric::Reach(const Pair& from) {
  if (from.nic->config.state != IBV_PORT_ACTIVE || from.path_lost) return nullptr;
  const auto found = pairs.find(from.attributes.dest_qp_num);
  if (found == pairs.end()) return nullptr;
  Pair& to = *found->second;
  if (to.nic->config.state != IBV_PORT_ACTIVE) return nullptr;
  const ibv_qp_state state = to.attributes.qp_state;
  if (state != IBV_QPS_RTR && state != IBV_QPS_RTS) return nullptr;
  if (to.attributes.dest_qp_num != from.verbs.qp_num) return nullptr;
  if (to.nic->config.infiniband != from.nic->config.infiniband) return nullptr;
  if (!SamePartition(from, to)) return nullptr;
  const ibv_ah_attr& route = from.attributes.ah_attr;
  if (route.is_global == 0) {
    return from.nic->config.infiniband && route.dlid == to.nic->config.lid ? &to : nullptr;
  }
  // The packet leaves with the type of the local GID and must name a GID of that type.
  const auto local = std::find_if(
      from.nic->config.gids.begin(), from.nic->config.gids.end(),
      [&](const ibv_gid_entry& entry) { return entry.gid_index == route.grh.sgid_index; });
  if (local == from.nic->config.gids.end()) return nullptr;
  const bool there = std::any_of(
      to.nic->config.gids.begin(), to.nic->config.gids.end(), [&](const ibv_gid_entry& entry) {
        return entry.gid_type == local->gid_type &&
               std::memcmp(entry.gid.raw, route.grh.dgid.raw, sizeof(entry.gid.raw)) == 0;
      });
  return there ? &to : nullptr;
}

bool FakeVerbs::Fabric::SamePartition(const Pair& from, const Pair& to) {
  const uint16_t a = from.nic->config.pkeys[from.attributes.pkey_index];
  const uint16_t b = to.nic->config.pkeys[to.attributes.pkey_index];
  return (a & 0x7fff) != 0 && (a & 0x7fff) == (b & 0x7fff) && ((a | b) & 0x8000) != 0;
}

bool FakeVerbs::Fabric::MayWrite(const Pair& to, uint32_t key, uint64_t address, uint64_t size) {
  return size == 0 || May(IBV_ACCESS_REMOTE_WRITE, to, key, address, size);
}

bool FakeVerbs::Fabric::May(int what, const Pair& to, uint32_t key, uint64_t address,
                            uint64_t size) {
  if ((to.attributes.qp_access_flags & static_cast<unsigned>(what)) == 0) return false;
  const auto found = regions.find(key);
  if (found == regions.end()) return false;
  const Region& region = *found->second;
  const uint64_t start = region.start;
  return (region.access & what) != 0 && region.verbs.pd == to.verbs.pd && address >= start &&
         size <= region.verbs.length && address - start <= region.verbs.length - size;
}

void FakeVerbs::Fabric::FailHead(Pair& pair, ibv_wc_status status) {
  Send head = std::move(pair.sends.front());
  pair.sends.pop_front();
  // What nobody was told of yet may still fail.
  if ((head.request.send_flags & IBV_SEND_SIGNALED) == 0) head.completed = false;
  Complete(pair, head, status);
  Fail(pair);
}

bool FakeVerbs::Fabric::MoveHead(Pair& pair) {
  if (IsIwarp(pair)) return MoveIwarpHead(pair);
  Send& send = pair.sends.front();
  if (pair.waiting && now < pair.repeat_at) return false;
  Pair* const to = Reach(pair);
  if (to == nullptr ||
      (to->expected_psn != send.psn && ((to->expected_psn - send.psn) & kPsnMask) > kPsnMask / 2)) {
    if (pair.waiting && pair.repeats >= pair.attributes.retry_cnt) {
      FailHead(pair, IBV_WC_RETRY_EXC_ERR);
      return true;
    }
    pair.repeats = pair.waiting ? pair.repeats + 1 : 0;
    pair.waiting = true;
    pair.repeat_at = now + absl::Nanoseconds(4096) * (int64_t{1} << pair.attributes.timeout);
    return false;
  }
  if (pair.nic->fail_next.has_value()) {
    FailHead(pair, *std::exchange(pair.nic->fail_next, std::nullopt));
    return true;
  }
  if (to->expected_psn != send.psn) {
    // Seen before: acknowledged again, not executed again.
  } else if (!Execute(pair, *to, send)) {
    return false;
  } else if (pair.attributes.qp_state == IBV_QPS_ERR) {
    return true;
  }
  pair.waiting = false;
  pair.repeats = 0;
  Complete(pair, send, IBV_WC_SUCCESS);
  pair.sends.pop_front();
  return true;
}

std::optional<std::vector<std::byte>> FakeVerbs::Fabric::Gather(const Pair& pair,
                                                                const Send& send) {
  if (send.request.opcode == IBV_WR_RDMA_READ) return std::vector<std::byte>();
  if ((send.request.send_flags & IBV_SEND_INLINE) != 0) return send.inline_data;
  std::vector<std::byte> data;
  for (const ibv_sge& piece : send.pieces) {
    const auto found = regions.find(piece.lkey);
    if (found == regions.end() || found->second->verbs.pd != pair.verbs.pd) return std::nullopt;
    Region& region = *found->second;
    if (piece.addr < region.start ||
        piece.addr + piece.length > region.start + region.verbs.length) {
      return std::nullopt;
    }
    region.bytes_sent += piece.length;
    data.resize(data.size() + piece.length);
    if (!region.Read(piece.addr, piece.length, data.data() + data.size() - piece.length)) {
      return std::nullopt;
    }
  }
  return data;
}

bool FakeVerbs::Fabric::ReadsWhatIsGone(const Send& send) const {
  return std::any_of(send.pieces.begin(), send.pieces.end(), [&](const ibv_sge& piece) {
    const auto found = regions.find(piece.lkey);
    return found != regions.end() && found->second->of_gpu && !found->second->dma_buf.valid() &&
           found->second->pages.expired();
  });
}

bool FakeVerbs::Fabric::Execute(Pair& from, Pair& to, Send& send) {
  const bool immediate = send.request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  const bool is_send = send.request.opcode == IBV_WR_SEND;
  if ((immediate || is_send) && to.receives.empty()) {
    ++receiver_not_ready;
    return false;
  }
  const std::optional<std::vector<std::byte>> gathered = Gather(from, send);
  if (!gathered.has_value()) {
    if (!ReadsWhatIsGone(send)) {
      violations.emplace_back("a send from memory that is not registered");
    }
    FailHead(from, IBV_WC_LOC_PROT_ERR);
    return true;
  }
  const uint64_t size = gathered->size();
  const std::byte* const data = gathered->data();
  const bool is_read = send.request.opcode == IBV_WR_RDMA_READ;
  const ibv_send_wr& request = send.request;
  const bool allowed = is_read ? Read(from, to, send)
                       : is_send
                           ? Fill(to.receives.front().piece, IBV_ACCESS_LOCAL_WRITE, data, size)
                           : MayWrite(to, request.wr.rdma.rkey, request.wr.rdma.remote_addr, size);
  if (!allowed) {
    FailHead(from, IBV_WC_REM_ACCESS_ERR);
    Fail(to);
    return true;
  }
  if (size > 0 && !is_send && !is_read) {
    std::vector<std::byte> written(data, data + size);
    if (from.nic->corrupt_next.has_value() && from.nic->corrupt_next->first < size) {
      written[from.nic->corrupt_next->first] = std::byte{from.nic->corrupt_next->second};
      from.nic->corrupt_next.reset();
    }
    const Region& target = *regions.find(request.wr.rdma.rkey)->second;
    if (!target.Write(request.wr.rdma.remote_addr, written.data(), size)) {
      violations.emplace_back("a write to memory that is gone");
    }
  }
  ++messages;
  if (is_read || (size == 0 && !immediate && !is_send)) ++probes;
  to.expected_psn = (to.expected_psn + PacketsOf(size, from.attributes.path_mtu)) & kPsnMask;
  if (!immediate && !is_send) return true;
  ibv_send_wr arrives = send.request;
  if (from.nic->immediate_next.has_value()) {
    arrives.imm_data = htonl(*std::exchange(from.nic->immediate_next, std::nullopt));
    if (is_send) {
      std::memcpy(Pointer(to.receives.front().piece.addr), &arrives.imm_data,
                  sizeof(arrives.imm_data));
    }
  }
  ShowArrival(to, arrives, size);
  return true;
}

void FakeVerbs::Fabric::ShowArrival(Pair& to, const ibv_send_wr& request, uint64_t size) {
  const bool immediate = request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  ibv_wc completion = {};
  completion.wr_id = to.receives.front().id;
  completion.status = IBV_WC_SUCCESS;
  completion.opcode = immediate ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  completion.wc_flags = immediate ? IBV_WC_WITH_IMM : 0;
  completion.imm_data = request.imm_data;
  to.receives.pop_front();
  completion.byte_len = static_cast<uint32_t>(size);
  completion.qp_num = to.verbs.qp_num;
  Show(Of(to.verbs.recv_cq), completion, (request.send_flags & IBV_SEND_SOLICITED) != 0);
}

void FakeVerbs::Fabric::LeaveStrays(const Pair& pair) {
  // Over iWARP, the end of a connection ends all that was sent on it.
  if (!random.has_value() || IsIwarp(pair) || pair.attributes.qp_state != IBV_QPS_RTS) return;
  for (const Send& send : pair.sends) {
    const std::optional<std::vector<std::byte>> data = Gather(pair, send);
    if (send.request.opcode == IBV_WR_RDMA_READ || !data.has_value()) break;
    strays.push_back(
        {send.request, *data, send.psn, pair.verbs.qp_num, pair.attributes.dest_qp_num});
  }
}

void FakeVerbs::Fabric::MoveStrays() {
  while (!strays.empty() && Chance()) {
    const Stray stray = std::move(strays.front());
    strays.pop_front();
    const auto found = pairs.find(stray.to);
    if (found == pairs.end()) continue;
    Pair& to = *found->second;
    const uint64_t size = stray.data.size();
    const bool immediate = stray.request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    if (to.attributes.qp_state != IBV_QPS_RTS || to.attributes.dest_qp_num != stray.from ||
        to.nic->config.state != IBV_PORT_ACTIVE || to.expected_psn != stray.psn ||
        (immediate && to.receives.empty()) ||
        !MayWrite(to, stray.request.wr.rdma.rkey, stray.request.wr.rdma.remote_addr, size)) {
      continue;
    }
    if (size > 0) {
      const Region& target = *regions.find(stray.request.wr.rdma.rkey)->second;
      target.Write(stray.request.wr.rdma.remote_addr, stray.data.data(), size);
    }
    ++stray_writes;
    to.expected_psn = (to.expected_psn + PacketsOf(size, to.attributes.path_mtu)) & kPsnMask;
    if (immediate) ShowArrival(to, stray.request, size);
  }
}

void FakeVerbs::Fabric::Move() {
  MoveStrays();
  for (const auto& [number, pair] : pairs) {
    while (!pair->sends.empty() && pair->attributes.qp_state == IBV_QPS_RTS && Chance()) {
      if (!MoveHead(*pair)) break;
    }
  }
  for (const std::unique_ptr<Queue>& queue : queues) ShowLate(*queue);
}

}  // namespace railhead::transport::verbs
