// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/testing/gpu_plugin.h"

#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device-plugin/proto/deviceplugin.grpc.pb.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin::testing {
namespace {

constexpr int kPollMilliseconds = 100;

class GpuService final : public v1beta1::DevicePlugin::Service {
 public:
  explicit GpuService(const std::vector<fabric::Gpu>& gpus) {
    for (const fabric::Gpu& gpu : gpus) {
      v1beta1::Device* device = list_.add_devices();
      device->set_id(gpu.pci_address);
      device->set_health("Healthy");
      if (gpu.numa_node >= 0) device->mutable_topology()->add_nodes()->set_id(gpu.numa_node);
    }
  }

  grpc::Status GetDevicePluginOptions(grpc::ServerContext* /*context*/,
                                      const v1beta1::Empty* /*request*/,
                                      v1beta1::DevicePluginOptions* /*response*/) override {
    return grpc::Status::OK;
  }

  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty* /*request*/,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override {
    writer->Write(list_);
    while (!context->IsCancelled()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kPollMilliseconds));
    }
    return grpc::Status::OK;
  }

  grpc::Status Allocate(grpc::ServerContext* /*context*/, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* response) override {
    for (const v1beta1::ContainerAllocateRequest& container : request->container_requests()) {
      (*response->add_container_responses()->mutable_envs())["EXAMPLE_GPUS"] =
          absl::StrJoin(container.devices_ids(), ",");
    }
    return grpc::Status::OK;
  }

 private:
  v1beta1::ListAndWatchResponse list_;
};

bool Register(const std::string& folder, const std::string& endpoint) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint(endpoint);
  request.set_resource_name("example.com/gpu");
  v1beta1::Empty response;
  const auto channel = grpc::CreateChannel(absl::StrCat("unix:", folder, "/kubelet.sock"),
                                           grpc::InsecureChannelCredentials());
  return v1beta1::Registration::NewStub(channel)->Register(&context, request, &response).ok();
}

}  // namespace

void OfferGpus(const std::string& folder, const std::vector<fabric::Gpu>& gpus, int stop_fd) {
  GpuService service(gpus);
  // Kubelet deletes all sockets when it starts: each time we serve on a new one, whose name is new
  // because gRPC removes the old one's file when it likes.
  for (int number = 0;; ++number) {
    const std::string endpoint = absl::StrCat("example-gpu-", getpid(), "-", number, ".sock");
    const std::string path = absl::StrCat(folder, "/", endpoint);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
    builder.RegisterService(&service);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    bool registered = false;
    bool stop = false;
    while (!stop && access(path.c_str(), F_OK) == 0) {
      if (!registered) registered = Register(folder, endpoint);
      pollfd descriptor = {stop_fd, POLLIN, 0};
      stop = poll(&descriptor, 1, kPollMilliseconds) > 0;
    }
    server->Shutdown(std::chrono::system_clock::now());  // ends the stream, too
    if (stop) return;
  }
}

}  // namespace railhead::device_plugin::testing
