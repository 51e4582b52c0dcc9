// SPDX-License-Identifier: Apache-2.0
//
// NCCL's network plugin interface, versions 6 and 8 to 12: own declarations of the tables that NCCL
// looks up by name (`ncclNetPlugin_v12`), written from the published layouts. Their sizes and
// offsets are asserted in layout_test.cc. Names follow NCCL's, so that its documentation applies.
//
// All functions return a Result. Listen, connect and accept do not wait: they return kSuccess and
// no communicator, and NCCL asks again. `request` may be null after isend and irecv, too.
#ifndef RAILHEAD_PLUGINS_NCCL_ABI_NET_H_
#define RAILHEAD_PLUGINS_NCCL_ABI_NET_H_

#include <cstddef>
#include <cstdint>

namespace railhead::nccl::abi {

// ncclResult_t.
enum Result : int {
  kSuccess = 0,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidUsage = 5,
  kRemoteError = 6,
};

// Levels of the logger, and subsystems.
enum LogLevel : int { kWarn = 2, kInfo = 3 };
// NOLINTBEGIN(google-runtime-int): NCCL's type
inline constexpr unsigned long kInit = 0x1;
inline constexpr unsigned long kNet = 0x10;
inline constexpr unsigned long kTuning = 0x40;
inline constexpr unsigned long kEnv = 0x80;
// NOLINTEND(google-runtime-int)
// NOLINTNEXTLINE(google-runtime-int)
using LogFunction = void (*)(int level, unsigned long flags, const char* file, int line,
                             const char* format, ...);
using ProfileFunction = Result (*)(void** handle, int type, void* parent, int64_t plugin,
                                   void* data);

// Bytes of a handle, which a receiver makes and NCCL carries to the sender.
inline constexpr size_t kHandleBytes = 128;

// Kinds of memory (NCCL_PTR_HOST, NCCL_PTR_CUDA); in the properties of a device also whether memory
// of a GPU may be given as a dma-buf (NCCL_PTR_DMABUF).
inline constexpr int kHostMemory = 1;
inline constexpr int kGpuMemory = 2;
inline constexpr int kDmaBuf = 4;

template <int kDevices>
struct VirtualDevice {
  int count;
  int devices[kDevices];
};

// Each version's properties of a device.
struct PropertiesV6 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int memory;  // kinds of memory, or-ed
  int speed;   // Mbit/s
  int port;
  float latency;  // us
  int max_comms;
  int max_receives;  // of a group
};

struct PropertiesV8 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int memory;
  int registers_globally;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
};

// Versions 9 and 10.
struct PropertiesV9 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int memory;
  int registers_globally;
  int forces_flush;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
  VirtualDevice<4> parts;
  size_t max_p2p_bytes;
  size_t max_collective_bytes;
};

struct PropertiesV11 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int memory;
  int registers_globally;
  int forces_flush;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
  VirtualDevice<4> parts;
  size_t max_p2p_bytes;
  size_t max_collective_bytes;
  int max_requests_of_group;
};

struct PropertiesV12 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int memory;
  int registers_globally;
  int forces_flush;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
  VirtualDevice<8> parts;
  size_t max_p2p_bytes;
  size_t max_collective_bytes;
  int max_requests_of_group;
  int16_t rail;
  int16_t plane;
};

struct CommConfig {
  int traffic_class;
};

struct NetV6 {
  const char* name;
  Result (*init)(LogFunction log);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV6* properties);
  Result (*listen)(int device, void* handle, void** listen_comm);
  Result (*connect)(int device, void* handle, void** send_comm);
  Result (*accept)(void* listen_comm, void** receive_comm);
  Result (*register_memory)(void* comm, void* data, int size, int kind, void** memory);
  Result (*register_dma_buf)(void* comm, void* data, size_t size, int kind, uint64_t offset, int fd,
                             void** memory);
  Result (*deregister)(void* comm, void* memory);
  Result (*isend)(void* send_comm, void* data, int size, int tag, void* memory, void** request);
  Result (*irecv)(void* receive_comm, int count, void** data, int* sizes, int* tags, void** memory,
                  void** request);
  Result (*iflush)(void* receive_comm, int count, void** data, int* sizes, void** memory,
                   void** request);
  Result (*test)(void* request, int* done, int* sizes);
  Result (*close_send)(void* comm);
  Result (*close_receive)(void* comm);
  Result (*close_listen)(void* comm);
};

struct NetV8 {
  const char* name;
  Result (*init)(LogFunction log);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV8* properties);
  Result (*listen)(int device, void* handle, void** listen_comm);
  Result (*connect)(int device, void* handle, void** send_comm, void** device_handle);
  Result (*accept)(void* listen_comm, void** receive_comm, void** device_handle);
  Result (*register_memory)(void* comm, void* data, size_t size, int kind, void** memory);
  Result (*register_dma_buf)(void* comm, void* data, size_t size, int kind, uint64_t offset, int fd,
                             void** memory);
  Result (*deregister)(void* comm, void* memory);
  Result (*isend)(void* send_comm, void* data, int size, int tag, void* memory, void** request);
  Result (*irecv)(void* receive_comm, int count, void** data, int* sizes, int* tags, void** memory,
                  void** request);
  Result (*iflush)(void* receive_comm, int count, void** data, int* sizes, void** memory,
                   void** request);
  Result (*test)(void* request, int* done, int* sizes);
  Result (*close_send)(void* comm);
  Result (*close_receive)(void* comm);
  Result (*close_listen)(void* comm);
  Result (*get_device_memory)(void* comm, void* memory, void** device_memory);
  Result (*irecv_consumed)(void* receive_comm, int count, void* request);
};

