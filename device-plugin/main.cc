// SPDX-License-Identifier: Apache-2.0
//
// railhead-device-plugin: offers a node's RDMA devices to kubelet.
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "device-plugin/agent.h"
#include "device-plugin/cluster/cleanup.h"
#include "device-plugin/cluster/health.h"
#include "device-plugin/cluster/metrics.h"
#include "device-plugin/cluster/node_events.h"
#include "device-plugin/cluster/node_reporter.h"
#include "device-plugin/config/config.h"
#include "device-plugin/config/config_reader.h"
#include "device-plugin/discover.h"
#include "device-plugin/nri/plugin.h"
#include "device-plugin/offer/offer_health.h"
#include "fabric/cpu_model.h"
#include "fabric/hca_rules.h"
#include "fabric/inventory.h"
#include "fabric/inventory_json.h"
#include "fabric/nccl_topology.h"
#include "fabric/pci_attributes.h"
#include "fabric/root_files.h"
#include "fabric/sysfs_reader.h"
#include "kube/auth/in_cluster.h"
#include "kube/http/page_server.h"
#include "kube/log.h"
#include "kube/rest_client.h"

namespace railhead::device_plugin {
namespace {

constexpr char kAbout[] =
    "Offers the RDMA devices (HCAs) of this node to kubelet, so that pods can request them:\n"
    "  resources: {limits: {rdma/hca: 2}}\n"
    "Each pod gets exactly the devices allocated to it, and /run/railhead/rails.json, which maps\n"
    "them to rails.";

constexpr char kExamples[] =
    "Examples:\n"
    "  railhead-device-plugin discover                     list devices, and why any is unusable\n"
    "  railhead-device-plugin discover --root /host -o json\n"
    "  railhead-device-plugin --root /host --node-name n1  serve, with the host's /sys and\n"
    "                                                      /dev/infiniband mounted below /host";

struct Flags {
  AgentOptions agent;
  int rescan_seconds = 1;
  std::string health_address = ":8080";
  std::string metrics_address = ":9401";
  std::string discover_root = "/";
  std::string discover_config;
  std::string discover_output = "table";
  std::string log_level = kube::LogLevels().front();
  bool forget_agents_only = false;
  bool forget_topology_only = false;
  std::string nri_socket = "/var/run/nri/nri.sock";
};

void Declare(CLI::App& app, Flags& flags) {
  app.footer(kExamples);
  app.set_version_flag("--version", RAILHEAD_VERSION);
  app.require_subcommand(0, 1);
  app.add_option("--root", flags.agent.root,
                 "Root directory of the host: sys and dev/infiniband are read below it")
      ->capture_default_str();
  app.add_option(
         "--kubelet-dir", flags.agent.kubelet_dir,
         "Kubelet's device plugin directory, at the same path as on the host; rails files are "
         "in its subdirectory railhead")
      ->capture_default_str();
  app.add_option("--pod-resources-socket", flags.agent.pod_resources_socket,
                 "Kubelet's PodResources socket; lists the devices in use")
      ->capture_default_str();
  app.add_option("--node-name", flags.agent.node_name, "Name of this node in Kubernetes")
      ->envname("NODE_NAME");
  app.add_option(
      "--cdi-dir", flags.agent.cdi_dir,
      "Directory of the container runtime's CDI specs (/var/run/cdi), at the same path as on "
      "the host: containers get their devices by CDI, resolved when the container starts. "
      "Empty: plain device nodes, resolved at admission");
  app.add_option("--config", flags.agent.config_file,
                 "YAML file of resources, their HCAs, sharing and rail numbers; read again when it "
                 "changes. Default: every HCA is one rdma/hca");
  app.add_flag("--memlock-raised", flags.agent.memlock_raised,
               "Publish that containers with HCAs may lock memory without limit, because `memlock` "
               "runs next to the agent");
  app.add_option(
      "--job-key-file", flags.agent.job_key_file,
      "File of the cluster's master key (32 bytes or more), from which the agents derive "
      "a secret for each job; read again when it changes. Empty: jobs get no secrets");
  app.add_option("--rescan-seconds", flags.rescan_seconds,
                 "Interval between device scans in seconds")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  app.add_option("--health-address", flags.health_address,
                 "Listen address of /healthz and /readyz; empty disables them")
      ->capture_default_str();
  app.add_option("--metrics-address", flags.metrics_address,
                 "Listen address of /metrics; empty disables it")
      ->capture_default_str();
  app.add_option("--log-level", flags.log_level, "Least severe records of the log")
      ->check(CLI::IsMember(kube::LogLevels()))
      ->capture_default_str();
  app.add_subcommand("serve", "Offer the devices to kubelet until SIGTERM (the default)")
      ->fallthrough();
  app.add_option("--pod-name", flags.agent.pod_name, "Name of the agent's own pod")
      ->envname("POD_NAME");
  app.add_option("--pod-namespace", flags.agent.pod_namespace, "Namespace of the agent's own pod")
      ->envname("POD_NAMESPACE");
  CLI::App* forget = app.add_subcommand(
      "forget",
      "Remove from all nodes the labels, annotations and condition that agents wrote, and the "
      "operator's topology labels, and print the nodes' names; run it in a pod");
  CLI::Option* agents_only = forget->add_flag(
      "--agents-only", flags.forget_agents_only,
      "Remove also the agents' NodeFeatures from --pod-namespace, but no labels of the "
      "operator");
  forget
      ->add_flag("--topology-only", flags.forget_topology_only,
                 "Remove the operator's topology labels alone")
      ->excludes(agents_only);
  CLI::App* memlock = app.add_subcommand(
      "memlock",
      "As a plugin of the container runtime (NRI), let containers with RDMA devices lock\n"
      "memory without limit, whatever their user, until SIGTERM; needs only the socket");
  memlock->fallthrough();
  memlock->add_option("--nri-socket", flags.nri_socket, "NRI socket of the container runtime")
      ->capture_default_str();
  CLI::App* discover = app.add_subcommand("discover", "Print the devices of this node");
  discover
      ->add_option("--root", flags.discover_root,
                   "Root directory of the host, or of a captured tree")
      ->capture_default_str();
  discover->add_option("--config", flags.discover_config,
                       "Configuration file to try: prints its rails and the HCAs of its resources");
  discover
      ->add_option("-o,--output", flags.discover_output,
                   "json, table, or nccl-topology: the PCI tree in NCCL's format (NCCL_TOPO_FILE)")
      ->check(CLI::IsMember({"json", "table", "nccl-topology"}))
      ->capture_default_str();
}

int Fail(const absl::Status& status) {
  std::cerr << "railhead-device-plugin: " << status.message() << "\n";
  return 1;
}

int Discover(const Flags& flags) {
  absl::StatusOr<AgentConfig> config = AgentConfig{};
  if (!flags.discover_config.empty()) config = LoadAgentConfig(flags.discover_config);
  if (!config.ok()) return Fail(config.status());
  absl::StatusOr<fabric::NodeInventory> inventory =
      fabric::ReadInventory(flags.discover_root, GpuVendors(*config));
  if (!inventory.ok()) return Fail(inventory.status());
  fabric::ChooseRails(inventory->hcas,
                      [&config](const fabric::Hca& hca) { return IsChosen(*config, hca); });
  fabric::AssignRails(inventory->hcas);
  ApplyRails(config->rails, inventory->hcas);
  // Only a configuration defines the network of pods.
  if (flags.discover_config.empty()) {
    for (fabric::Hca& hca : inventory->hcas) fabric::Judge(hca, fabric::PodNetwork::kUnknown);
  } else {
    JudgeOffers(*config, {}, *inventory);
  }
  if (flags.discover_output == "json") {
    std::cout << fabric::ToJson(*inventory);
  } else if (flags.discover_output == "nccl-topology") {
    const absl::StatusOr<fabric::RootFiles> files = fabric::RootFiles::Open(flags.discover_root);
    if (!files.ok()) return Fail(files.status());
    std::cout << fabric::NcclTopology(*inventory, fabric::ReadPciAttributes(*files, *inventory),
                                      fabric::ThisCpuModel());
  } else {
    std::cout << ToTable(*inventory);
    if (!flags.discover_config.empty()) std::cout << "\n" << ToTable(*config, *inventory);
  }
  return std::cout.flush() ? 0 : 1;
}

// Returns null if the address is empty.
absl::StatusOr<std::unique_ptr<kube::PageServer>> StartServer(
    const std::string& flag, const std::string& address, const kube::PageServer::Pages& pages) {
  if (address.empty()) return nullptr;
  return kube::PageServer::Start(flag, address, pages);
}

// Returns the API server, if this process is a pod with a service account.
std::unique_ptr<kube::RestClient> ApiServer() {
  absl::StatusOr<kube::InCluster> cluster = kube::InClusterConfig("/", kube::ProcessEnvironment);
  if (!cluster.ok()) {
    spdlog::info("not publishing the node's facts: no API server: {}",
                 std::string(cluster.status().message()));
    return nullptr;
  }
  return std::make_unique<kube::RestClient>(std::move(cluster->client));
}

std::unique_ptr<NodeReporter> MakeReporter(const Flags& flags, kube::RestClient* api) {
  if (api == nullptr) return nullptr;
  NodeReporter::Options options;
  options.node = flags.agent.node_name;
  options.space = flags.agent.pod_namespace;
  options.pod = flags.agent.pod_name;
  return std::make_unique<NodeReporter>(std::move(options), api);
}

int Forget(const Flags& flags) {
  const std::unique_ptr<kube::RestClient> api = ApiServer();
  if (api == nullptr) return 1;
  CleanUpOptions options;
  options.agents = !flags.forget_topology_only;
  options.topology = !flags.forget_agents_only;
  if (flags.forget_agents_only) options.space = flags.agent.pod_namespace;
  const absl::StatusOr<std::vector<std::string>> forgotten = CleanUpNodes(*api, options);
  if (!forgotten.ok()) return Fail(forgotten.status());
  for (const std::string& node : *forgotten) std::cout << node << "\n";
  return std::cout.flush() ? 0 : 1;
}

// Returns a descriptor that is readable after SIGTERM or SIGINT. Call it before starting threads,
// so that all of them block these signals.
absl::StatusOr<int> StopSignals() {
  signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): it cannot fail
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const int stop_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (stop_fd < 0) return absl::ErrnoToStatus(errno, "cannot wait for signals");
  return stop_fd;
}

int Memlock(const Flags& flags) {
  const absl::StatusOr<int> stop_fd = StopSignals();
  if (!stop_fd.ok()) return Fail(stop_fd.status());
  nri::Plugin plugin(flags.nri_socket, {});
  const auto page = [](const absl::Status& status) {
    return status.ok()
               ? kube::HttpResponse{.body = "ok\n"}
               : kube::HttpResponse{.status = 503, .body = std::string(status.message()) + "\n"};
  };
  const auto health =
      StartServer("--health-address", flags.health_address,
                  {{"/healthz", [&page] { return page(absl::OkStatus()); }},
                   {"/readyz", [&page, &plugin] { return page(plugin.Ready()); }},
                   {"/metrics", [&plugin] {
                      return kube::HttpResponse{200, kMetricsContentType, plugin.Metrics()};
                    }}});
  if (!health.ok()) return Fail(health.status());
  plugin.Run(*stop_fd);
  return 0;
}

int Serve(Flags flags) {
  // Files are for root only, unless created with another mode.
  umask(0077);
  const absl::StatusOr<int> stop_fd = StopSignals();
  if (!stop_fd.ok()) return Fail(stop_fd.status());
  const std::unique_ptr<kube::RestClient> api = ApiServer();
  const std::unique_ptr<NodeReporter> reporter = MakeReporter(flags, api.get());
  flags.agent.reporter = reporter.get();
  flags.agent.api = api.get();
  flags.agent.rescan = std::chrono::seconds(flags.rescan_seconds);
  const absl::StatusOr<std::unique_ptr<Agent>> agent = Agent::Make(flags.agent);
  if (!agent.ok()) {
    if (reporter != nullptr) {
      reporter->Tell(NodeEvent(true, "AgentCannotStart", std::string(agent.status().message())));
      reporter->Flush(absl::Seconds(5));
    }
    return Fail(agent.status());
  }
  const Agent& told = **agent;
  const auto health =
      StartServer("--health-address", flags.health_address, HealthPages(told.health()));
  if (!health.ok()) return Fail(health.status());
  const auto metrics =
      StartServer("--metrics-address", flags.metrics_address,
                  {{"/metrics", [&told] {
                      return kube::HttpResponse{200, kMetricsContentType, told.Metrics()};
                    }}});
  if (!metrics.ok()) return Fail(metrics.status());
  spdlog::info("railhead-device-plugin {} on node {}: devices of {} for kubelet in {}",
               RAILHEAD_VERSION, flags.agent.node_name, flags.agent.root, flags.agent.kubelet_dir);
  (*agent)->Run(*stop_fd);
  if (api != nullptr) api->Cancel();
  return 0;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app(kAbout, "railhead-device-plugin");
  Declare(app, flags);
  CLI11_PARSE(app, argc, argv);
  if (app.got_subcommand("discover")) return Discover(flags);
  kube::SetUpLog("railhead-device-plugin");
  kube::SetLogLevel(flags.log_level);
  if (app.got_subcommand("memlock")) return Memlock(flags);
  return app.got_subcommand("forget") ? Forget(flags) : Serve(std::move(flags));
}

}  // namespace
}  // namespace railhead::device_plugin

int main(int argc, char** argv) { return railhead::device_plugin::Main(argc, argv); }
