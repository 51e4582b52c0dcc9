// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/fake_verbs.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include "runtime/net/fd.h"

namespace railhead::transport::verbs {
namespace {

// Work requests carry addresses as numbers.
std::byte* Pointer(uint64_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr): as above
}

constexpr uint32_t kPsnMask = 0xffffff;
constexpr uint32_t kFirstQpNumber = 17;

uint32_t PacketsOf(uint64_t bytes, ibv_mtu mtu) {
  const uint64_t packet = uint64_t{128} << static_cast<int>(mtu);
  return bytes == 0 ? 1 : static_cast<uint32_t>((bytes + packet - 1) / packet);
}

}  // namespace

ibv_gid_entry FakeGid(uint32_t index, const std::string& address, uint32_t type, uint32_t port) {
  ibv_gid_entry entry = {};
  entry.gid_index = index;
  entry.port_num = port;
  entry.gid_type = type;
  in_addr v4 = {};
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) {
    entry.gid.raw[10] = entry.gid.raw[11] = 0xff;
    std::memcpy(entry.gid.raw + 12, &v4, sizeof(v4));
  } else {
    inet_pton(AF_INET6, address.c_str(), entry.gid.raw);
  }
  return entry;
}

ibv_gid_entry FakeMacGid(const net::MacAddress& mac) {
  ibv_gid_entry entry = {};
  entry.port_num = 1;
  std::copy(mac.begin(), mac.end(), entry.gid.raw);
  return entry;
}

struct FakeVerbs::Fabric {
  struct Nic;
  struct Pair;

  // Verbs objects: the struct that the user sees comes first, so that its address leads back.
  struct Context {
    ibv_context verbs = {};
    Fabric* fabric = nullptr;
    Nic* nic = nullptr;
    std::deque<ibv_async_event> events;  // that were told, as `verbs.async_fd` counts
    std::deque<ibv_async_event> held;    // that were not yet

    void TellEvents() {
      for (; !held.empty(); held.pop_front()) {
        events.push_back(held.front());
        const uint64_t one = 1;
        static_cast<void>(!write(verbs.async_fd, &one, sizeof(one)));
      }
    }
  };
  struct Channel {
    ibv_comp_channel verbs = {};
  };
  struct Queue {
    ibv_cq verbs = {};
    Channel* channel = nullptr;
    std::deque<ibv_wc> done;
    std::deque<std::pair<ibv_wc, uint64_t>> late;  // with the pair's number; not shown yet
    bool armed = false;
    bool solicited_only = false;
    unsigned events_unacknowledged = 0;
  };
  struct Region {
    ibv_mr verbs = {};
    uint64_t start = 0;  // as work requests count
    int access = 0;
    uint64_t bytes_sent = 0;
    // Where its bytes are, if not there: in the dma-buf's file, or in pages of a GPU.
    net::Fd dma_buf;
    uint64_t begin = 0;  // of the region, in that
    std::weak_ptr<const device::FakePages> pages;
    bool of_gpu = false;

    // What a NIC reads; false where the memory is gone.
    bool Read(uint64_t address, size_t size, std::byte* to) const {
      const uint64_t at = begin + (address - start);
      if (dma_buf.valid()) {
        return pread(dma_buf.get(), to, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
      }
      if (!of_gpu) {
        std::memcpy(to, Pointer(address), size);
        return true;
      }
      const std::shared_ptr<const device::FakePages> now = pages.lock();
      if (now != nullptr) std::memcpy(to, now->bytes().data() + at, size);
      return now != nullptr;
    }
  };
  struct Send {
    ibv_send_wr request = {};
    std::vector<ibv_sge> pieces;
    std::vector<std::byte> inline_data;
    uint32_t psn = 0;
    bool completed = false;  // of iWARP: handed to TCP
  };
  struct Receive {
    uint64_t id = 0;
    ibv_sge piece = {};  // of iWARP
  };
  struct Pair {
    ibv_qp verbs = {};
    Nic* nic = nullptr;
    ibv_qp_cap cap = {};
    ibv_qp_attr attributes = {};
    std::deque<Send> sends;
    std::deque<Receive> receives;
    bool may_speak = true;    // of iWARP: called, or has heard who called
    bool overlooked = false;  // of iWARP: what it has sent so far
    absl::Time first_sent = absl::InfiniteFuture();
    uint32_t next_psn = 0;      // of the next send posted
    uint32_t expected_psn = 0;  // of the next message to arrive
    // The entries of the send queue, by what they read: a NIC may read it again until it has an
    // acknowledgement. Freed when completions are polled.
    std::deque<std::vector<ibv_sge>> entries;
    std::deque<std::pair<uint64_t, size_t>> signaled;  // id, entries it frees
    size_t entries_since_signal = 0;
    bool path_lost = false;
    bool waiting = false;  // the head was sent in vain, and is repeated at
    absl::Time repeat_at;
    int repeats = 0;
  };
  struct Nic {
    FakeDevice config;
    ibv_device verbs = {};
    uint64_t registered = 0;
    std::optional<ibv_wc_status> fail_next;
    std::optional<std::pair<size_t, uint8_t>> corrupt_next;
    std::optional<uint32_t> immediate_next;
    bool hold_completions = false;
  };

