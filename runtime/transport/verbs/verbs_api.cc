// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/verbs_api.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "runtime/transport/verbs/shared_library.h"

namespace railhead::transport::verbs {
namespace {

constexpr char kLibrary[] = "libibverbs.so.1";

// The symbol's version fixes the function that is called: the unversioned name could resolve to the
// ABI of 2006 on some C libraries.
constexpr char kBaseVersion[] = "IBVERBS_1.1";
constexpr char kChannelVersion[] = "IBVERBS_1.0";
constexpr char kRegistrationVersion[] = "IBVERBS_1.8";
constexpr char kGidTableVersion[] = "IBVERBS_1.11";
constexpr char kDmabufVersion[] = "IBVERBS_1.12";

class LibraryVerbsApi final : public VerbsApi {
 public:
  // Resolves every function; names the first that the library lacks.
  absl::Status Resolve(SharedLibrary& library) {
    library.Find("ibv_get_device_list", kBaseVersion, get_device_list_);
    library.Find("ibv_free_device_list", kBaseVersion, free_device_list_);
    library.Find("ibv_get_device_name", kBaseVersion, get_device_name_);
    library.Find("ibv_open_device", kBaseVersion, open_device_);
    library.Find("ibv_close_device", kBaseVersion, close_device_);
    library.Find("ibv_query_device", kBaseVersion, query_device_);
    library.Find("ibv_query_port", kBaseVersion, query_port_);
    library.Find("ibv_query_pkey", kBaseVersion, query_pkey_);
    library.Find("_ibv_query_gid_table", kGidTableVersion, query_gid_table_);
    library.Find("ibv_get_async_event", kBaseVersion, get_async_event_);
    library.Find("ibv_ack_async_event", kBaseVersion, ack_async_event_);
    library.Find("ibv_alloc_pd", kBaseVersion, alloc_pd_);
    library.Find("ibv_dealloc_pd", kBaseVersion, dealloc_pd_);
    library.Find("ibv_reg_mr_iova2", kRegistrationVersion, reg_mr_);
    library.FindOptional("ibv_reg_dmabuf_mr", kDmabufVersion, reg_dmabuf_mr_);
    library.Find("ibv_dereg_mr", kBaseVersion, dereg_mr_);
    library.Find("ibv_create_comp_channel", kChannelVersion, create_comp_channel_);
    library.Find("ibv_destroy_comp_channel", kChannelVersion, destroy_comp_channel_);
    library.Find("ibv_create_cq", kBaseVersion, create_cq_);
    library.Find("ibv_destroy_cq", kBaseVersion, destroy_cq_);
    library.Find("ibv_get_cq_event", kBaseVersion, get_cq_event_);
    library.Find("ibv_ack_cq_events", kBaseVersion, ack_cq_events_);
    library.Find("ibv_create_qp", kBaseVersion, create_qp_);
    library.Find("ibv_modify_qp", kBaseVersion, modify_qp_);
    library.Find("ibv_destroy_qp", kBaseVersion, destroy_qp_);
    library.Find("ibv_wc_status_str", kBaseVersion, wc_status_str_);
    library.Find("ibv_fork_init", kBaseVersion, fork_init_);
    if (library.missing().empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(kLibrary, " has no function ", library.missing(),
                     ": it is older than rdma-core 33; install a newer libibverbs in the image"));
  }

  // The job's processes fork (data loaders do). Kernels since 5.12 copy pinned pages for the child
  // and this call costs nothing there; on older ones it keeps the child from taking over pages that
  // the NIC writes to. It can fail only if other code in the process registered memory first, which
  // has then made that choice for the whole process: nothing to do about it here.
  void MakeForkSafe() const { static_cast<void>(fork_init_()); }

