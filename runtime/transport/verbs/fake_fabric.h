// SPDX-License-Identifier: Apache-2.0
//
// Everything that fake NICs (fake_verbs.h) know: the objects of verbs that they have made, and
// what is on its way between them. All of it under one lock, which the callers of its functions
// hold.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_FAKE_FABRIC_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_FAKE_FABRIC_H_

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "runtime/device/fake_cuda.h"
#include "runtime/net/fd.h"
#include "runtime/transport/verbs/fake_verbs.h"

namespace railhead::transport::verbs {

struct FakeVerbs::Fabric {
  struct Nic;
  struct Pair;

  // Work requests carry addresses as numbers.
  static std::byte* Pointer(uint64_t address) {
    return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr): as above
  }

  static constexpr uint32_t kPsnMask = 0xffffff;
  static constexpr uint32_t kFirstQpNumber = 17;

  static uint32_t PacketsOf(uint64_t bytes, ibv_mtu mtu);

  // Verbs objects: the struct that the user sees comes first, so that its address leads back.
  struct Context {
    ibv_context verbs = {};
    Fabric* fabric = nullptr;
    Nic* nic = nullptr;
    std::deque<ibv_async_event> events;  // reported, as `verbs.async_fd` counts
    std::deque<ibv_async_event> held;    // not reported yet

    void TellEvents();
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
    // Its bytes, unless they are at `start`: in the dma-buf's file, or in pages of a GPU.
    net::Fd dma_buf;
    uint64_t begin = 0;  // of the region, in that
    std::weak_ptr<const device::FakePages> pages;
    bool of_gpu = false;

    // What a NIC reads; false where the memory is gone.
    bool Read(uint64_t address, size_t size, std::byte* to) const;
    // Writes as a NIC does; false where the memory is gone.
    bool Write(uint64_t address, const std::byte* from, size_t size) const;
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
  // Packets of a write on the network, whose sender has given up its queue pair.
  struct Stray {
    ibv_send_wr request = {};
    std::vector<std::byte> data;
    uint32_t psn = 0;
    uint32_t from = 0;  // numbers of the pairs
    uint32_t to = 0;
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
  std::deque<Stray> strays;
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
  uint64_t stray_writes = 0;
  uint64_t inline_sends = 0;
  uint64_t gathered_sends = 0;
  uint64_t signaled_sends = 0;
  uint64_t sends = 0;

  static Context& Of(ibv_context* context) { return *reinterpret_cast<Context*>(context); }
  static Pair& Of(ibv_qp* pair) { return *reinterpret_cast<Pair*>(pair); }
  static Queue& Of(ibv_cq* queue) { return *reinterpret_cast<Queue*>(queue); }

  Nic& NicNamed(const std::string& name);
  int Refuse(const std::string& why, int error);
  // Connected to itself: nothing on the network disturbs it.
  static bool IsOfSelf(const Pair& pair) {
    return pair.attributes.dest_qp_num == pair.verbs.qp_num;
  }
  bool Chance() { return !random.has_value() || (*random)() % 3 == 0; }

  // Memory (fake_memory.cc) -----------------------------------------------------------------------
  ibv_mr* Add(std::unique_ptr<Region> region, ibv_pd* domain, int access);

  // Completions (fake_delivery.cc) ----------------------------------------------------------------
  void Show(Queue& queue, const ibv_wc& completion, bool solicited);
  void ShowLate(Queue& queue);
  void Complete(Pair& pair, const Send& send, ibv_wc_status status);
  void Fail(Pair& pair);

  // iWARP (fake_delivery.cc) ----------------------------------------------------------------------
  static bool IsIwarp(const Pair& pair);
  static bool Reaches(const Nic& from, const Nic& to);
  // The end of TCP's connection, where the other side can learn of it.
  void BreakPeer(const Pair& pair);
  // As MoveHead.
  bool MoveIwarpHead(Pair& pair);
  // Puts what arrives into memory of the receiver. False when that is too small or not its own.
  bool Fill(const ibv_sge& piece, int access, const std::byte* data, uint64_t size);
  // A read. Its answer over iWARP is a write, of memory that must allow it.
  bool Read(const Pair& from, const Pair& to, const Send& send);

  // The wire (fake_delivery.cc) -------------------------------------------------------------------
  // The pair that packets of `from` reach, if it would take them.
  Pair* Reach(const Pair& from);
  static bool SamePartition(const Pair& from, const Pair& to);
  // Whether `to` may be written at [address, address + size) with `key`.
  bool MayWrite(const Pair& to, uint32_t key, uint64_t address, uint64_t size);
  bool May(int what, const Pair& to, uint32_t key, uint64_t address, uint64_t size);
  void FailHead(Pair& pair, ibv_wc_status status);
  // Moves the head of `pair`'s send queue. False when it must wait.
  bool MoveHead(Pair& pair);
  // Reads what a send brings, as it is now. Nothing when some of it must not be read.
  std::optional<std::vector<std::byte>> Gather(const Pair& pair, const Send& send);
  // Whether some of it was registered by peermem, and freed since: its user's fault.
  bool ReadsWhatIsGone(const Send& send) const;
  // Leaves on the network what a pair that is given up has sent, and brings some of it.
  void LeaveStrays(const Pair& pair);
  void MoveStrays();
  // Uses a receive of `to` for a message of `size` bytes.
  void ShowArrival(Pair& to, const ibv_send_wr& request, uint64_t size);
  // Carries out a send at the receiver. False when that has no receive posted.
  bool Execute(Pair& from, Pair& to, Send& send);
  void Move();

  // The data path, as the context's table calls it (fake_queues.cc) -------------------------------
  static int PostSend(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** refused);
  int PostOne(Pair& pair, const ibv_send_wr& request);
  static uint64_t SizeOf(const std::vector<ibv_sge>& pieces);
  static int PostReceive(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** refused);
  static int PollCq(ibv_cq* cq, int most, ibv_wc* completions);
  static int RequestNotify(ibv_cq* cq, int solicited_only);

  template <typename T>
  static void Erase(std::vector<std::unique_ptr<T>>& all, const void* address) {
    all.erase(std::remove_if(all.begin(), all.end(),
                             [&](const std::unique_ptr<T>& one) { return one.get() == address; }),
              all.end());
  }
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_FAKE_FABRIC_H_