  mutable std::mutex lock;
  std::vector<std::unique_ptr<Nic>> nics;
  std::map<uint32_t, std::unique_ptr<Pair>> pairs;
  std::map<uint32_t, std::unique_ptr<Region>> regions;  // by key
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<std::unique_ptr<Context>> contexts;
  std::vector<std::unique_ptr<Channel>> channels;
  std::vector<std::unique_ptr<ibv_pd>> domains;
  uint32_t next_pair = kFirstQpNumber;
  uint32_t next_key = 0x1000;
  int dma_buf_error = 0;
  absl::Time now = absl::UnixEpoch();
  std::optional<std::mt19937> random;
  int events_to_acknowledge = 0;
  std::vector<std::string> violations;
  uint64_t receiver_not_ready = 0;
  uint64_t messages = 0;
  uint64_t probes = 0;
  uint64_t inline_sends = 0;
  uint64_t gathered_sends = 0;
  uint64_t signaled_sends = 0;
  uint64_t sends = 0;

  static Context& Of(ibv_context* context) { return *reinterpret_cast<Context*>(context); }
  static Pair& Of(ibv_qp* pair) { return *reinterpret_cast<Pair*>(pair); }
  static Queue& Of(ibv_cq* queue) { return *reinterpret_cast<Queue*>(queue); }

  Nic& NicNamed(const std::string& name) {
    for (const std::unique_ptr<Nic>& nic : nics) {
      if (nic->config.name == name) return *nic;
    }
    violations.push_back("the test names a device that is not there: " + name);
    return *nics.front();
  }

  ibv_mr* Add(std::unique_ptr<Region> region, ibv_pd* domain, int access) {
    region->verbs.context = domain->context;
    region->verbs.pd = domain;
    region->access = access;
    const uint32_t key = next_key++;
    region->verbs.lkey = region->verbs.rkey = key;
    return &regions.emplace(key, std::move(region)).first->second->verbs;
  }

  int Refuse(const std::string& why, int error) {
    violations.push_back(why);
    return error;
  }

  bool Chance() { return !random.has_value() || (*random)() % 3 == 0; }

