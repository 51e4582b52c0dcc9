// SPDX-License-Identifier: Apache-2.0
//
// RDMA NICs and the fabric between them, in one process, behind the table of verbs. For tests.
//
// It does what a NIC does as far as a link can tell: queue pair states, packet sequence numbers,
// packets to a queue pair that is not ready are lost and repeated after a timeout or when a later
// packet exposes the gap, partitions, protection (keys, bounds, access rights), receiver-not-ready,
// completions in order and only where asked for, inline data taken at once and other data taken
// late, event channels with a real file descriptor. And it breaks on request.
//
// NICs that are iWARP take a write or a send for done as soon as it is posted, and read its data
// when it arrives, as TCP does that repeats from the user's memory; only a read says that the
// peer's NIC has got so far. A network that is interrupted costs them time and no error; the end of
// one side is an error of the other, once it can learn of it. They are connected by fake_cm.h.
//
// Time stands still until AdvanceTime. Anything that a correct user of verbs would not do (post to
// a full queue, overflow a completion queue, destroy what is in use, ...) is refused as a NIC would
// and also recorded in violations().
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_FAKE_VERBS_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_FAKE_VERBS_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/device/fake_cuda.h"
#include "runtime/net/address.h"
#include "runtime/transport/verbs/fake_cm.h"
#include "runtime/transport/verbs/verbs_api.h"

namespace railhead::transport::verbs {

struct FakeDevice {
  std::string name = "fake0";
  bool infiniband = false;
  ibv_transport_type transport = IBV_TRANSPORT_IB;
  ibv_port_state state = IBV_PORT_ACTIVE;
  ibv_mtu mtu = IBV_MTU_4096;
  uint16_t lid = 0;
  uint32_t max_inline = 220;
  // Bytes of memory that may be registered before RegMr fails with ENOMEM.
  uint64_t memlock = UINT64_MAX;
  // How many queue pairs there may be before CreateQp fails with ENOMEM.
  size_t queue_pairs = SIZE_MAX;
  // errno of the next OpenDevice, 0 for none.
  int open_error = 0;
  std::vector<ibv_gid_entry> gids;
  std::vector<uint16_t> pkeys = {0xffff};  // the port's table; 0: an empty entry
  // Of iWARP: of its interface, in this process's network namespace.
  std::vector<net::IpAddress> addresses;
};

// An entry of a GID table: address as inet_pton takes it (IPv4 becomes IPv4-mapped).
ibv_gid_entry FakeGid(uint32_t index, const std::string& address, uint32_t type, uint32_t port = 1);

// The only entry of the GID table of an iWARP port.
ibv_gid_entry FakeMacGid(const net::MacAddress& mac);

// A registered region, as the test sees it.
struct FakeRegion {
  uint64_t address = 0;
  uint64_t length = 0;
  int access = 0;
  uint64_t bytes_sent = 0;  // that the NIC has read from it when they left
  bool dma_buf = false;
};

// All member functions may be called from any thread.
class FakeVerbs final : public VerbsApi {
 public:
  explicit FakeVerbs(std::vector<FakeDevice> devices);
  ~FakeVerbs() override;

  // The fabric ---------------------------------------------------------------------------------
  absl::Time Now() const;
  void AdvanceTime(absl::Duration by);
  // From now on the fabric moves at random: a message arrives, or its completion shows, only at
  // some of the calls that could bring it. Seeded, so a run can be repeated.
  void MoveAtRandom(uint32_t seed);

  // Of the network namespace of all that run here. To be set before devices are opened.
  void SetOwnAddresses(std::vector<net::IpAddress> addresses) {
    own_addresses_ = std::move(addresses);
  }

  // Whose memory NICs reach as nvidia-peermem lets them. Without it they know none.
  void SetGpus(std::shared_ptr<const device::FakeCuda> gpus) { gpus_ = std::move(gpus); }

  // Faults ---------------------------------------------------------------------------------------
  // The device tells of it, too.
  void SetPortState(const std::string& device, ibv_port_state state);
  // The device's next message that would be delivered fails with this status instead.
  void FailNextSend(const std::string& device, ibv_wc_status status);
  // The path that the network has chosen for one of the device's queue pairs, counted in the order
  // in which those that it has now were made, loses all that is sent over it. Not of iWARP.
  void LosePath(const std::string& device, size_t pair, bool lost);
  // The device says nothing until released: send completions and events of its port are held back.
  void HoldCompletions(const std::string& device, bool hold);
  // The errno with which all NICs refuse dma-bufs; 0: they do not.
  void RefuseDmaBufs(int error);
  // Overwrites bytes of a message that the device sends next with a write with immediate: payload
  // byte `offset` from the start of the message becomes `value`.
  void CorruptNextSend(const std::string& device, size_t offset, uint8_t value);
  // The same for its immediate value.
  void ReplaceNextImmediate(const std::string& device, uint32_t immediate);

