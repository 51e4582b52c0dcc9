// SPDX-License-Identifier: Apache-2.0
//
// Exported tables: every version of NCCL's network interface, over one implementation.
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "plugins/nccl/abi/net.h"
#include "plugins/nccl/connection.h"
#include "plugins/nccl/listener.h"
#include "plugins/nccl/local_rails.h"
#include "plugins/nccl/memory.h"
#include "plugins/nccl/name.h"
#include "runtime/base/caught.h"
#include "runtime/base/now.h"
#include "runtime/comm/api/handle.h"
#include "runtime/device/memory.h"
#include "runtime/net/fd.h"

namespace railhead::nccl {
namespace {

using abi::Result;

// Limits reported to NCCL.
constexpr int kMostConnections = 1 << 16;
constexpr size_t kLargestMessage = size_t{1} << 30U;
// A rail's number without a meaning to NCCL.
constexpr int16_t kUndefined = -1;
// When a connection is closed, its last messages may still be on their way.
constexpr absl::Duration kSettling = absl::Seconds(2);

// State shared by the communicators of a process. Kept until the process ends, because older
// versions of NCCL do not call finalize.
struct Process {
  std::mutex mutex;
  std::atomic<abi::LogFunction> log = nullptr;
  std::unique_ptr<LocalRails> rails;
};

Process& TheProcess() {
  static auto* const process = new Process;
  return *process;
}

void Warn(const absl::Status& status) {
  const abi::LogFunction log = TheProcess().log.load();
  if (log == nullptr) return;
  log(abi::kWarn, abi::kNet, __FILE__, __LINE__, "NET/Railhead: %s",
      std::string(status.message()).c_str());
}

Result Failed(const absl::Status& status) {
  Warn(status);
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return abi::kInvalidUsage;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
      return abi::kRemoteError;
    case absl::StatusCode::kInternal:
      return abi::kInternalError;
    default:
      return abi::kSystemError;
  }
}

// Runs a call, whose exceptions must not reach NCCL.
template <class Body>
Result Guarded(Body body) {
  const absl::Status status =
      Caught([&]() -> absl::Status { return body(); }, [](const absl::Status& why) { return why; });
  return status.ok() ? abi::kSuccess : Failed(status);
}

// A connection, of either side.
struct Comm {
  std::unique_ptr<Connection> connection;
  bool failed = false;  // and the reason was logged
};
struct OpenRequest {
  Comm* comm = nullptr;
  Connection::Request* request = nullptr;  // null: it was done from the start
};

Result Init(abi::LogFunction log) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  process.log = log;
  if (process.rails != nullptr) return abi::kSuccess;
  return Guarded([&]() -> absl::Status {
    absl::StatusOr<comm::CommunicatorOptions> options = comm::ReadOptions({});
    if (!options.ok()) return options.status();
    absl::StatusOr<std::unique_ptr<LocalRails>> rails = LocalRails::Open(*std::move(options));
    if (!rails.ok()) return rails.status();
    process.rails = *std::move(rails);
    for (const Device& device : process.rails->devices()) {
      if (log == nullptr) continue;
      log(abi::kInfo, abi::kInit | abi::kNet, __FILE__, __LINE__,
          "NET/Railhead: device %s, rail %d, %d Mbit/s", device.name.c_str(), device.rail,
          device.speed);
    }
    return absl::OkStatus();
  });
}

const LocalRails* Rails() { return TheProcess().rails.get(); }

Result Devices(int* count) {
  const LocalRails* const rails = Rails();
  *count = rails == nullptr ? 0 : static_cast<int>(rails->devices().size());
  return abi::kSuccess;
}