  // Completions ----------------------------------------------------------------------------------
  void Show(Queue& queue, const ibv_wc& completion, bool solicited) {
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

  void ShowLate(Queue& queue) {
    while (!queue.late.empty()) {
      const auto found = pairs.find(static_cast<uint32_t>(queue.late.front().second));
      if (found != pairs.end() && found->second->nic->hold_completions) return;
      if (!Chance()) return;
      Show(queue, queue.late.front().first, /*solicited=*/false);
      queue.late.pop_front();
    }
  }

  void Complete(Pair& pair, const Send& send, ibv_wc_status status) {
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

  void Fail(Pair& pair) {
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

  // iWARP
  // ------------------------------------------------------------------------------------------
  static bool IsIwarp(const Pair& pair) {
    return pair.nic->config.transport == IBV_TRANSPORT_IWARP;
  }

  static bool Reaches(const Nic& from, const Nic& to) {
    return from.config.state == IBV_PORT_ACTIVE && to.config.state == IBV_PORT_ACTIVE;
  }

  // The end of TCP's connection, where the other side can learn of it.
  void BreakPeer(const Pair& pair) {
    const auto found = pairs.find(pair.attributes.dest_qp_num);
    if (found == pairs.end() || !Reaches(*pair.nic, *found->second->nic)) return;
    if (found->second->attributes.qp_state == IBV_QPS_RTS) Fail(*found->second);
  }

  // As MoveHead.
  bool MoveIwarpHead(Pair& pair) {
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

  // Puts what arrives into memory of the receiver. False when that is too small or not its own.
  bool Fill(const ibv_sge& piece, int access, const std::byte* data, uint64_t size) {
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

  // A read. Over iWARP its answer is a write, of memory that must allow it.
  bool Read(const Pair& from, const Pair& to, const Send& send) {
    if (send.pieces.size() != 1 || !IsIwarp(from)) return false;
    const uint64_t address = send.request.wr.rdma.remote_addr;
    const ibv_sge& sink = send.pieces.front();
    return sink.length > 0 &&
           May(IBV_ACCESS_REMOTE_READ, to, send.request.wr.rdma.rkey, address, sink.length) &&
           Fill(sink, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, Pointer(address),
                sink.length);
  }

  // The wire -------------------------------------------------------------------------------------
  // The pair that packets of `from` reach, if it would take them.
  Pair* Reach(const Pair& from) {
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

  static bool SamePartition(const Pair& from, const Pair& to) {
    const uint16_t a = from.nic->config.pkeys[from.attributes.pkey_index];
    const uint16_t b = to.nic->config.pkeys[to.attributes.pkey_index];
    return (a & 0x7fff) != 0 && (a & 0x7fff) == (b & 0x7fff) && ((a | b) & 0x8000) != 0;
  }

  // Whether `to` may be written at [address, address + size) with `key`.
  bool MayWrite(const Pair& to, uint32_t key, uint64_t address, uint64_t size) {
    return size == 0 || May(IBV_ACCESS_REMOTE_WRITE, to, key, address, size);
  }

  bool May(int what, const Pair& to, uint32_t key, uint64_t address, uint64_t size) {
    if ((to.attributes.qp_access_flags & static_cast<unsigned>(what)) == 0) return false;
    const auto found = regions.find(key);
    if (found == regions.end()) return false;
    const Region& region = *found->second;
    const auto start = reinterpret_cast<uint64_t>(region.verbs.addr);
    return (region.access & what) != 0 && region.verbs.pd == to.verbs.pd && address >= start &&
           size <= region.verbs.length && address - start <= region.verbs.length - size;
  }

  void FailHead(Pair& pair, ibv_wc_status status) {
    Send head = std::move(pair.sends.front());
    pair.sends.pop_front();
    // What nobody was told of yet may still fail.
    if ((head.request.send_flags & IBV_SEND_SIGNALED) == 0) head.completed = false;
    Complete(pair, head, status);
    Fail(pair);
  }

  // Moves the head of `pair`'s send queue. False when it must wait.
  bool MoveHead(Pair& pair) {
    if (IsIwarp(pair)) return MoveIwarpHead(pair);
    Send& send = pair.sends.front();
    if (pair.waiting && now < pair.repeat_at) return false;
    Pair* const to = Reach(pair);
    if (to == nullptr || (to->expected_psn != send.psn &&
                          ((to->expected_psn - send.psn) & kPsnMask) > kPsnMask / 2)) {
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

  static uint64_t SizeOf(const std::vector<ibv_sge>& pieces) {
    uint64_t size = 0;
    for (const ibv_sge& piece : pieces) size += piece.length;
    return size;
  }

  // Reads what a send brings, as it is now. Nothing when some of it must not be read.
  std::optional<std::vector<std::byte>> Gather(const Pair& pair, const Send& send) {
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

  // Whether some of it was registered by peermem, and freed since: its user's fault.
  bool ReadsWhatIsGone(const Send& send) const {
    return std::any_of(send.pieces.begin(), send.pieces.end(), [&](const ibv_sge& piece) {
      const auto found = regions.find(piece.lkey);
      return found != regions.end() && found->second->of_gpu && !found->second->dma_buf.valid() &&
             found->second->pages.expired();
    });
  }

  // Carries out a send at the receiver. False when that has no receive posted.
  bool Execute(Pair& from, Pair& to, Send& send) {
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
    const bool allowed =
        is_read   ? Read(from, to, send)
        : is_send ? Fill(to.receives.front().piece, IBV_ACCESS_LOCAL_WRITE, data, size)
                  : MayWrite(to, request.wr.rdma.rkey, request.wr.rdma.remote_addr, size);
    if (!allowed) {
      FailHead(from, IBV_WC_REM_ACCESS_ERR);
      Fail(to);
      return true;
    }
    if (size > 0 && !is_send && !is_read) {
      auto* const target = Pointer(send.request.wr.rdma.remote_addr);
      std::memcpy(target, data, size);
      if (from.nic->corrupt_next.has_value() && from.nic->corrupt_next->first < size) {
        target[from.nic->corrupt_next->first] = std::byte{from.nic->corrupt_next->second};
        from.nic->corrupt_next.reset();
      }
    }
    ++messages;
    if (is_read || (size == 0 && !immediate && !is_send)) ++probes;
    to.expected_psn = (to.expected_psn + PacketsOf(size, from.attributes.path_mtu)) & kPsnMask;
    if (!immediate && !is_send) return true;
    ibv_wc completion = {};
    completion.wr_id = to.receives.front().id;
    completion.status = IBV_WC_SUCCESS;
    completion.opcode = immediate ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
    completion.wc_flags = immediate ? IBV_WC_WITH_IMM : 0;
    completion.imm_data = send.request.imm_data;
    if (from.nic->immediate_next.has_value()) {
      completion.imm_data = htonl(*std::exchange(from.nic->immediate_next, std::nullopt));
      if (is_send) {
        std::memcpy(Pointer(to.receives.front().piece.addr), &completion.imm_data,
                    sizeof(completion.imm_data));
      }
    }
    to.receives.pop_front();
    completion.byte_len = static_cast<uint32_t>(size);
    completion.qp_num = to.verbs.qp_num;
    Show(Of(to.verbs.recv_cq), completion, (send.request.send_flags & IBV_SEND_SOLICITED) != 0);
    return true;
  }

  void Move() {
    for (const auto& [number, pair] : pairs) {
      while (!pair->sends.empty() && pair->attributes.qp_state == IBV_QPS_RTS && Chance()) {
        if (!MoveHead(*pair)) break;
      }
    }
    for (const std::unique_ptr<Queue>& queue : queues) ShowLate(*queue);
  }

  // The data path, as the context's table calls it -----------------------------------------------
  static int PostSend(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** refused) {
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

  int PostOne(Pair& pair, const ibv_send_wr& request) {
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

  static int PostReceive(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** refused) {
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

  static int PollCq(ibv_cq* cq, int most, ibv_wc* completions) {
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

  static int RequestNotify(ibv_cq* cq, int solicited_only) {
    Fabric& fabric = *Of(cq->context).fabric;
    const std::lock_guard<std::mutex> hold(fabric.lock);
    // Asked for more before, it stays so until the next event.
    Queue& queue = Of(cq);
    queue.solicited_only = solicited_only != 0 && (!queue.armed || queue.solicited_only);
    queue.armed = true;
    return 0;
  }

  template <typename T>
  static void Erase(std::vector<std::unique_ptr<T>>& all, const void* address) {
    all.erase(std::remove_if(all.begin(), all.end(),
                             [&](const std::unique_ptr<T>& one) { return one.get() == address; }),
              all.end());
  }
};

FakeVerbs::FakeVerbs(std::vector<FakeDevice> devices) : fabric_(std::make_unique<Fabric>()) {
  for (FakeDevice& device : devices) {
    auto nic = std::make_unique<Fabric::Nic>();
    nic->config = std::move(device);
    nic->verbs.transport_type = nic->config.transport;
    std::strncpy(nic->verbs.name, nic->config.name.c_str(), sizeof(nic->verbs.name) - 1);
    fabric_->nics.push_back(std::move(nic));
  }
  cm_ = std::make_shared<FakeCm>(*this);
}

FakeVerbs::~FakeVerbs() = default;

absl::Time FakeVerbs::Now() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->now;
}

void FakeVerbs::AdvanceTime(absl::Duration by) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  fabric_->now += by;
  if (!fabric_->random.has_value()) fabric_->Move();
}

void FakeVerbs::MoveAtRandom(uint32_t seed) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  fabric_->random.emplace(seed);
}

void FakeVerbs::SetPortState(const std::string& device, ibv_port_state state) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  Fabric::Nic& nic = fabric_->NicNamed(device);
  if (std::exchange(nic.config.state, state) == state) return;
  ibv_async_event event = {};
  event.element.port_num = 1;
  event.event_type = state == IBV_PORT_ACTIVE ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR;
  for (const auto& context : fabric_->contexts) {
    if (context->nic != &nic) continue;
    context->held.push_back(event);
    if (!nic.hold_completions) context->TellEvents();
  }
}

void FakeVerbs::FailNextSend(const std::string& device, ibv_wc_status status) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  fabric_->NicNamed(device).fail_next = status;
}

void FakeVerbs::LosePath(const std::string& device, size_t pair, bool lost) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  for (const auto& [number, one] : fabric_->pairs) {
    if (one->nic->config.name == device && pair-- == 0) one->path_lost = lost;
  }
}

void FakeVerbs::HoldCompletions(const std::string& device, bool hold_them) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  Fabric::Nic& nic = fabric_->NicNamed(device);
  nic.hold_completions = hold_them;
  for (const auto& context : fabric_->contexts) {
    if (context->nic == &nic && !hold_them) context->TellEvents();
  }
}

void FakeVerbs::RefuseDmaBufs(int error) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  fabric_->dma_buf_error = error;
}

void FakeVerbs::CorruptNextSend(const std::string& device, size_t offset, uint8_t value) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  fabric_->NicNamed(device).corrupt_next = {offset, value};
}

void FakeVerbs::ReplaceNextImmediate(const std::string& device, uint32_t immediate) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  fabric_->NicNamed(device).immediate_next = immediate;
}

std::vector<std::string> FakeVerbs::violations() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->violations;
}

std::vector<FakeRegion> FakeVerbs::regions(const std::string& device) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  std::vector<FakeRegion> found;
  for (const auto& [key, region] : fabric_->regions) {
    if (Fabric::Of(region->verbs.context).nic->config.name != device) continue;
    found.push_back({region->start, region->verbs.length, region->access, region->bytes_sent,
                     region->dma_buf.valid()});
  }
  return found;
}

std::vector<ibv_qp_attr> FakeVerbs::pairs(const std::string& device) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  std::vector<ibv_qp_attr> found;
  for (const auto& [number, pair] : fabric_->pairs) {
    if (pair->nic->config.name == device) found.push_back(pair->attributes);
  }
  return found;
}

size_t FakeVerbs::undelivered(const std::string& device) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  size_t count = 0;
  for (const auto& [number, pair] : fabric_->pairs) {
    if (pair->nic->config.name == device) count += pair->sends.size();
  }
  return count;
}

