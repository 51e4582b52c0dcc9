// SPDX-License-Identifier: Apache-2.0
//
// RDMA NICs and the fabric between them in one process, behind the table of verbs. For tests.
//
// It imitates a NIC as seen by a link: queue pair states, packet sequence numbers, loss of packets
// to a queue pair that is not ready and their retransmission after a timeout or a later packet,
// partitions, protection (keys, bounds, access rights), receiver-not-ready, ordered completions of
// signaled requests, inline data read at once and other data late, and event channels with real
// descriptors. Tests inject faults.
//
// iWARP NICs complete a write or send when it is posted, and read its data when it arrives, as TCP
// retransmits from user memory; only a read proves that the peer's NIC has everything before it.
// Network interruptions delay them without an error; the end of one side is an error at the other,
// when it can notice. fake_cm.h connects them.
//
// Time advances only by AdvanceTime. Incorrect use of verbs (posting to a full queue, overflowing a
// completion queue, destroying what is in use, ...) fails as on a NIC and is recorded in
// violations().
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_FAKE_VERBS_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_FAKE_VERBS_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>
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
  // Bytes of memory that can be registered before RegMr fails with ENOMEM.
  uint64_t memlock = UINT64_MAX;
  // Number of queue pairs before CreateQp fails with ENOMEM.
  size_t queue_pairs = SIZE_MAX;
  // errno of the next OpenDevice; 0: success.
  int open_error = 0;
  std::vector<ibv_gid_entry> gids;
  std::map<uint32_t, std::string> interfaces;  // of GIDs, by index
  std::vector<uint16_t> pkeys = {0xffff};      // the port's table; 0: an empty entry
  // iWARP: addresses of its interface, in this process's network namespace.
  std::vector<net::IpAddress> addresses;
};

// Returns an entry of a GID table; `address` as for inet_pton (IPv4 becomes IPv4-mapped).
ibv_gid_entry FakeGid(uint32_t index, const std::string& address, uint32_t type, uint32_t port = 1);

// Returns the only entry of an iWARP port's GID table.
ibv_gid_entry FakeMacGid(const net::MacAddress& mac);

// A registered region.
struct FakeRegion {
  uint64_t address = 0;
  uint64_t length = 0;
  int access = 0;
  uint64_t bytes_sent = 0;  // read by the NIC when they were sent
  bool dma_buf = false;
};

// Thread-safe.
class FakeVerbs final : public VerbsApi {
 public:
  explicit FakeVerbs(std::vector<FakeDevice> devices);
  ~FakeVerbs() override;

  // The fabric ---------------------------------------------------------------------------------
  absl::Time Now() const;
  void AdvanceTime(absl::Duration by);
  // Makes the fabric random: a message arrives, or its completion appears, only at some of the
  // calls that could bring it. Seeded and repeatable.
  void MoveAtRandom(uint32_t seed);

  // Addresses of this process's network namespace. Set before devices are opened.
  void SetOwnAddresses(std::vector<net::IpAddress> addresses) {
    own_addresses_ = std::move(addresses);
  }

  // GPUs whose memory NICs reach through nvidia-peermem. Default: none.
  void SetGpus(std::shared_ptr<const device::FakeCuda> gpus) { gpus_ = std::move(gpus); }

  // Faults ---------------------------------------------------------------------------------------
  // The device also reports an event.
  void SetPortState(const std::string& device, ibv_port_state state);
  // Makes the device's next delivered message fail with this status.
  void FailNextSend(const std::string& device, ibv_wc_status status);
  // Loses everything on the network path of one queue pair of the device, counted in order of
  // creation among existing ones. Not for iWARP.
  void LosePath(const std::string& device, size_t pair, bool lost);
  // Holds back the device's send completions and port events until released.
  void HoldCompletions(const std::string& device, bool hold);
  // errno with which all NICs reject dma-bufs; 0: accept.
  void RefuseDmaBufs(int error);
  // Sets payload byte `offset` of the device's next write with immediate to `value`.
  void CorruptNextSend(const std::string& device, size_t offset, uint8_t value);
  // Does the same for its immediate value.
  void ReplaceNextImmediate(const std::string& device, uint32_t immediate);

  // What happened ---------------------------------------------------------------------------------
  std::vector<std::string> violations() const;
  std::vector<FakeRegion> regions(const std::string& device) const;  // registered now
  std::vector<ibv_qp_attr> pairs(const std::string& device) const;   // existing queue pairs
  size_t undelivered(const std::string& device) const;               // sends that have not arrived
  uint64_t receiver_not_ready() const;                               // messages without a receive
  uint64_t messages() const;                                         // delivered, of any kind
  uint64_t probes() const;  // delivered empty writes; iWARP: reads
  // Writes that arrived after their sender had given up its queue pair, as packets that a switch
  // has held back do; only MoveAtRandom makes any.
  uint64_t stray_writes() const;
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
  // Connects the calling pair with the called one; with `overlook`, the called one misses the first
  // message.
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
  std::string GidInterface(ibv_context* context, uint8_t port, uint32_t index) const override;
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