// Fills the fields that a version has.
template <class Properties>
Result GetProperties(int number, Properties* properties) {
  const LocalRails* const rails = Rails();
  if (rails == nullptr || number < 0 || static_cast<size_t>(number) >= rails->devices().size()) {
    return Failed(absl::InvalidArgumentError(absl::StrCat("there is no device ", number)));
  }
  const Device& device = rails->devices()[static_cast<size_t>(number)];
  *properties = {};
  // NCCL does not write to them.
  properties->name = const_cast<char*>(device.name.c_str());
  properties->pci_path =
      device.pci_path.empty() ? nullptr : const_cast<char*>(device.pci_path.c_str());
  properties->guid = device.guid;
  const GpuMemory& gpu = rails->gpu_memory();
  properties->memory =
      abi::kHostMemory | (gpu.peermem ? abi::kGpuMemory : 0) | (gpu.dma_buf ? abi::kDmaBuf : 0);
  properties->speed = device.speed;
  properties->port = device.port;
  properties->max_comms = kMostConnections;
  properties->max_receives = kMostReceives;
  if constexpr (requires { properties->parts; }) {
    properties->parts.count = 1;
    properties->parts.devices[0] = number;
    properties->max_p2p_bytes = kLargestMessage;
    properties->max_collective_bytes = kLargestMessage;
  }
  if constexpr (requires { properties->max_requests_of_group; }) {
    properties->max_requests_of_group = 1;
  }
  if constexpr (requires { properties->rail; }) {
    properties->rail = static_cast<int16_t>(device.rail);
    properties->plane = kUndefined;
  }
  return abi::kSuccess;
}

Result Listen(int /*device*/, void* handle, void** listen_comm) {
  *listen_comm = nullptr;
  return Guarded([&]() -> absl::Status {
    const LocalRails* const rails = Rails();
    if (rails == nullptr) return absl::FailedPreconditionError("listen before init");
    absl::StatusOr<std::unique_ptr<Listener>> listener = Listener::Start(*rails);
    if (!listener.ok()) return listener.status();
    std::memcpy(handle, (*listener)->handle().data(), abi::kHandleBytes);
    *listen_comm = listener->release();
    return absl::OkStatus();
  });
}

// The rail of a device; nullopt: there is no such device.
std::optional<int> RailOf(const LocalRails& rails, int device) {
  if (device < 0 || static_cast<size_t>(device) >= rails.devices().size()) return std::nullopt;
  return rails.devices()[static_cast<size_t>(device)].rail;
}

Result Connect(int device, void* handle, void** send_comm, void** device_handle) {
  *send_comm = nullptr;
  if (device_handle != nullptr) *device_handle = nullptr;
  return Guarded([&]() -> absl::Status {
    const LocalRails* const rails = Rails();
    if (rails == nullptr) return absl::FailedPreconditionError("connect before init");
    absl::StatusOr<std::unique_ptr<Connection>> connection = nccl::Connect(
        *rails, {static_cast<const char*>(handle), abi::kHandleBytes}, RailOf(*rails, device));
    if (!connection.ok()) return connection.status();
    *send_comm = new Comm{*std::move(connection)};
    return absl::OkStatus();
  });
}

Result Accept(void* listen_comm, void** receive_comm, void** device_handle) {
  *receive_comm = nullptr;
  if (device_handle != nullptr) *device_handle = nullptr;
  return Guarded([&]() -> absl::Status {
    absl::StatusOr<std::unique_ptr<Connection>> connection =
        static_cast<Listener*>(listen_comm)->Accept();
    if (!connection.ok()) return connection.status();
    if (*connection != nullptr) *receive_comm = new Comm{*std::move(connection)};
    return absl::OkStatus();
  });
}

Result RegisterMemory(void* comm, void* data, size_t size, int kind, const device::DmaBuf* buffer,
                      void** memory) {
  *memory = nullptr;
  return Guarded([&]() -> absl::Status {
    const GpuMemory& gpu = Rails()->gpu_memory();
    const bool on_gpu = kind == abi::kGpuMemory;
    if (kind != abi::kHostMemory && (!on_gpu || !gpu.why_not.empty())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "memory of kind ", kind, " cannot be registered: only host memory (1)",
          on_gpu ? absl::StrCat(" can, because ", gpu.why_not) : " and GPU memory (2)"));
    }
    absl::StatusOr<std::unique_ptr<Memory>> registered =
        static_cast<Comm*>(comm)->connection->Register({static_cast<std::byte*>(data), size},
                                                       on_gpu, buffer);
    if (!registered.ok()) return registered.status();
    *memory = registered->release();
    return absl::OkStatus();
  });
}

