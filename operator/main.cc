// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <pthread.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigtimedwait is POSIX
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <climits>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "kube/auth/in_cluster.h"
#include "kube/auth/kubeconfig.h"
#include "kube/log.h"
#include "kube/rest_client.h"
#include "kube/server_clock.h"
#include "operator/admission/offline.h"
#include "operator/config/config.h"
#include "operator/control/serve.h"
#include "operator/profiles/profile_set.h"

namespace railhead::op {
namespace {

constexpr size_t kMaxManifestBytes = size_t{1} << 20;

constexpr char kDescription[] =
    "railhead-operator: gives pods that request rdma/* the environment that they need.\n"
    "\n"
    "Runs in a cluster as a mutating admission webhook. A container that requests rdma/hca gets\n"
    "the variables of the pod's RailProfile and of the configuration, RAILHEAD_POD and\n"
    "RAILHEAD_NODE, and in an Indexed Job also RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.\n"
    "Variables that a container sets itself stay unchanged. The operator creates and renews its\n"
    "own certificates, and reports problems of a job's pods as Events on these pods.";

constexpr char kFooter[] =
    "The configuration file (YAML or JSON):\n"
    "  environment:            # for every container that requests rdma/*\n"
    "    NCCL_IB_TC: \"106\"\n"
    "  rendezvousPort: 29500   # MASTER_PORT\n"
    "  excludedNamespaces: [kube-system]  # no diagnosis of their pods\n"
    "  namespaces: [team-a]    # watches pods only there; default: the whole cluster\n"
    "  verdicts: false         # no diagnosis of jobs\n"
    "  gangs: true             # pods with the label railhead.io/gang start together\n"
    "  gangReserveAfter: 10m   # wait after which smaller gangs may not overtake, or never\n"
    "  topology: true          # maintains the FabricTopology\n"
    "  publishTopology: true   # labels nodes with their position; needs topology\n"
    "\n"
    "To see the webhook's changes to a manifest without a cluster:\n"
    "  railhead-operator mutate -f job.yaml --config operator.yaml --profiles profiles.yaml\n"
    "To save the profiles of a cluster and the labels that they match:\n"
    "  kubectl get railprofiles,namespaces,nodes -o json > profiles.json\n"
    "\n"
    "Required permissions: get and patch of the Secret, the Lease and the\n"
    "MutatingWebhookConfiguration named below, create of leases, list and watch of railprofiles,\n"
    "namespaces, nodes and pods, patch of railprofiles/status, create of events, list, create and\n"
    "patch of railreports and patch of railreports/status; with gangs also patch of events and\n"
    "pods/status, get and patch of pods, create of pods/eviction; with topology list, watch and\n"
    "create of fabrictopologies, and patch of their status; with publishTopology patch of nodes,\n"
    "create and patch of topologies of Kueue and KAI, list, create, patch and delete of Volcano's\n"
    "hypernodes. With `namespaces`, those for pods, events and railreports only in these.\n"
    "The webhook serves /mutate; the health port serves /healthz, /readyz and /metrics.";

// Time that a terminating replica keeps serving requests: the API server and the cluster's load
// balancing learn late that it is not ready, and a failed call leaves a pod without its
// environment.
constexpr timespec kDrain = {5, 0};

int Fail(absl::string_view message) {
  std::cerr << "railhead-operator: " << message << "\n";
  return 1;
}

absl::StatusOr<InjectionConfig> LoadConfig(const std::string& path) {
  return path.empty() ? InjectionConfig() : LoadInjectionConfig(path);
}

absl::StatusOr<ProfileSet> LoadProfiles(const std::string& path) {
  return path.empty() ? ProfileSet() : LoadProfileSet(path);
}

// Flags of `railhead-operator mutate`.
struct MutateFlags {
  std::string manifests;
  std::string config;
  std::string profiles;
  bool patch_only = false;
  bool explain = false;
};

int RunMutate(const MutateFlags& flags) {
  const absl::StatusOr<InjectionConfig> config = LoadConfig(flags.config);
  if (!config.ok()) return Fail(config.status().message());
  const absl::StatusOr<ProfileSet> profiles = LoadProfiles(flags.profiles);
  if (!profiles.ok()) return Fail(profiles.status().message());
  const absl::StatusOr<std::string> manifests = ReadInput(flags.manifests, kMaxManifestBytes);
  if (!manifests.ok()) return Fail(manifests.status().message());
  const absl::StatusOr<OfflineResult> result =
      MutateOffline(*manifests, *config, *profiles,
                    flags.patch_only ? OfflineOutput::kPatch : OfflineOutput::kObject);
  if (!result.ok()) return Fail(flags.manifests + ": " + std::string(result.status().message()));
  for (const std::string& warning : result->warnings) std::cerr << "Warning: " << warning << "\n";
  if (flags.explain) {
    for (const std::string& reason : result->reasons) std::cerr << reason << "\n";
  }
  std::cout << result->text;
  return std::cout.flush().good() ? 0 : Fail("cannot write the result");
}

// Returns the API server's address and credentials: of the pod, or of a kubeconfig.
absl::StatusOr<kube::InCluster> FindCluster(const std::string& kubeconfig) {
  if (kubeconfig.empty()) {
    return kube::InClusterConfig("/", kube::ProcessEnvironment);
  }
  absl::StatusOr<kube::Kubeconfig> config = kube::LoadKubeconfig({kubeconfig}, "");
  if (!config.ok()) return config.status();
  return kube::InCluster{std::move(config->client), std::move(config->space)};
}

// Returns the identity of this process: a restarted container is another replica.
std::string Identity() {
  std::array<char, HOST_NAME_MAX + 1> host = {};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::random_device random;
  return absl::StrCat(host.data(), "_", absl::Hex(random(), absl::kZeroPad8),
                      absl::Hex(random(), absl::kZeroPad8));
}

int RunServe(ServeOptions options, const std::string& config_path, const std::string& kubeconfig) {
  // Tens of threads that do little: an arena for each would be mostly holes. And what is large is
  // short-lived, such as pages of a list: it goes back to the system, also the second time.
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  // Before any thread exists, so that all inherit it and only this one takes the signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): cannot fail for SIGPIPE

  const absl::StatusOr<InjectionConfig> config = LoadConfig(config_path);
  if (!config.ok()) return Fail(config.status().message());
  absl::StatusOr<kube::InCluster> cluster = FindCluster(kubeconfig);
  if (!cluster.ok()) return Fail(cluster.status().message());
  if (options.space.empty()) options.space = cluster->space;
  options.identity = Identity();
  const std::string server = cluster->client.server;

  kube::ServerClock server_clock;
  cluster->client.server_clock = &server_clock;
  options.server_time = [&server_clock] { return server_clock.Now(); };
  kube::RestClient api(std::move(cluster->client));
  Operator railhead_operator(std::move(options), *config, &api);
  if (absl::Status started = railhead_operator.Start(); !started.ok()) {
    return Fail(started.message());
  }
  spdlog::info("railhead-operator {}: webhook on port {}, health on port {}, API server {}",
               RAILHEAD_VERSION, railhead_operator.port(), railhead_operator.health_port(), server);

  int received = 0;
  sigwait(&signals, &received);
  spdlog::info("stopping: draining requests for {} s", kDrain.tv_sec);
  railhead_operator.Drain();
  sigtimedwait(&signals, nullptr, &kDrain);  // a second signal ends it at once
  api.Cancel();
  railhead_operator.Stop();
  spdlog::info("stopped");
  return 0;
}

int Main(int argc, char** argv) {
  kube::SetUpLog("railhead-operator");
  CLI::App app(kDescription);
  app.footer(kFooter);
  app.set_version_flag("--version", RAILHEAD_VERSION);
  ServeOptions options;
  options.service = "railhead-operator";
  options.webhook_configuration = "railhead-operator";
  options.ca_secret = "railhead-operator-ca";
  options.lease = "railhead-operator";
  std::string config_path;
  app.add_option("--config", config_path,
                 "Configuration file; without it all fields have their defaults")
      ->type_name("FILE");
  std::string kubeconfig;
  app.add_option("--kubeconfig", kubeconfig,
                 "kubeconfig for the API server; default: the pod's service account")
      ->type_name("FILE");
  app.add_option("--namespace", options.space,
                 "Namespace of Service, Secret and Lease; default: the pod's own")
      ->type_name("NAME");
  app.add_option("--service", options.service,
                 "Service through which the API server reaches the webhook")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--webhook-configuration", options.webhook_configuration,
                 "MutatingWebhookConfiguration whose caBundle the operator maintains")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--ca-secret", options.ca_secret,
                 "Secret for the webhook's certificate authority; must exist, may be empty")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--lease", options.lease, "Lease for leader election, in the same namespace")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--port", options.port, "Port of the webhook, HTTPS")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  app.add_option("--health-port", options.health_port,
                 "Port of /healthz, /readyz and /metrics, HTTP")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();

  std::string log_level = kube::LogLevels().front();
  app.add_option("--log-level", log_level, "Lowest level that is logged")
      ->check(CLI::IsMember(kube::LogLevels()))
      ->capture_default_str();

  CLI::App* mutate = app.add_subcommand(
      "mutate", "Print the objects of a file as the webhook would change them, and exit");
  MutateFlags flags;
  mutate
      ->add_option("-f,--filename", flags.manifests, "Manifest, YAML or JSON; - is standard input")
      ->type_name("FILE")
      ->required();
  mutate->add_option("--config", flags.config, "Configuration file, as above")->type_name("FILE");
  mutate
      ->add_option("--profiles", flags.profiles,
                   "RailProfiles, Namespaces and Nodes (for their labels): a file, or a "
                   "directory of *.yaml and *.json")
      ->type_name("PATH");
  mutate->add_flag("--patch", flags.patch_only, "Print the JSON Patch of each Pod and Job instead");
  mutate->add_flag("--explain", flags.explain,
                   "Print to standard error the profile and field that each variable comes from");

  CLI11_PARSE(app, argc, argv);
  kube::SetLogLevel(log_level);
  if (mutate->parsed()) return RunMutate(flags);
  return RunServe(std::move(options), config_path, kubeconfig);
}

}  // namespace
}  // namespace railhead::op

int main(int argc, char** argv) { return railhead::op::Main(argc, argv); }