struct NetV9 {
  const char* name;
  Result (*init)(LogFunction log);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV9* properties);
  Result (*listen)(int device, void* handle, void** listen_comm);
  Result (*connect)(int device, void* handle, void** send_comm, void** device_handle);
  Result (*accept)(void* listen_comm, void** receive_comm, void** device_handle);
  Result (*register_memory)(void* comm, void* data, size_t size, int kind, void** memory);
  Result (*register_dma_buf)(void* comm, void* data, size_t size, int kind, uint64_t offset, int fd,
                             void** memory);
  Result (*deregister)(void* comm, void* memory);
  Result (*isend)(void* send_comm, void* data, size_t size, int tag, void* memory, void** request);
  Result (*irecv)(void* receive_comm, int count, void** data, size_t* sizes, int* tags,
                  void** memory, void** request);
  Result (*iflush)(void* receive_comm, int count, void** data, int* sizes, void** memory,
                   void** request);
  Result (*test)(void* request, int* done, int* sizes);
  Result (*close_send)(void* comm);
  Result (*close_receive)(void* comm);
  Result (*close_listen)(void* comm);
  Result (*get_device_memory)(void* comm, void* memory, void** device_memory);
  Result (*irecv_consumed)(void* receive_comm, int count, void* request);
  Result (*make_virtual_device)(int* device, VirtualDevice<4>* parts);
};

struct NetV10 {
  const char* name;
  Result (*init)(LogFunction log, ProfileFunction profile);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV9* properties);
  Result (*listen)(int device, void* handle, void** listen_comm);
  Result (*connect)(int device, CommConfig* config, void* handle, void** send_comm,
                    void** device_handle);
  Result (*accept)(void* listen_comm, void** receive_comm, void** device_handle);
  Result (*register_memory)(void* comm, void* data, size_t size, int kind, void** memory);
  Result (*register_dma_buf)(void* comm, void* data, size_t size, int kind, uint64_t offset, int fd,
                             void** memory);
  Result (*deregister)(void* comm, void* memory);
  Result (*isend)(void* send_comm, void* data, size_t size, int tag, void* memory, void* profile,
                  void** request);
  Result (*irecv)(void* receive_comm, int count, void** data, size_t* sizes, int* tags,
                  void** memory, void** profiles, void** request);
  Result (*iflush)(void* receive_comm, int count, void** data, int* sizes, void** memory,
                   void** request);
  Result (*test)(void* request, int* done, int* sizes);
  Result (*close_send)(void* comm);
  Result (*close_receive)(void* comm);
  Result (*close_listen)(void* comm);
  Result (*get_device_memory)(void* comm, void* memory, void** device_memory);
  Result (*irecv_consumed)(void* receive_comm, int count, void* request);
  Result (*make_virtual_device)(int* device, VirtualDevice<4>* parts);
};

// Versions 11 and 12.
template <class Properties, int kDevices>
struct NetV11 {
  const char* name;
  Result (*init)(void** context, uint64_t comm_id, CommConfig* config, LogFunction log,
                 ProfileFunction profile);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, Properties* properties);
  Result (*listen)(void* context, int device, void* handle, void** listen_comm);
  Result (*connect)(void* context, int device, void* handle, void** send_comm,
                    void** device_handle);
  Result (*accept)(void* listen_comm, void** receive_comm, void** device_handle);
  Result (*register_memory)(void* comm, void* data, size_t size, int kind, void** memory);
  Result (*register_dma_buf)(void* comm, void* data, size_t size, int kind, uint64_t offset, int fd,
                             void** memory);
  Result (*deregister)(void* comm, void* memory);
  Result (*isend)(void* send_comm, void* data, size_t size, int tag, void* memory, void* profile,
                  void** request);
  Result (*irecv)(void* receive_comm, int count, void** data, size_t* sizes, int* tags,
                  void** memory, void** profiles, void** request);
  Result (*iflush)(void* receive_comm, int count, void** data, int* sizes, void** memory,
                   void** request);
  Result (*test)(void* request, int* done, int* sizes);
  Result (*close_send)(void* comm);
  Result (*close_receive)(void* comm);
  Result (*close_listen)(void* comm);
  Result (*get_device_memory)(void* comm, void* memory, void** device_memory);
  Result (*irecv_consumed)(void* receive_comm, int count, void* request);
  Result (*make_virtual_device)(int* device, VirtualDevice<kDevices>* parts);
  Result (*finalize)(void* context);
  Result (*set_net_attributes)(void* context, void* attributes);
};
using NetV11Table = NetV11<PropertiesV11, 4>;
using NetV12Table = NetV11<PropertiesV12, 8>;

}  // namespace railhead::nccl::abi

#endif  // RAILHEAD_PLUGINS_NCCL_ABI_NET_H_
