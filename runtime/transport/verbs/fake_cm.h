// SPDX-License-Identifier: Apache-2.0
//
// The connection manager of the fake NICs that are iWARP (fake_verbs.h), behind its table. For
// tests.
//
// It does what librdmacm and a driver do as far as a link can tell: addresses belong to devices,
// calls wait until they are answered or ten seconds have passed, the ends of a connection learn
// that the other end has gone. What a correct user would not do is recorded as a violation.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_FAKE_CM_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_FAKE_CM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/verbs/cm_api.h"

namespace railhead::transport::verbs {

class FakeVerbs;

// All member functions may be called from any thread.
class FakeCm final : public CmApi {
 public:
  // `verbs` outlives it.
  explicit FakeCm(FakeVerbs& verbs);
  ~FakeCm() override;

  // While held, Connect does not return, as when TCP waits for a peer that does not answer; once
  // let go, it fails.
  void HoldConnects(bool hold);
  // A connection request from a stranger to whatever listens on a device, with this private data.
  void CallAsStranger(const std::string& device, const std::string& data);
  // The side that is called overlooks what comes first, until more comes later, as siw does where
  // the first message overtakes the end of its accepting.
  void OverlookFirstMessages();
  uint64_t strangers_refused() const;
  uint64_t connections() const;  // that came to be
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