uint64_t FakeVerbs::receiver_not_ready() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->receiver_not_ready;
}
uint64_t FakeVerbs::messages() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->messages;
}
uint64_t FakeVerbs::probes() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->probes;
}
uint64_t FakeVerbs::inline_sends() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->inline_sends;
}
uint64_t FakeVerbs::gathered_sends() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->gathered_sends;
}
uint64_t FakeVerbs::signaled_sends() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->signaled_sends;
}
uint64_t FakeVerbs::sends() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->sends;
}

size_t FakeVerbs::open_objects() const {
  // Asked first: it takes its own lock, and under that this one's.
  const size_t of_connections = cm_->open_objects();
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return of_connections + fabric_->contexts.size() + fabric_->domains.size() +
         fabric_->regions.size() + fabric_->channels.size() + fabric_->queues.size() +
         fabric_->pairs.size();
}

std::optional<std::string> FakeVerbs::DeviceOf(const net::IpAddress& ip) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  for (const std::unique_ptr<Fabric::Nic>& nic : fabric_->nics) {
    for (const net::IpAddress& address : nic->config.addresses) {
      if (address == ip) return nic->config.name;
    }
  }
  return std::nullopt;
}

std::vector<net::IpAddress> FakeVerbs::AddressesOf(const net::MacAddress& mac) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  for (const std::unique_ptr<Fabric::Nic>& nic : fabric_->nics) {
    for (const ibv_gid_entry& entry : nic->config.gids) {
      if (std::equal(mac.begin(), mac.end(), entry.gid.raw)) return nic->config.addresses;
    }
  }
  return {};
}

