// SPDX-License-Identifier: Apache-2.0
//
// What tests/kube drives against a real API server.
//
// usage: railhead_kube_probe cache KUBECONFIG API RESOURCE NAMESPACE
//          Keeps a cache of the collection. For every line on standard input, one on standard
//          output: a JSON object of the cached resourceVersions by key. What ends lists and watches
//          goes to standard error. Ends with its input.
//        railhead_kube_probe elect KUBECONFIG NAMESPACE NAME IDENTITY
//          Takes part in an election. While it leads, prints the monotonic time in seconds every 10
//          ms. Ends on SIGTERM, and releases.
#include <signal.h>  // NOLINT(modernize-deprecated-headers)

#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "kube/auth/kubeconfig.h"
#include "kube/cache/cache.h"
#include "kube/cache/reflector.h"
#include "kube/lease/leader_elector.h"
#include "kube/monotonic.h"
#include "kube/rest_client.h"

namespace railhead::kube {
namespace {

int KeepCache(Api& api, const std::vector<std::string>& arguments) {
  Cache<std::string> cache([](const Json& object) -> std::optional<std::string> {
    return StringAt(object, {"metadata", "resourceVersion"});
  });
  ReflectorOptions options;
  options.collection = {arguments[2], arguments[3], arguments[4], ""};
  options.page_size = 100;
  Reflector reflector(options, &api, &cache, SystemRandom(), MonotonicNow,
                      [](const absl::Status& end) { std::cerr << end << std::endl; });
  std::jthread thread([&reflector](const std::stop_token& stop) { reflector.Run(stop); });
  for (std::string line; std::getline(std::cin, line);) {
    Json versions = Json::object();
    cache.ForEach([&versions](const std::string& key, const Cache<std::string>::Value& value) {
      versions[key] = *value;
    });
    std::cout << versions.dump() << std::endl;
  }
  return 0;
}

int Elect(Api& api, const std::vector<std::string>& arguments) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  ElectionOptions options;
  options.identity = arguments[4];
  LeaderElector elector(
      options, {"coordination.k8s.io/v1", "leases", arguments[2], arguments[3]}, &api,
      {[] {}, [] {}, [](const absl::Status& trouble) { std::cerr << trouble << std::endl; }});
  std::jthread thread([&elector](const std::stop_token& stop) { elector.Run(stop); });
  const timespec pause{0, 10'000'000};
  while (sigtimedwait(&signals, nullptr, &pause) != SIGTERM) {
    // Before and after the time is read: between them this process may have waited for a CPU.
    const bool leads = elector.Leads();
    const absl::Time now = MonotonicNow();
    if (leads && elector.Leads()) {
      std::printf("%.3f\n", absl::ToDoubleSeconds(now - absl::UnixEpoch()));
    }
    std::fflush(stdout);
  }
  return 0;
}

int Run(const std::vector<std::string>& arguments) {
  if (arguments.size() != 5 || (arguments[0] != "cache" && arguments[0] != "elect")) {
    std::cerr << "usage: see probe.cc\n";
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  const absl::StatusOr<Kubeconfig> config = LoadKubeconfig({arguments[1]}, "");
  if (!config.ok()) {
    std::cerr << config.status() << "\n";
    return 1;
  }
  RestClient api(config->client);
  return arguments[0] == "cache" ? KeepCache(api, arguments) : Elect(api, arguments);
}

}  // namespace
}  // namespace railhead::kube

int main(int argc, char** argv) {
  return railhead::kube::Run(std::vector<std::string>(argv + 1, argv + argc));
}
