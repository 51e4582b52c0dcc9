// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/testing/fake_kubelet.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "device-plugin/kubelet/grpc_unix.h"

namespace railhead::device_plugin::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience(60);  // busy machines are slow

std::chrono::system_clock::time_point In(std::chrono::seconds time) {
  return std::chrono::system_clock::now() + time;
}

std::unique_ptr<grpc::Server> Listen(const std::string& path, grpc::Service* service) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  EXPECT_NE(server, nullptr) << path;
  return server;
}

// Made elsewhere and moved: gRPC removes the file it made when its server ends, and that may be
// after the next one has begun.
std::unique_ptr<grpc::Server> ListenInPlace(const std::string& elsewhere, const std::string& path,
                                            grpc::Service* service) {
  static std::atomic<int> count = 0;
  const std::string made = elsewhere + std::to_string(++count);
  std::unique_ptr<grpc::Server> server = Listen(made, service);
  fs::rename(made, path);
  return server;
}

}  // namespace

void FakeKubelet::Start() {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    if (entry.is_socket()) fs::remove(entry.path());
  }
  server_ = ListenInPlace(scratch_ + "/k", folder_ + "/kubelet.sock", this);
}

void FakeKubelet::Stop() {
  if (server_ == nullptr) return;
  server_->Shutdown(In(std::chrono::seconds(0)));
  std::vector<std::thread> threads;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    current_.clear();
    for (const std::shared_ptr<Client>& client : clients_) client->stream.TryCancel();
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  server_.reset();
  const std::lock_guard<std::mutex> lock(mutex_);
  clients_.clear();
  devices_.clear();
}

std::shared_ptr<FakeKubelet::Client> FakeKubelet::Registered(const std::string& resource) const {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto is_registered = [&] {
    const auto found = current_.find(resource);
    return found != current_.end() && found->second->is_registered;
  };
  return changed_.wait_for(lock, kPatience, is_registered) ? current_.at(resource) : nullptr;
}

void FakeKubelet::CutStream(const std::string& resource) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = current_.find(resource);
  if (found != current_.end()) found->second->stream.TryCancel();
}

void FakeKubelet::RefuseRegistrations(int count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  refuse_ = count;
}

void FakeKubelet::ForgetStreams(int count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  forget_ = count;
}

bool FakeKubelet::WaitForDevices(const Devices& expected, const std::string& resource) {
  return WaitFor([&expected](const Devices& devices) { return devices == expected; }, resource);
}

bool FakeKubelet::WaitFor(const std::function<bool(const Devices&)>& condition,
                          const std::string& resource) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return condition(devices_[resource]); });
}

Devices FakeKubelet::devices(const std::string& resource) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = devices_.find(resource);
  return found == devices_.end() ? Devices() : found->second;
}

int FakeKubelet::registrations() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return registrations_;
}

v1beta1::RegisterRequest FakeKubelet::last_request() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_request_;
}

v1beta1::ListAndWatchResponse FakeKubelet::last_list() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_list_;
}

grpc::Status FakeKubelet::Allocate(const std::vector<std::string>& ids,
                                   v1beta1::AllocateResponse* response, const std::string& resource,
                                   const std::string& uid) {
  const std::shared_ptr<Client> client = Registered(resource);
  if (client == nullptr) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "nobody registered");
  v1beta1::AllocateRequest request;
  v1beta1::ContainerAllocateRequest* container = request.add_container_requests();
  for (const std::string& id : ids) container->add_devices_ids(id);
  grpc::ClientContext context;
  context.set_deadline(In(kPatience));
  grpc::Status status = client->stub->Allocate(&context, request, response);
  if (!status.ok()) return status;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string owner = uid.empty() ? "uid-of-pod-" + std::to_string(++pods_) : uid;
  // Its other pods have ended.
  std::erase_if(allocated_, [&](const Entry& entry) {
    return entry.resource == resource && entry.uid != owner &&
           std::any_of(ids.begin(), ids.end(), [&entry](const std::string& id) {
             return std::find(entry.ids.begin(), entry.ids.end(), id) != entry.ids.end();
           });
  });
  allocated_.push_back(
      {owner, resource, ids, response->container_responses(0).SerializeAsString()});
  WriteCheckpoint(allocated_);
  return status;
}

void FakeKubelet::ForgetPods() {
  const std::lock_guard<std::mutex> lock(mutex_);
  allocated_.clear();
  WriteCheckpoint(allocated_);
}

void FakeKubelet::WriteCheckpoint(const std::vector<Entry>& entries) const {
  nlohmann::json list = nlohmann::json::array();
  for (const Entry& entry : entries) {
    list.push_back({{"PodUID", entry.uid},
                    {"ContainerName", "main"},
                    {"ResourceName", entry.resource},
                    {"DeviceIDs", {{"-1", entry.ids}}},
                    {"AllocResp", absl::Base64Escape(entry.response)}});
  }
  const nlohmann::json document = {{"Data", {{"PodDeviceEntries", list}}}};
  std::ofstream(scratch_ + "/checkpoint") << document.dump();
  fs::rename(scratch_ + "/checkpoint", folder_ + "/kubelet_internal_checkpoint");
}

