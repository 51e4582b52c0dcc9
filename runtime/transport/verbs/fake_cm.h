// SPDX-License-Identifier: Apache-2.0
//
// Connection manager of fake iWARP NICs (fake_verbs.h), behind its table. For tests.
//
// It imitates librdmacm and a driver as seen by a link: addresses belong to devices, calls wait for
// an answer or ten seconds, and each end of a connection is notified when the other is gone.
// Incorrect use is recorded as a violation.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_FAKE_CM_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_FAKE_CM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/verbs/cm_api.h"

namespace railhead::transport::verbs {

class FakeVerbs;

// Thread-safe.
class FakeCm final : public CmApi {
 public:
  // `verbs` must outlive it.
  explicit FakeCm(FakeVerbs& verbs);
  ~FakeCm() override;

  // While held, Connect does not return, as if TCP waited for an unresponsive peer; after release
  // it fails.
  void HoldConnects(bool hold);
  // Sends a connection request with this private data, without a valid token, to the device's
  // listener.
  void CallAsStranger(const std::string& device, const std::string& data);
  // The accepting side misses the first message until another arrives, as siw does if it overtakes
  // the end of accepting.
  void OverlookFirstMessages();
  uint64_t strangers_refused() const;
  uint64_t connections() const;  // established
  size_t open_objects() const;   // channels and ids

  rdma_event_channel* CreateEventChannel() const override;
  void DestroyEventChannel(rdma_event_channel* channel) const override;
  int GetEvent(rdma_event_channel* channel, rdma_cm_event** event) const override;
  int AckEvent(rdma_cm_event* event) const override;
  int CreateId(rdma_event_channel* channel, rdma_cm_id** id) const override;
  int DestroyId(rdma_cm_id* id) const override;
  int BindAddr(rdma_cm_id* id, sockaddr* address) const override;
  int Listen(rdma_cm_id* id, int backlog) const override;
  int ResolveAddr(rdma_cm_id* id, sockaddr* from, sockaddr* to, int timeout_ms) const override;
  int ResolveRoute(rdma_cm_id* id, int timeout_ms) const override;
  int Connect(rdma_cm_id* id, rdma_conn_param* parameters) const override;
  int Accept(rdma_cm_id* id, rdma_conn_param* parameters) const override;
  int Reject(rdma_cm_id* id) const override;
  std::vector<net::IpAddress> AddressesOfMac(const net::MacAddress& mac) const override;

 private:
  struct Manager;  // all state, under one lock
  std::unique_ptr<Manager> manager_;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_FAKE_CM_H_