  // What happened ---------------------------------------------------------------------------------
  std::vector<std::string> violations() const;
  std::vector<FakeRegion> regions(const std::string& device) const;  // registered now
  std::vector<ibv_qp_attr> pairs(const std::string& device) const;   // its queue pairs now
  size_t undelivered(const std::string& device) const;               // sends that have not arrived
  uint64_t receiver_not_ready() const;  // messages that found no receive
  uint64_t messages() const;            // delivered, of any kind
  uint64_t probes() const;              // delivered writes of nothing; of iWARP: reads
  uint64_t inline_sends() const;
  uint64_t gathered_sends() const;  // of more than one piece of memory
  uint64_t signaled_sends() const;
  uint64_t sends() const;
  size_t open_objects() const;  // contexts, domains, regions, channels, queues, pairs

  // For the connection manager of iWARP ----------------------------------------------------------
  FakeCm& cm() const { return *cm_; }
  std::optional<std::string> DeviceOf(const net::IpAddress& ip) const;
  std::vector<net::IpAddress> AddressesOf(const net::MacAddress& mac) const;
  bool Reaches(const std::string& device, const std::string& other) const;
  // Connects the pair that called with the one that was called, which may overlook what comes
  // first.
  bool JoinPairs(uint32_t caller, uint32_t called, bool overlook);
  bool PairIsBroken(uint32_t pair) const;
  void BreakPair(uint32_t pair);
  bool Chance();
  void AddViolation(const std::string& what);

  // VerbsApi ------------------------------------------------------------------------------------
  ibv_device** GetDeviceList(int* count) const override;
  void FreeDeviceList(ibv_device** list) const override;
  const char* GetDeviceName(ibv_device* device) const override;
  ibv_context* OpenDevice(ibv_device* device) const override;
  int CloseDevice(ibv_context* context) const override;
  int QueryDevice(ibv_context* context, ibv_device_attr* attributes) const override;
  int QueryPort(ibv_context* context, uint8_t port, ibv_port_attr* attributes) const override;
  std::vector<net::IpAddress> OwnAddresses() const override { return own_addresses_; }
  int QueryPkey(ibv_context* context, uint8_t port, int index, uint16_t& pkey) const override;
  ssize_t QueryGidTable(ibv_context* context, absl::Span<ibv_gid_entry> entries) const override;
  int GetAsyncEvent(ibv_context* context, ibv_async_event* event) const override;
  void AckAsyncEvent(ibv_async_event* event) const override;
  ibv_pd* AllocPd(ibv_context* context) const override;
  int DeallocPd(ibv_pd* domain) const override;
  ibv_mr* RegMr(ibv_pd* domain, void* address, size_t length, int access) const override;
  ibv_mr* RegDmabufMr(ibv_pd* domain, uint64_t offset, size_t length, uint64_t address, int fd,
                      int access) const override;
  int DeregMr(ibv_mr* region) const override;
  ibv_comp_channel* CreateCompChannel(ibv_context* context) const override;
  int DestroyCompChannel(ibv_comp_channel* channel) const override;
  ibv_cq* CreateCq(ibv_context* context, int entries, ibv_comp_channel* channel) const override;
  int DestroyCq(ibv_cq* queue) const override;
  int GetCqEvent(ibv_comp_channel* channel, ibv_cq** queue, void** cookie) const override;
  void AckCqEvents(ibv_cq* queue, unsigned count) const override;
  ibv_qp* CreateQp(ibv_pd* domain, ibv_qp_init_attr* attributes) const override;
  int ModifyQp(ibv_qp* pair, ibv_qp_attr* attributes, int mask) const override;
  int DestroyQp(ibv_qp* pair) const override;
  const char* WcStatusText(ibv_wc_status status) const override;
  absl::StatusOr<std::shared_ptr<const CmApi>> ConnectionManager() const override { return cm_; }

 private:
  struct Fabric;  // all state, under one lock
  std::unique_ptr<Fabric> fabric_;
  std::shared_ptr<FakeCm> cm_;
  std::vector<net::IpAddress> own_addresses_;
  std::shared_ptr<const device::FakeCuda> gpus_;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_FAKE_VERBS_H_