grpc::Status FakeKubelet::PreStart(const std::vector<std::string>& ids,
                                   const std::string& resource) const {
  const std::shared_ptr<Client> client = Registered(resource);
  if (client == nullptr) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "nobody registered");
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!client->options.pre_start_required()) return grpc::Status::OK;
  }
  v1beta1::PreStartContainerRequest request;
  for (const std::string& id : ids) request.add_devices_ids(id);
  grpc::ClientContext context;
  context.set_deadline(In(kPatience));
  v1beta1::PreStartContainerResponse response;
  return client->stub->PreStartContainer(&context, request, &response);
}

std::vector<std::string> FakeKubelet::Prefer(int count, const std::string& resource) const {
  const std::shared_ptr<Client> client = Registered(resource);
  if (client == nullptr) return {};
  v1beta1::PreferredAllocationRequest request;
  v1beta1::ContainerPreferredAllocationRequest* container = request.add_container_requests();
  container->set_allocation_size(count);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [id, health] : devices_.at(resource)) container->add_available_deviceids(id);
  }
  grpc::ClientContext context;
  context.set_deadline(In(kPatience));
  v1beta1::PreferredAllocationResponse response;
  const grpc::Status status = client->stub->GetPreferredAllocation(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  if (response.container_responses_size() != 1) return {};
  const auto& ids = response.container_responses(0).deviceids();
  return {ids.begin(), ids.end()};
}

grpc::Status FakeKubelet::Register(grpc::ServerContext* /*context*/,
                                   const v1beta1::RegisterRequest* request,
                                   v1beta1::Empty* /*response*/) {
  auto client = std::make_shared<Client>();
  client->stub = v1beta1::DevicePlugin::NewStub(UnixChannel(folder_ + "/" + request->endpoint()));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++registrations_;
    last_request_ = *request;
    if (refuse_ > 0) {
      --refuse_;
      return grpc::Status(grpc::StatusCode::UNKNOWN, "not now");
    }
    current_[request->resource_name()] = client;
  }
  grpc::ClientContext options;
  options.set_deadline(In(std::chrono::seconds(10)));
  options.set_wait_for_ready(true);
  v1beta1::DevicePluginOptions answer;
  grpc::Status status = client->stub->GetDevicePluginOptions(&options, v1beta1::Empty(), &answer);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!status.ok()) {
    current_.erase(request->resource_name());
    return status;
  }
  client->options = answer;
  client->is_registered = true;
  changed_.notify_all();
  if (forget_ > 0) {
    --forget_;
    return grpc::Status::OK;
  }
  clients_.push_back(client);
  threads_.emplace_back(
      [this, resource = request->resource_name(), client] { RunClient(resource, client); });
  return grpc::Status::OK;
}

void FakeKubelet::RunClient(const std::string& resource, const std::shared_ptr<Client>& client) {
  const auto reader = client->stub->ListAndWatch(&client->stream, v1beta1::Empty());
  v1beta1::ListAndWatchResponse list;
  while (reader->Read(&list)) {
    const std::lock_guard<std::mutex> lock(mutex_);
    last_list_ = list;
    Devices& devices = devices_[resource];
    devices.clear();
    for (const v1beta1::Device& device : list.devices()) devices[device.id()] = device.health();
    changed_.notify_all();
  }
  // Whoever is registered now is disconnected, be it this client or a newer one.
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = current_.find(resource); found != current_.end()) {
    found->second->stream.TryCancel();
    current_.erase(found);
  }
  devices_[resource].clear();
  changed_.notify_all();
}

FakePodResources::FakePodResources(const std::string& socket, const std::set<std::string>& ids)
    : containers_({{"default", "idle", "main", {}},
                   {"default",
                    "busy",
                    "main",
                    {{"example.com/other", {"other0"}}, {"rdma/hca", {ids.begin(), ids.end()}}}}}),
      server_(ListenInPlace(socket + "-", socket, this)) {}

FakePodResources::~FakePodResources() { server_->Shutdown(In(std::chrono::seconds(0))); }

void FakePodResources::Hold(std::vector<ContainerDevices> containers) {
  const std::lock_guard<std::mutex> lock(mutex_);
  containers_ = std::move(containers);
}

int FakePodResources::calls() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return calls_;
}

grpc::Status FakePodResources::List(grpc::ServerContext* /*context*/,
                                    const v1::ListPodResourcesRequest* /*request*/,
                                    v1::ListPodResourcesResponse* response) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++calls_;
  for (const ContainerDevices& container : containers_) {
    v1::PodResources* pod = response->add_pod_resources();
    pod->set_namespace_(container.pod_namespace);
    pod->set_name(container.pod);
    v1::ContainerResources* out = pod->add_containers();
    out->set_name(container.container);
    for (const auto& [resource, ids] : container.devices) {
      v1::ContainerDevices* devices = out->add_devices();
      devices->set_resource_name(resource);
      for (const std::string& id : ids) devices->add_device_ids(id);
    }
  }
  return grpc::Status::OK;
}

}  // namespace railhead::device_plugin::testing
