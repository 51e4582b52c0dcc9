// SPDX-License-Identifier: Apache-2.0
//
// Kubelet's side of the device plugin protocol for tests, with the habits of kubelet 1.36.3, over
// real Unix sockets.
#ifndef RAILHEAD_DEVICE_PLUGIN_TESTING_FAKE_KUBELET_H_
#define RAILHEAD_DEVICE_PLUGIN_TESTING_FAKE_KUBELET_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "device-plugin/kubelet/pod_resources.h"
#include "device-plugin/proto/deviceplugin.grpc.pb.h"
#include "device-plugin/proto/podresources.grpc.pb.h"

namespace railhead::device_plugin::testing {

// Ids to "Healthy" or "Unhealthy".
using Devices = std::map<std::string, std::string>;

class FakeKubelet final : private v1beta1::Registration::Service {
 public:
  // `folder` is the device plugin folder; `scratch` another one on the same file system.
  FakeKubelet(std::string folder, std::string scratch)
      : folder_(std::move(folder)), scratch_(std::move(scratch)) {}
  ~FakeKubelet() override { Stop(); }

  // Removes every socket in the folder, then listens on kubelet.sock.
  void Start();
  // Ends as if killed: connections break, kubelet.sock stays.
  void Stop();

  // Closes the stream of the resource's plugin; the plugin is gone then, until it registers again.
  void CutStream(const std::string& resource = "rdma/hca");

  // The next Register calls fail; the next registrations are taken, but no stream follows.
  void RefuseRegistrations(int count);
  void ForgetStreams(int count);

  // Whether within a minute the resource's list of devices is, or fulfils, this.
  bool WaitForDevices(const Devices& expected, const std::string& resource = "rdma/hca");
  bool WaitFor(const std::function<bool(const Devices&)>& condition,
               const std::string& resource = "rdma/hca");

  Devices devices(const std::string& resource = "rdma/hca") const;
  int registrations() const;
  v1beta1::RegisterRequest last_request() const;
  v1beta1::ListAndWatchResponse last_list() const;

  // Calls the plugin that is registered now, or within a minute.
  // Writes the response to kubelet's checkpoint, with the pod's uid; "": a new one.
  grpc::Status Allocate(const std::vector<std::string>& ids, v1beta1::AllocateResponse* response,
                        const std::string& resource = "rdma/hca", const std::string& uid = "");
  // Removes all pods from the checkpoint, as at the next allocation after they have ended.
  void ForgetPods();
  // As before each start of a container. OK, without a call, when the plugin does not want it.
  grpc::Status PreStart(const std::vector<std::string>& ids,
                        const std::string& resource = "rdma/hca") const;
  // What it prefers of all its devices.
  std::vector<std::string> Prefer(int count, const std::string& resource = "rdma/hca") const;

 private:
  struct Client {
    std::unique_ptr<v1beta1::DevicePlugin::Stub> stub;
    v1beta1::DevicePluginOptions options;
    bool is_registered = false;  // has told its options
    grpc::ClientContext stream;
  };

  // An allocation in the checkpoint.
  struct Entry {
    std::string uid;
    std::string resource;
    std::vector<std::string> ids;
    std::string response;  // bytes
  };

  // Writes the checkpoint, whole at once.
  void WriteCheckpoint(const std::vector<Entry>& entries) const;

  grpc::Status Register(grpc::ServerContext* context, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* response) override;
  void RunClient(const std::string& resource, const std::shared_ptr<Client>& client);

  const std::string folder_;
  const std::string scratch_;
  std::unique_ptr<grpc::Server> server_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  // Null if nobody is, within a minute.
  std::shared_ptr<Client> Registered(const std::string& resource) const;

  std::map<std::string, std::shared_ptr<Client>> current_;  // by resource
  std::vector<std::shared_ptr<Client>> clients_;
  std::vector<std::thread> threads_;
  std::map<std::string, Devices> devices_;  // by resource
  v1beta1::ListAndWatchResponse last_list_;
  v1beta1::RegisterRequest last_request_;
  std::vector<Entry> allocated_;
  int pods_ = 0;
  int registrations_ = 0;
  int refuse_ = 0;
  int forget_ = 0;
};

class FakePodResources final : private v1::PodResourcesLister::Service {
 public:
  // Listens on `socket`; a pod holds `ids` of rdma/hca and other things beside, another nothing.
  FakePodResources(const std::string& socket, const std::set<std::string>& ids);
  ~FakePodResources() override;

  // From now on these containers are listed, and no others.
  void Hold(std::vector<ContainerDevices> containers);
  // Returns how often they were listed.
  int calls();

 private:
  grpc::Status List(grpc::ServerContext* context, const v1::ListPodResourcesRequest* request,
                    v1::ListPodResourcesResponse* response) override;

  std::mutex mutex_;
  std::vector<ContainerDevices> containers_;
  int calls_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace railhead::device_plugin::testing

#endif  // RAILHEAD_DEVICE_PLUGIN_TESTING_FAKE_KUBELET_H_