bool FakeVerbs::Reaches(const std::string& device, const std::string& other) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return Fabric::Reaches(fabric_->NicNamed(device), fabric_->NicNamed(other));
}

bool FakeVerbs::JoinPairs(uint32_t caller, uint32_t called, bool overlook) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  for (const uint32_t number : {caller, called}) {
    const auto found = fabric_->pairs.find(number);
    if (found == fabric_->pairs.end() || found->second->attributes.qp_state != IBV_QPS_INIT) {
      return false;
    }
  }
  for (const uint32_t number : {caller, called}) {
    Fabric::Pair& pair = *fabric_->pairs.at(number);
    pair.attributes.qp_state = IBV_QPS_RTS;
    pair.attributes.dest_qp_num = number == caller ? called : caller;
    pair.attributes.path_mtu = IBV_MTU_1024;
    pair.may_speak = number == caller;
    pair.overlooked = number == caller && (overlook || (fabric_->random && fabric_->Chance()));
  }
  return true;
}

bool FakeVerbs::PairIsBroken(uint32_t pair) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  const auto found = fabric_->pairs.find(pair);
  return found == fabric_->pairs.end() || found->second->attributes.qp_state != IBV_QPS_RTS;
}

void FakeVerbs::BreakPair(uint32_t pair) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  const auto found = fabric_->pairs.find(pair);
  if (found != fabric_->pairs.end() && found->second->attributes.qp_state == IBV_QPS_RTS) {
    fabric_->Fail(*found->second);
  }
}