  ibv_device** GetDeviceList(int* count) const override { return get_device_list_(count); }
  void FreeDeviceList(ibv_device** list) const override { free_device_list_(list); }
  const char* GetDeviceName(ibv_device* device) const override { return get_device_name_(device); }
  ibv_context* OpenDevice(ibv_device* device) const override { return open_device_(device); }
  int CloseDevice(ibv_context* context) const override { return close_device_(context); }
  int QueryDevice(ibv_context* context, ibv_device_attr* attributes) const override {
    return query_device_(context, attributes);
  }
  int QueryPort(ibv_context* context, uint8_t port, ibv_port_attr* attributes) const override {
    // Drivers fill the fields that joined ibv_port_attr later through the context's extended table;
    // the library's own symbol knows only the struct as it was at first.
    std::memset(attributes, 0, sizeof(*attributes));
    verbs_context* const extended = verbs_get_ctx(context);
    constexpr size_t kSizeWithQueryPort =
        sizeof(verbs_context) - offsetof(verbs_context, query_port);
    if (extended != nullptr && extended->sz >= kSizeWithQueryPort &&
        extended->query_port != nullptr) {
      return extended->query_port(context, port, attributes, sizeof(*attributes));
    }
    return query_port_(context, port, attributes);
  }
  std::vector<net::IpAddress> OwnAddresses() const override { return net::OwnAddresses(); }
  std::string GidInterface(ibv_context* context, uint8_t port, uint32_t index) const override {
    constexpr size_t kMostBytes = 4096;  // a page, as sysfs reports for each file
    const std::string path =
        absl::StrCat(context->device->ibdev_path, "/ports/", int{port}, "/gid_attrs/ndevs/", index);
    const absl::StatusOr<std::string> text = ReadWholeFile(path, kMostBytes);
    return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : "";
  }
  int QueryPkey(ibv_context* context, uint8_t port, int index, uint16_t& pkey) const override {
    // It reads a file, and does not always set errno if that fails.
    errno = EIO;
    uint16_t big_endian = 0;
    if (query_pkey_(context, port, index, &big_endian) != 0) return errno;
    pkey = ntohs(big_endian);
    return 0;
  }
  ssize_t QueryGidTable(ibv_context* context, absl::Span<ibv_gid_entry> entries) const override {
    return query_gid_table_(context, entries.data(), entries.size(), 0, sizeof(ibv_gid_entry));
  }
  int GetAsyncEvent(ibv_context* context, ibv_async_event* event) const override {
    return get_async_event_(context, event);
  }
  void AckAsyncEvent(ibv_async_event* event) const override { ack_async_event_(event); }
  ibv_pd* AllocPd(ibv_context* context) const override { return alloc_pd_(context); }
  int DeallocPd(ibv_pd* domain) const override { return dealloc_pd_(domain); }
  ibv_mr* RegMr(ibv_pd* domain, void* address, size_t length, int access) const override {
    // As the header's ibv_reg_mr does for flags that may be left out.
    return reg_mr_(domain, address, length, reinterpret_cast<uintptr_t>(address),
                   static_cast<unsigned>(access));
  }
  ibv_mr* RegDmabufMr(ibv_pd* domain, uint64_t offset, size_t length, uint64_t address, int fd,
                      int access) const override {
    if (reg_dmabuf_mr_ == nullptr) {
      errno = EOPNOTSUPP;
      return nullptr;
    }
    return reg_dmabuf_mr_(domain, offset, length, address, fd, access);
  }
  int DeregMr(ibv_mr* region) const override { return dereg_mr_(region); }
  ibv_comp_channel* CreateCompChannel(ibv_context* context) const override {
    return create_comp_channel_(context);
  }
  int DestroyCompChannel(ibv_comp_channel* channel) const override {
    return destroy_comp_channel_(channel);
  }
  ibv_cq* CreateCq(ibv_context* context, int entries, ibv_comp_channel* channel) const override {
    return create_cq_(context, entries, nullptr, channel, 0);
  }
  int DestroyCq(ibv_cq* queue) const override { return destroy_cq_(queue); }
  int GetCqEvent(ibv_comp_channel* channel, ibv_cq** queue, void** cookie) const override {
    return get_cq_event_(channel, queue, cookie);
  }
  void AckCqEvents(ibv_cq* queue, unsigned count) const override { ack_cq_events_(queue, count); }
  ibv_qp* CreateQp(ibv_pd* domain, ibv_qp_init_attr* attributes) const override {
    return create_qp_(domain, attributes);
  }
  int ModifyQp(ibv_qp* pair, ibv_qp_attr* attributes, int mask) const override {
    return modify_qp_(pair, attributes, mask);
  }
  int DestroyQp(ibv_qp* pair) const override { return destroy_qp_(pair); }
  const char* WcStatusText(ibv_wc_status status) const override { return wc_status_str_(status); }
  absl::StatusOr<std::shared_ptr<const CmApi>> ConnectionManager() const override {
    return LoadCmApi();
  }