Result Deregister(void* /*comm*/, void* memory) {
  delete static_cast<Memory*>(memory);
  return abi::kSuccess;
}

// Errors of a connection are logged once: NCCL asks each of its requests.
Result FailedOn(Comm& comm, const absl::Status& status) {
  const bool told = std::exchange(comm.failed, true);
  if (!told) Warn(status);
  return absl::IsInternal(status) ? abi::kInternalError : abi::kRemoteError;
}

template <class Post>
Result Start(Comm& comm, void** request, Post post) {
  *request = nullptr;
  absl::StatusOr<Connection::Request*> posted = nullptr;
  const Result result = Guarded([&]() -> absl::Status {
    posted = post();
    if (posted.ok()) *request = new OpenRequest{&comm, *posted};
    return absl::OkStatus();
  });
  return posted.ok() ? result : FailedOn(comm, posted.status());
}

// Tags are compared only: NCCL's are ranks, and negative ones would mean any.
int TagOf(int tag) { return std::min(tag & 0x7fffffff, kLargestTag); }

Result Send(void* send_comm, void* data, size_t size, int tag, void* memory, void** request) {
  Comm& comm = *static_cast<Comm*>(send_comm);
  return Start(comm, request, [&] {
    return comm.connection->Send({static_cast<const std::byte*>(data), size}, TagOf(tag),
                                 static_cast<const Memory*>(memory));
  });
}

template <class Size>
Result Receive(void* receive_comm, int count, void** data, const Size* sizes, const int* tags,
               void** memory, void** request) {
  Comm& comm = *static_cast<Comm*>(receive_comm);
  if (count < 1 || count > kMostReceives) {
    return Failed(absl::InvalidArgumentError(
        absl::StrCat("a group of ", count, " receives; at most ", kMostReceives, " are possible")));
  }
  return Start(comm, request, [&] {
    std::array<Connection::Slot, kMostReceives> group;
    for (int i = 0; i < count; ++i) {
      group[static_cast<size_t>(i)] = {
          static_cast<std::byte*>(data[i]), static_cast<size_t>(sizes[i]), TagOf(tags[i]),
          memory == nullptr ? nullptr : static_cast<const Memory*>(memory[i])};
    }
    return comm.connection->Receive(absl::MakeSpan(group).first(static_cast<size_t>(count)));
  });
}

// Host memory needs no flush. That of a GPU is flushed when this returns: a read of one address
// follows all earlier writes of a NIC.
Result Flush(void* receive_comm, int count, void** data, const int* sizes, void** memory,
             void** request) {
  *request = nullptr;
  Comm& comm = *static_cast<Comm*>(receive_comm);
  return Guarded([&]() -> absl::Status {
    for (int i = count - 1; i >= 0; --i) {
      const auto* const registered = static_cast<const Memory*>(memory[i]);
      if (sizes[i] == 0 || registered == nullptr || !registered->on_device()) continue;
      return comm.connection->Flush(*registered, static_cast<const std::byte*>(data[i]));
    }
    return absl::OkStatus();
  });
}

Result Test(void* request, int* done, int* sizes) {
  *done = 0;
  auto* const open = static_cast<OpenRequest*>(request);
  absl::StatusOr<bool> tested = false;
  const Result result = Guarded([&]() -> absl::Status {
    tested = open->comm->connection->Test(open->request, sizes);
    return absl::OkStatus();
  });
  if (!tested.ok()) return FailedOn(*open->comm, tested.status());
  if (result != abi::kSuccess || !*tested) return result;
  *done = 1;
  delete open;
  return abi::kSuccess;
}

Result Close(void* closed) {
  const std::unique_ptr<Comm> comm(static_cast<Comm*>(closed));
  if (comm == nullptr) return abi::kSuccess;
  return Guarded([&]() -> absl::Status {
    comm->connection->Settle(MonotonicNow() + kSettling);
    return absl::OkStatus();
  });
}