bool FakeVerbs::Chance() {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->Chance();
}

void FakeVerbs::AddViolation(const std::string& what) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  fabric_->violations.push_back(what);
}

ibv_device** FakeVerbs::GetDeviceList(int* count) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  auto** const list = new ibv_device*[fabric_->nics.size() + 1];
  for (size_t i = 0; i < fabric_->nics.size(); ++i) list[i] = &fabric_->nics[i]->verbs;
  list[fabric_->nics.size()] = nullptr;
  *count = static_cast<int>(fabric_->nics.size());
  return list;
}

void FakeVerbs::FreeDeviceList(ibv_device** list) const { delete[] list; }

const char* FakeVerbs::GetDeviceName(ibv_device* device) const { return device->name; }

ibv_context* FakeVerbs::OpenDevice(ibv_device* device) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  Fabric::Nic& nic = fabric_->NicNamed(device->name);
  if (nic.config.open_error != 0) {
    errno = nic.config.open_error;
    return nullptr;
  }
  auto context = std::make_unique<Fabric::Context>();
  context->fabric = fabric_.get();
  context->nic = &nic;
  context->verbs.device = device;
  context->verbs.async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  context->verbs.ops.post_send = Fabric::PostSend;
  context->verbs.ops.post_recv = Fabric::PostReceive;
  context->verbs.ops.poll_cq = Fabric::PollCq;
  context->verbs.ops.req_notify_cq = Fabric::RequestNotify;
  fabric_->contexts.push_back(std::move(context));
  return &fabric_->contexts.back()->verbs;
}

int FakeVerbs::CloseDevice(ibv_context* context) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  for (const std::unique_ptr<ibv_pd>& domain : fabric_->domains) {
    if (domain->context == context) return fabric_->Refuse("a device closed while in use", EBUSY);
  }
  if (fabric_->events_to_acknowledge != 0) {
    return fabric_->Refuse("a device closed with unacknowledged events", EBUSY);
  }
  close(context->async_fd);
  Fabric::Erase(fabric_->contexts, context);
  return 0;
}

int FakeVerbs::GetAsyncEvent(ibv_context* context, ibv_async_event* event) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  uint64_t one = 0;
  if (read(context->async_fd, &one, sizeof(one)) != sizeof(one)) return -1;
  std::deque<ibv_async_event>& events = Fabric::Of(context).events;
  *event = events.front();
  events.pop_front();
  ++fabric_->events_to_acknowledge;
  return 0;
}

void FakeVerbs::AckAsyncEvent(ibv_async_event* /*event*/) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  --fabric_->events_to_acknowledge;
}

int FakeVerbs::QueryDevice(ibv_context*, ibv_device_attr* attributes) const {
  *attributes = {};
  attributes->phys_port_cnt = 2;
  attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = 16;
  return 0;
}

int FakeVerbs::QueryPort(ibv_context* context, uint8_t port, ibv_port_attr* attributes) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  if (port != 1 && port != 2) return EINVAL;
  const FakeDevice& config = Fabric::Of(context).nic->config;
  *attributes = {};
  attributes->state = config.state;
  attributes->active_mtu = config.mtu;
  attributes->max_mtu = IBV_MTU_4096;
  attributes->lid = config.lid;
  attributes->gid_tbl_len = 256;
  attributes->pkey_tbl_len = static_cast<uint16_t>(config.pkeys.size());
  attributes->link_layer = config.infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  return 0;
}