 private:
  ibv_device** (*get_device_list_)(int*) = nullptr;
  void (*free_device_list_)(ibv_device**) = nullptr;
  const char* (*get_device_name_)(ibv_device*) = nullptr;
  ibv_context* (*open_device_)(ibv_device*) = nullptr;
  int (*close_device_)(ibv_context*) = nullptr;
  int (*query_device_)(ibv_context*, ibv_device_attr*) = nullptr;
  // The symbol takes the older, shorter struct, which is a prefix of ibv_port_attr.
  int (*query_port_)(ibv_context*, uint8_t, void*) = nullptr;
  int (*query_pkey_)(ibv_context*, uint8_t, int, uint16_t*) = nullptr;
  ssize_t (*query_gid_table_)(ibv_context*, ibv_gid_entry*, size_t, uint32_t, size_t) = nullptr;
  int (*get_async_event_)(ibv_context*, ibv_async_event*) = nullptr;
  void (*ack_async_event_)(ibv_async_event*) = nullptr;
  ibv_pd* (*alloc_pd_)(ibv_context*) = nullptr;
  int (*dealloc_pd_)(ibv_pd*) = nullptr;
  ibv_mr* (*reg_mr_)(ibv_pd*, void*, size_t, uint64_t, unsigned) = nullptr;
  ibv_mr* (*reg_dmabuf_mr_)(ibv_pd*, uint64_t, size_t, uint64_t, int, int) = nullptr;
  int (*dereg_mr_)(ibv_mr*) = nullptr;
  ibv_comp_channel* (*create_comp_channel_)(ibv_context*) = nullptr;
  int (*destroy_comp_channel_)(ibv_comp_channel*) = nullptr;
  ibv_cq* (*create_cq_)(ibv_context*, int, void*, ibv_comp_channel*, int) = nullptr;
  int (*destroy_cq_)(ibv_cq*) = nullptr;
  int (*get_cq_event_)(ibv_comp_channel*, ibv_cq**, void**) = nullptr;
  void (*ack_cq_events_)(ibv_cq*, unsigned) = nullptr;
  ibv_qp* (*create_qp_)(ibv_pd*, ibv_qp_init_attr*) = nullptr;
  int (*modify_qp_)(ibv_qp*, ibv_qp_attr*, int) = nullptr;
  int (*destroy_qp_)(ibv_qp*) = nullptr;
  const char* (*wc_status_str_)(ibv_wc_status) = nullptr;
  int (*fork_init_)() = nullptr;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const VerbsApi>> LoadVerbsApi() {
  SharedLibrary library(kLibrary);
  if (!library.opened()) {
    return absl::NotFoundError(
        absl::StrCat("cannot load ", kLibrary, ": ", library.trouble(),
                     "; install libibverbs and its drivers (Debian: ibverbs-providers, Red Hat: "
                     "libibverbs) in the image to use RDMA"));
  }
  auto api = std::make_shared<LibraryVerbsApi>();
  if (absl::Status status = api->Resolve(library); !status.ok()) return status;
  api->MakeForkSafe();
  return api;
}

}  // namespace railhead::transport::verbs