Result CloseListen(void* listen_comm) {
  delete static_cast<Listener*>(listen_comm);
  return abi::kSuccess;
}

// Below: the functions of each version, where they differ.

Result InitV10(abi::LogFunction log, abi::ProfileFunction /*profile*/) { return Init(log); }
Result InitV11(void** context, uint64_t /*comm_id*/, abi::CommConfig* /*config*/,
               abi::LogFunction log, abi::ProfileFunction /*profile*/) {
  *context = &TheProcess();
  return Init(log);
}
Result ListenV11(void* /*context*/, int device, void* handle, void** listen_comm) {
  return Listen(device, handle, listen_comm);
}
Result ConnectV6(int device, void* handle, void** send_comm) {
  return Connect(device, handle, send_comm, nullptr);
}
Result ConnectV10(int device, abi::CommConfig* /*config*/, void* handle, void** send_comm,
                  void** device_handle) {
  return Connect(device, handle, send_comm, device_handle);
}
Result ConnectV11(void* /*context*/, int device, void* handle, void** send_comm,
                  void** device_handle) {
  return Connect(device, handle, send_comm, device_handle);
}
Result AcceptV6(void* listen_comm, void** receive_comm) {
  return Accept(listen_comm, receive_comm, nullptr);
}
Result RegisterV6(void* comm, void* data, int size, int kind, void** memory) {
  return RegisterMemory(comm, data, static_cast<size_t>(size), kind, nullptr, memory);
}
Result Register(void* comm, void* data, size_t size, int kind, void** memory) {
  return RegisterMemory(comm, data, size, kind, nullptr, memory);
}
Result RegisterDmaBuf(void* comm, void* data, size_t size, int kind, uint64_t offset, int fd,
                      void** memory) {
  // The descriptor stays NCCL's.
  device::DmaBuf buffer;
  buffer.fd = net::Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  buffer.offset = offset;
  return RegisterMemory(comm, data, size, kind, &buffer, memory);
}
Result SendV6(void* comm, void* data, int size, int tag, void* memory, void** request) {
  return Send(comm, data, static_cast<size_t>(size), tag, memory, request);
}
Result SendV9(void* comm, void* data, size_t size, int tag, void* memory, void** request) {
  return Send(comm, data, size, tag, memory, request);
}
Result SendV10(void* comm, void* data, size_t size, int tag, void* memory, void* /*profile*/,
               void** request) {
  return Send(comm, data, size, tag, memory, request);
}
Result ReceiveV6(void* comm, int count, void** data, int* sizes, int* tags, void** memory,
                 void** request) {
  return Receive(comm, count, data, sizes, tags, memory, request);
}
Result ReceiveV9(void* comm, int count, void** data, size_t* sizes, int* tags, void** memory,
                 void** request) {
  return Receive(comm, count, data, sizes, tags, memory, request);
}
Result ReceiveV10(void* comm, int count, void** data, size_t* sizes, int* tags, void** memory,
                  void** /*profiles*/, void** request) {
  return Receive(comm, count, data, sizes, tags, memory, request);
}
Result FlushAny(void* comm, int count, void** data, int* sizes, void** memory, void** request) {
  return Flush(comm, count, data, sizes, memory, request);
}
Result Finalize(void* /*context*/) { return abi::kSuccess; }
Result SetNetAttributes(void* /*context*/, void* /*attributes*/) { return abi::kSuccess; }

template <class Table>
constexpr Table TableV11() noexcept {
  return {.name = kName,
          .init = InitV11,
          .devices = Devices,
          .get_properties = GetProperties,
          .listen = ListenV11,
          .connect = ConnectV11,
          .accept = Accept,
          .register_memory = Register,
          .register_dma_buf = RegisterDmaBuf,
          .deregister = Deregister,
          .isend = SendV10,
          .irecv = ReceiveV10,
          .iflush = FlushAny,
          .test = Test,
          .close_send = Close,
          .close_receive = Close,
          .close_listen = CloseListen,
          .get_device_memory = nullptr,
          .irecv_consumed = nullptr,
          .make_virtual_device = nullptr,
          .finalize = Finalize,
          .set_net_attributes = SetNetAttributes};
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): these names are NCCL's.
#define RAILHEAD_EXPORT extern "C" __attribute__((visibility("default")))

