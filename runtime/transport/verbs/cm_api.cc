// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/cm_api.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/transport/verbs/shared_library.h"

namespace railhead::transport::verbs {
namespace {

constexpr char kLibrary[] = "librdmacm.so.1";
constexpr char kSymbolVersion[] = "RDMACM_1.0";

class LibraryCmApi final : public CmApi {
 public:
  // Resolves every function; names the first that the library lacks.
  absl::Status Resolve(SharedLibrary& library) {
    library.Find("rdma_create_event_channel", kSymbolVersion, create_event_channel_);
    library.Find("rdma_destroy_event_channel", kSymbolVersion, destroy_event_channel_);
    library.Find("rdma_get_cm_event", kSymbolVersion, get_event_);
    library.Find("rdma_ack_cm_event", kSymbolVersion, ack_event_);
    library.Find("rdma_create_id", kSymbolVersion, create_id_);
    library.Find("rdma_destroy_id", kSymbolVersion, destroy_id_);
    library.Find("rdma_bind_addr", kSymbolVersion, bind_addr_);
    library.Find("rdma_listen", kSymbolVersion, listen_);
    library.Find("rdma_resolve_addr", kSymbolVersion, resolve_addr_);
    library.Find("rdma_resolve_route", kSymbolVersion, resolve_route_);
    library.Find("rdma_connect", kSymbolVersion, connect_);
    library.Find("rdma_accept", kSymbolVersion, accept_);
    library.Find("rdma_reject", kSymbolVersion, reject_);
    if (library.missing().empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(kLibrary, " has no function ", library.missing(),
                     "; install rdma-core's librdmacm in the image"));
  }

  rdma_event_channel* CreateEventChannel() const override { return create_event_channel_(); }
  void DestroyEventChannel(rdma_event_channel* channel) const override {
    destroy_event_channel_(channel);
  }
  int GetEvent(rdma_event_channel* channel, rdma_cm_event** event) const override {
    return get_event_(channel, event);
  }
  int AckEvent(rdma_cm_event* event) const override { return ack_event_(event); }
  int CreateId(rdma_event_channel* channel, rdma_cm_id** id) const override {
    return create_id_(channel, id, nullptr, RDMA_PS_TCP);
  }
  int DestroyId(rdma_cm_id* id) const override { return destroy_id_(id); }
  int BindAddr(rdma_cm_id* id, sockaddr* address) const override { return bind_addr_(id, address); }
  int Listen(rdma_cm_id* id, int backlog) const override { return listen_(id, backlog); }
  int ResolveAddr(rdma_cm_id* id, sockaddr* from, sockaddr* to, int timeout_ms) const override {
    return resolve_addr_(id, from, to, timeout_ms);
  }
  int ResolveRoute(rdma_cm_id* id, int timeout_ms) const override {
    return resolve_route_(id, timeout_ms);
  }
  int Connect(rdma_cm_id* id, rdma_conn_param* parameters) const override {
    return connect_(id, parameters);
  }
  int Accept(rdma_cm_id* id, rdma_conn_param* parameters) const override {
    return accept_(id, parameters);
  }
  int Reject(rdma_cm_id* id) const override { return reject_(id, nullptr, 0); }
  std::vector<net::IpAddress> AddressesOfMac(const net::MacAddress& mac) const override {
    return net::AddressesOfMac(mac);
  }

 private:
  decltype(rdma_create_event_channel)* create_event_channel_ = nullptr;
  decltype(rdma_destroy_event_channel)* destroy_event_channel_ = nullptr;
  decltype(rdma_get_cm_event)* get_event_ = nullptr;
  decltype(rdma_ack_cm_event)* ack_event_ = nullptr;
  decltype(rdma_create_id)* create_id_ = nullptr;
  decltype(rdma_destroy_id)* destroy_id_ = nullptr;
  decltype(rdma_bind_addr)* bind_addr_ = nullptr;
  decltype(rdma_listen)* listen_ = nullptr;
  decltype(rdma_resolve_addr)* resolve_addr_ = nullptr;
  decltype(rdma_resolve_route)* resolve_route_ = nullptr;
  decltype(rdma_connect)* connect_ = nullptr;
  decltype(rdma_accept)* accept_ = nullptr;
  decltype(rdma_reject)* reject_ = nullptr;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const CmApi>> LoadCmApi() {
  SharedLibrary library(kLibrary);
  if (!library.opened()) {
    return absl::NotFoundError(
        absl::StrCat("cannot load ", kLibrary, ": ", library.trouble(),
                     "; install it (Debian: librdmacm1, Red Hat: librdmacm) in the image to use "
                     "iWARP"));
  }
  auto api = std::make_shared<LibraryCmApi>();
  if (absl::Status status = api->Resolve(library); !status.ok()) return status;
  return api;
}

}  // namespace railhead::transport::verbs