int FakeVerbs::QueryPkey(ibv_context* context, uint8_t port, int index, uint16_t& pkey) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  const std::vector<uint16_t>& pkeys = Fabric::Of(context).nic->config.pkeys;
  const auto place = static_cast<size_t>(index);
  if ((port != 1 && port != 2) || place >= pkeys.size()) return EINVAL;
  pkey = pkeys[place];
  return 0;
}

ssize_t FakeVerbs::QueryGidTable(ibv_context* context, absl::Span<ibv_gid_entry> entries) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  const std::vector<ibv_gid_entry>& gids = Fabric::Of(context).nic->config.gids;
  if (gids.size() > entries.size()) return -EINVAL;
  std::copy(gids.begin(), gids.end(), entries.begin());
  return static_cast<ssize_t>(gids.size());
}

std::string FakeVerbs::GidInterface(ibv_context* context, uint8_t /*port*/, uint32_t index) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  const std::map<uint32_t, std::string>& interfaces = Fabric::Of(context).nic->config.interfaces;
  const auto found = interfaces.find(index);
  return found == interfaces.end() ? "" : found->second;
}

ibv_pd* FakeVerbs::AllocPd(ibv_context* context) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  auto domain = std::make_unique<ibv_pd>();
  domain->context = context;
  fabric_->domains.push_back(std::move(domain));
  return fabric_->domains.back().get();
}

int FakeVerbs::DeallocPd(ibv_pd* domain) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  bool used = false;
  for (const auto& [key, region] : fabric_->regions) used = used || region->verbs.pd == domain;
  for (const auto& [number, pair] : fabric_->pairs) used = used || pair->verbs.pd == domain;
  if (used) return fabric_->Refuse("a protection domain destroyed while in use", EBUSY);
  Fabric::Erase(fabric_->domains, domain);
  return 0;
}

ibv_mr* FakeVerbs::RegMr(ibv_pd* domain, void* address, size_t length, int access) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  Fabric::Nic& nic = *Fabric::Of(domain->context).nic;
  if (nic.registered + length > nic.config.memlock) {
    errno = ENOMEM;
    return nullptr;
  }
  auto region = std::make_unique<Fabric::Region>();
  if (gpus_ != nullptr && gpus_->Owns(address)) {
    // Neither counts such memory, nor needs it to be pinned.
    region->pages = gpus_->Pin(address, length);
    region->begin = gpus_->OffsetOf(address);
    region->of_gpu = true;
    if (region->pages.expired()) {
      errno = EFAULT;
      return nullptr;
    }
  } else {
    nic.registered += length;
  }
  region->verbs.addr = address;
  region->verbs.length = length;
  region->start = reinterpret_cast<uintptr_t>(address);
  return fabric_->Add(std::move(region), domain, access);
}

ibv_mr* FakeVerbs::RegDmabufMr(ibv_pd* domain, uint64_t offset, size_t length, uint64_t address,
                               int fd, int access) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  struct stat file = {};
  const off_t start = lseek(fd, 0, SEEK_CUR);
  if (fabric_->dma_buf_error != 0 || fstat(fd, &file) != 0 || start < 0 ||
      static_cast<uint64_t>(start) + offset + length > static_cast<uint64_t>(file.st_size)) {
    errno = fabric_->dma_buf_error != 0 ? fabric_->dma_buf_error : EINVAL;
    return nullptr;
  }
  auto region = std::make_unique<Fabric::Region>();
  region->verbs.length = length;
  region->start = address;
  region->begin = static_cast<uint64_t>(start) + offset;
  region->dma_buf = net::Fd(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  region->of_gpu = true;
  return fabric_->Add(std::move(region), domain, access);
}

int FakeVerbs::DeregMr(ibv_mr* region) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  for (const auto& [number, pair] : fabric_->pairs) {
    if (pair->attributes.qp_state != IBV_QPS_RTS) continue;
    for (const std::vector<ibv_sge>& entry : pair->entries) {
      if (std::any_of(entry.begin(), entry.end(),
                      [&](const ibv_sge& piece) { return piece.lkey == region->lkey; })) {
        return fabric_->Refuse("memory deregistered while a send may read it", EBUSY);
      }
    }
  }
  const auto found = fabric_->regions.find(region->lkey);
  if (!found->second->of_gpu) Fabric::Of(region->context).nic->registered -= region->length;
  fabric_->regions.erase(found);
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