RAILHEAD_EXPORT const abi::NetV6 ncclNetPlugin_v6 = {.name = kName,
                                                     .init = Init,
                                                     .devices = Devices,
                                                     .get_properties = GetProperties,
                                                     .listen = Listen,
                                                     .connect = ConnectV6,
                                                     .accept = AcceptV6,
                                                     .register_memory = RegisterV6,
                                                     .register_dma_buf = RegisterDmaBuf,
                                                     .deregister = Deregister,
                                                     .isend = SendV6,
                                                     .irecv = ReceiveV6,
                                                     .iflush = FlushAny,
                                                     .test = Test,
                                                     .close_send = Close,
                                                     .close_receive = Close,
                                                     .close_listen = CloseListen};
RAILHEAD_EXPORT const abi::NetV8 ncclNetPlugin_v8 = {.name = kName,
                                                     .init = Init,
                                                     .devices = Devices,
                                                     .get_properties = GetProperties,
                                                     .listen = Listen,
                                                     .connect = Connect,
                                                     .accept = Accept,
                                                     .register_memory = Register,
                                                     .register_dma_buf = RegisterDmaBuf,
                                                     .deregister = Deregister,
                                                     .isend = SendV6,
                                                     .irecv = ReceiveV6,
                                                     .iflush = FlushAny,
                                                     .test = Test,
                                                     .close_send = Close,
                                                     .close_receive = Close,
                                                     .close_listen = CloseListen,
                                                     .get_device_memory = nullptr,
                                                     .irecv_consumed = nullptr};
RAILHEAD_EXPORT const abi::NetV9 ncclNetPlugin_v9 = {.name = kName,
                                                     .init = Init,
                                                     .devices = Devices,
                                                     .get_properties = GetProperties,
                                                     .listen = Listen,
                                                     .connect = Connect,
                                                     .accept = Accept,
                                                     .register_memory = Register,
                                                     .register_dma_buf = RegisterDmaBuf,
                                                     .deregister = Deregister,
                                                     .isend = SendV9,
                                                     .irecv = ReceiveV9,
                                                     .iflush = FlushAny,
                                                     .test = Test,
                                                     .close_send = Close,
                                                     .close_receive = Close,
                                                     .close_listen = CloseListen,
                                                     .get_device_memory = nullptr,
                                                     .irecv_consumed = nullptr,
                                                     .make_virtual_device = nullptr};
RAILHEAD_EXPORT const abi::NetV10 ncclNetPlugin_v10 = {.name = kName,
                                                       .init = InitV10,
                                                       .devices = Devices,
                                                       .get_properties = GetProperties,
                                                       .listen = Listen,
                                                       .connect = ConnectV10,
                                                       .accept = Accept,
                                                       .register_memory = Register,
                                                       .register_dma_buf = RegisterDmaBuf,
                                                       .deregister = Deregister,
                                                       .isend = SendV10,
                                                       .irecv = ReceiveV10,
                                                       .iflush = FlushAny,
                                                       .test = Test,
                                                       .close_send = Close,
                                                       .close_receive = Close,
                                                       .close_listen = CloseListen,
                                                       .get_device_memory = nullptr,
                                                       .irecv_consumed = nullptr,
                                                       .make_virtual_device = nullptr};
RAILHEAD_EXPORT constinit const abi::NetV11Table ncclNetPlugin_v11 = TableV11<abi::NetV11Table>();
RAILHEAD_EXPORT constinit const abi::NetV12Table ncclNetPlugin_v12 = TableV11<abi::NetV12Table>();
// NOLINTEND(readability-identifier-naming)

}  // namespace railhead::nccl
