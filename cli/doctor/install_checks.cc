// SPDX-License-Identifier: Apache-2.0
//
// Checks that the chart is installed, complete, running and of one version.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/doctor/checks.h"
#include "cli/output/command.h"
#include "cli/output/words.h"

namespace railhead::cli::doctor {
namespace {

// A few restarts over a pod's life are normal; a program that cannot continue has this number
// within minutes.
constexpr int64_t kManyRestarts = 5;

struct ChartKind {
  absl::string_view name;
  absl::string_view value;  // of the chart, which installs the kind
};
constexpr ChartKind kCrds[] = {{"fabrictopologies.railhead.io", "operator.topology.crd"},
                               {"railprofiles.railhead.io", "profiles.crd"},
                               {"railreports.railhead.io", "profiles.crd"}};

std::string Path(const Workload& workload) {
  return absl::StrCat(workload.kind == "DaemonSet" ? "daemonset" : "deployment", "/",
                      workload.name);
}

std::string Logs(const ComponentPod& pod, bool before) {
  return Command(
      before ? "kubectl -n $0 logs $1 --previous --tail=50" : "kubectl -n $0 logs $1 --tail=50",
      {pod.space, pod.name});
}

// Returns a command about a workload, whose path is $0/$1.
std::string About(const Workload& workload, absl::string_view format) {
  return Command(format, {workload.kind == "DaemonSet" ? "daemonset" : "deployment", workload.name,
                          workload.space});
}

void CheckPod(const ComponentPod& pod, Notes& notes) {
  const std::string object =
      pod.component == "operator" || pod.node.empty()
          ? absl::StrCat("pod ", pod.space, "/", pod.name)
          : absl::StrCat("node ", pod.node, ", pod ", pod.space, "/", pod.name);
  if (pod.trouble.find("ImagePull") != std::string::npos ||
      pod.trouble.find("ErrImage") != std::string::npos) {
    notes.Fail(object, absl::StrCat(pod.trouble, " (image ", pod.image, ")"),
               "correct the image's registry and tag in the chart's values, or set "
               "imagePullSecrets");
  } else if (!pod.trouble.empty() && pod.node.empty()) {
    notes.Fail(object, pod.trouble, "make room, or correct nodeSelector and tolerations");
  } else if (!pod.trouble.empty()) {
    notes.Fail(object, pod.trouble,
               absl::StrCat("read why it ended: ", Logs(pod, pod.restarts > 0)));
  } else if (pod.restarts >= kManyRestarts) {
    notes.Warn(object, absl::StrCat("restarted ", pod.restarts, " times"),
               absl::StrCat("read why it ended: ", Logs(pod, true)));
  } else if (!pod.ready) {
    notes.Warn(object, "not ready", absl::StrCat("read what it waits for: ", Logs(pod, false)));
  }
}

void CheckWorkload(const Workload& workload, bool pods_known, Notes& notes) {
  const std::string object = absl::StrCat(Path(workload), " in namespace ", workload.space);
  const std::string describe = About(workload, "kubectl -n $2 describe $0/$1");
  if (workload.wanted == 0) {
    notes.Fail(object,
               workload.kind == "DaemonSet" ? "no node matches its node selector and tolerations"
                                            : "scaled to 0",
               workload.kind == "DaemonSet"
                   ? "correct devicePlugin.nodeSelector and devicePlugin.tolerations in the "
                     "chart's values"
                   : "set operator.replicas to 1 or more in the chart's values");
  } else if (workload.made < workload.wanted) {
    notes.Fail(object,
               absl::StrCat(workload.made, " of ", Counted(workload.wanted, "pod"),
                            " exist: a quota, Pod Security or an SCC may reject them"),
               absl::StrCat("see the cause in its events: ", describe));
  } else if (workload.ready == 0) {
    notes.Fail(object, absl::StrCat("0 of ", Counted(workload.wanted, "pod"), " ready"), describe);
  } else if (workload.ready < workload.wanted && !pods_known) {
    notes.Warn(object,
               absl::StrCat(workload.ready, " of ", Counted(workload.wanted, "pod"), " ready"),
               describe);
  }
}

// Checks all workloads of a component.
void CheckComponent(const Evidence& evidence, absl::string_view component, Notes& notes) {
  int64_t ready = 0;
  const bool pods_known = IsRead("pods", evidence);
  for (const Workload& workload : evidence.workloads) {
    if (workload.component != component) continue;
    CheckWorkload(workload, pods_known, notes);
    ready += workload.ready;
  }
  for (const ComponentPod& pod : evidence.components) {
    if (pod.component == component) CheckPod(pod, notes);
  }
  if (ready > 0) notes.Conclude(absl::StrCat(Counted(ready, "pod"), " ready"));
}

bool Has(const Evidence& evidence, absl::string_view component) {
  return std::any_of(evidence.workloads.begin(), evidence.workloads.end(),
                     [&](const Workload& workload) { return workload.component == component; });
}

std::string Upgrade(const Evidence& evidence) {
  const Release at = InstallationOf(evidence);
  return Command("helm upgrade $0 charts/railhead -n $1 --reset-then-reuse-values",
                 {at.name, at.space});
}

}  // namespace

Release InstallationOf(const Evidence& evidence) {
  return evidence.releases.empty() ? Release{"railhead-system", "railhead"}
                                   : evidence.releases.front();
}

void CheckApi(const Evidence& evidence, Notes& notes) {
  if (!evidence.unreachable.empty()) {
    notes.Fail("", evidence.unreachable,
               "see whether `kubectl get nodes` works; --kubeconfig and --context name another "
               "cluster");
  }
  notes.Conclude("responds");
}

void CheckRights(const Evidence& evidence, Notes& notes) {
  for (const Unread& unread : evidence.unread) {
    const std::string what =
        absl::StrCat(unread.verb, " ", unread.resource,
                     unread.space.empty() ? " of the whole cluster"
                                          : absl::StrCat(" in namespace ", unread.space));
    if (unread.denied) {
      notes.Warn("", absl::StrCat("no permission to ", what, ": dependent checks are skipped"),
                 absl::StrCat("ask an administrator for this permission; to test it: ",
                              Command(unread.space.empty() ? "kubectl auth can-i $0 $1 -A"
                                                           : "kubectl auth can-i $0 $1 -n $2",
                                      {unread.verb, unread.resource, unread.space})));
    } else {
      notes.Warn("", absl::StrCat("no response to ", what, ": ", unread.error),
                 "retry; if this persists, the API server is overloaded or the network is slow");
    }
  }
  notes.Conclude("all required permissions are granted");
}

void CheckInstall(const Evidence& evidence, Notes& notes) {
  if (!IsRead("deployments.apps", evidence) || !IsRead("daemonsets.apps", evidence)) return;
  if (evidence.workloads.empty()) {
    const Release at = InstallationOf(evidence);
    notes.Fail(
        "", "Railhead is not installed: no Deployment or DaemonSet of its chart",
        Command("helm install $0 charts/railhead -n $1 --create-namespace", {at.name, at.space}));
    return;
  }
  if (!Has(evidence, "operator")) {
    notes.Fail("", "the operator's Deployment is missing", Upgrade(evidence));
  }
  if (!Has(evidence, "device-plugin")) {
    notes.Fail("", "the node agents' DaemonSet is missing: no node offers rdma/*",
               Upgrade(evidence));
  }
  std::set<std::string> places;
  for (const Release& release : evidence.releases) {
    places.insert(absl::StrCat(release.name, " in ", release.space));
  }
  if (places.size() > 1) {
    notes.Warn("",
               absl::StrCat("several releases: ", absl::StrJoin(places, ", "),
                            "; their agents take the kubelet's sockets from each other"),
               "uninstall all but one");
  }
  const Release at = InstallationOf(evidence);
  notes.Conclude(absl::StrCat("release ", at.name, " in ", at.space));
}

void CheckCrds(const Evidence& evidence, Notes& notes) {
  if (!IsRead("customresourcedefinitions.apiextensions.k8s.io", evidence)) return;
  for (const auto& [name, value] : kCrds) {
    const auto crd =
        std::find_if(evidence.crds.begin(), evidence.crds.end(),
                     [&, name = name](const Crd& candidate) { return candidate.name == name; });
    if (crd == evidence.crds.end()) {
      notes.Fail(absl::StrCat("crd ", name), "missing",
                 absl::StrCat(Upgrade(evidence), " --set ", value, "=true"));
    } else if (!crd->established) {
      notes.Fail(absl::StrCat("crd ", name), "the API server does not serve it",
                 Command("kubectl describe crd $0", {name}));
    }
  }
  notes.Conclude(absl::StrCat(Counted(static_cast<int64_t>(std::size(kCrds)), "kind"), " served"));
}

void CheckOperator(const Evidence& evidence, Notes& notes) {
  CheckComponent(evidence, "operator", notes);
}

void CheckAgents(const Evidence& evidence, Notes& notes) {
  CheckComponent(evidence, "memlock", notes);
  CheckComponent(evidence, "device-plugin", notes);
}

void CheckVersions(const Evidence& evidence, Notes& notes) {
  std::map<std::string, std::set<std::string>> parts;  // by version
  for (const Workload& workload : evidence.workloads) {
    if (!workload.version.empty()) parts[workload.version].insert(workload.component);
  }
  for (const Crd& crd : evidence.crds) {
    if (!crd.version.empty()) parts[crd.version].insert(absl::StrCat("crd ", crd.name));
  }
  if (parts.size() > 1) {
    notes.Warn("",
               absl::StrCat("components have different versions: ",
                            absl::StrJoin(parts, "; ",
                                          [](std::string* out, const auto& entry) {
                                            absl::StrAppend(out, entry.first, ": ",
                                                            absl::StrJoin(entry.second, ", "));
                                          })),
               absl::StrCat(Upgrade(evidence), ", and wait until it is rolled out"));
  } else if (parts.size() == 1 && parts.begin()->first != evidence.version) {
    notes.Warn("",
               absl::StrCat("the cluster has version ", parts.begin()->first,
                            ", this program has version ", evidence.version),
               "use the railhead program of the cluster's version");
  }
  std::map<std::string, std::set<std::string>> images;  // by component
  for (const ComponentPod& pod : evidence.components) images[pod.component].insert(pod.image);
  for (const auto& [component, of_component] : images) {
    if (of_component.size() < 2) continue;
    notes.Warn(component,
               absl::StrCat("pods with different images: ", absl::StrJoin(of_component, ", ")),
               "wait until the rollout is complete; if it does not complete, see the checks "
               "operator and agents");
  }
  for (const Workload& workload : evidence.workloads) {
    if (workload.updated >= workload.made || images[workload.component].size() > 1) continue;
    notes.Warn(absl::StrCat(Path(workload), " in namespace ", workload.space),
               absl::StrCat(workload.updated, " of ", Counted(workload.made, "pod"),
                            " have the current template"),
               About(workload, "kubectl -n $2 rollout status $0/$1"));
  }
  if (!parts.empty()) notes.Conclude(parts.begin()->first);
}

}  // namespace railhead::cli::doctor
