// SPDX-License-Identifier: Apache-2.0
//
// railhead: what a person asks about rails, jobs and where they go.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/cluster.h"
#include "cli/doctor/diagnose.h"
#include "cli/doctor/doctor.h"
#include "cli/plan.h"
#include "cli/topology.h"
#include "cli/why.h"
#include "fabric/printable_text.h"
#include "kube/client.h"

namespace railhead::cli {
namespace {

constexpr char kAbout[] =
    "railhead: RDMA rails of a cluster, and the jobs on them.\n"
    "Works as a kubectl plugin too, under the name kubectl-railhead.";

constexpr char kPlanAbout[] =
    "Says on which nodes a gang of pods would run, or why it cannot, without asking a cluster.\n"
    "\n"
    "The answer is the best there is, by this order: fewest domains of the outermost level "
    "(spines),\n"
    "then of each next level inwards (leaves); then all pods on the same rails; then the least "
    "room\n"
    "left in the leaves used; then the order of the file. Ranks follow the fabric.";

constexpr char kPlanFooter[] =
    "A fabric (fabric.yaml):\n"
    "  apiVersion: railhead.io/v1alpha1\n"
    "  kind: FabricModel\n"
    "  metadata: {name: small}\n"
    "  spec:\n"
    "    topology: rail-optimized   # fat-tree, rail-optimized or dragonfly\n"
    "    levels: [spine, leaf]      # outermost first; domains nest once for each\n"
    "    rails: 8                   # of a node\n"
    "    domains:\n"
    "    - name: sp00\n"
    "      domains:\n"
    "      - name: lf000\n"
    "        nodes:\n"
    "        - {name: n0, gpus: 8, hcas: 8}\n"
    "        - {name: n1, gpus: 8, hcas: 8, usedGpus: 2, usedHcas: 2}\n"
    "        - {name: n2, gpus: 8, hcas: 8, deadRails: [3], unschedulable: \"taint maintenance\"}\n"
    "        - {name: n3, gpus: 8, hcas: 8, usedGpus: 2, usedRails: [0, 1]}   # which, if known\n"
    "\n"
    "A request (request.yaml):\n"
    "  apiVersion: railhead.io/v1alpha1\n"
    "  kind: PlacementRequest\n"
    "  metadata: {name: job-a}\n"
    "  spec: {pods: 2, gpusPerPod: 4, hcasPerPod: 4, requireLevel: leaf, sameRails: true}\n"
    "\n"
    "Examples:\n"
    "  railhead plan --fabric fabric.yaml --request request.yaml            a picture\n"
    "  railhead plan --fabric fabric.yaml --request request.yaml -o json    for scripts\n"
    "  railhead plan --fabric f.yaml --request r.yaml --save decision.json  to send to somebody\n"
    "  railhead plan --replay decision.json --explain                       who asks again\n"
    "\n"
    "Exit status: 0 placed; 2 not placed; 1 bad input (the message names file, line and field), or "
    "a\n"
    "replay whose answer is not the one that was saved.";

constexpr char kTopologyAbout[] =
    "Says what the cluster's fabric is, and what is wrong with it: of the cluster as it is now, "
    "by\n"
    "nodes' labels or the FabricTopology's model; or out of files, which may know every cable.";

constexpr char kTopologyFooter[] =
    "Without -f, reads from the API server (list nodes, pods and fabrictopologies). Sources, in "
    "files\n"
    "of any name and number, are told apart by what is in them:\n"
    "  kubectl get nodes,pods -A -o json > nodes.json        nodes, labels, node facts, what is "
    "used\n"
    "    (and ,nicinterfacenametemplates where NVIDIA's operator names NICs by their rails)\n"
    "  ibnetdiscover > subnet.txt                            InfiniBand: every cable\n"
    "  (lldpcli -f json show chassis;\n"
    "   lldpcli -f json show neighbors details) > n0.json    RoCE: of each node, and of switches "
    "that\n"
    "                                                        run lldpd; or one behind the other "
    "in\n"
    "                                                        one file\n"
    "  a FabricModel (see `railhead plan --help`), alone     to look at it\n"
    "Cables decide where nodes are, or labels where no cable was seen (topology.railhead.io/*,\n"
    "Topograph, AWS, GKE, zones). Without nodes.json, GPUs are not known and counted as 0.\n"
    "\n"
    "Examples:\n"
    "  railhead topology                                              a tree, of this cluster\n"
    "  railhead topology -f nodes.json subnet.txt                     the same, by its cables\n"
    "  railhead topology -f nodes.json lldp/*.json -o svg > f.svg     a picture, for a browser\n"
    "  railhead topology -f nodes.json subnet.txt -o yaml > f.yaml    a fabric for railhead plan\n"
    "  railhead topology -f nodes.json subnet.txt -o labels |\n"
    "    kubectl apply --server-side --field-manager=railhead-topology -f -\n"
    "                 nodes' labels, which sort in the fabric's order. With this manager always, "
    "so\n"
    "                 that labels of a node without a place go, and others stay. A conflict over "
    "a\n"
    "                 uid: the node has gone; ask for nodes.json again\n"
    "  railhead topology -f f.yaml --name fabric -o kueue |\n"
    "    kubectl apply --server-side --field-manager=railhead-topology -f -\n"
    "                 a Topology over these labels (or -o kai); -o volcano: HyperNodes, which "
    "need\n"
    "                 no labels\n"
    "\n"
    "In the tree a rail is | where it is up, x where it is dead, ! where its cable is wrong.\n"
    "\n"
    "Findings go to standard error (and with -o json into the answer). Exit status: 0; 2 where\n"
    "something should be mended; 1 bad input (the message names file, line and field).";

constexpr char kWhyAbout[] =
    "Says why a job's pods do not run yet: how many nodes each cause excludes, and the smallest "
    "change\n"
    "that would help. For gangs it asks the operator's own planner, out of the cluster's objects "
    "as "
    "they\n"
    "are; nothing is changed.";

constexpr char kWhyFooter[] =
    "JOB is the name of a gang, of what owns the pods (a Job, a JobSet) or of a pod.\n"
    "\n"
    "Examples:\n"
    "  railhead why train -n team-a                            ask the cluster (list of nodes,\n"
    "                                                          pods, events, fabrictopologies)\n"
    "  railhead why train -o json | jq '.reasons[]'            for scripts\n"
    "  kubectl get nodes,pods,events -A -o json > cluster.json\n"
    "  railhead why train -f cluster.json                      without a cluster, or somewhere "
    "else\n"
    "  railhead why --decision decision.json                   of `railhead plan --save`\n"
    "\n"
    "JSON: namespace, name, kind, state (running, placed, waiting, incomplete, timed-out, "
    "pending), "
    "pods,\n"
    "gated, bound, message; reasons: {cause, nodes, message}, {change, nodes, message} or {room, "
    "nodes,\n"
    "message}; scheduler: {pods, message}; events: {reason, message}.\n"
    "\n"
    "What the operator alone remembers is not looked at: nodes where the scheduler has refused a "
    "pod\n"
    "lately, and nodes that are kept free for a gang that has waited for long; the events say so.\n"
    "\n"
    "Exit status: 0 it runs, or is about to; 2 it waits; 1 no such job, or bad input.";

constexpr char kDoctorAbout[] =
    "Checks the cluster, a node or a job: what agents, operator and API server know, with cause "
    "and fix.";

constexpr char kDoctorFooter[] =
    "It reads objects from the API server (list, in pages) and changes nothing. Without a right it "
    "says\n"
    "which, and goes on. What only a pod or a switch can see it cannot: it prints the commands for "
    "that.\n"
    "\n"
    "Examples:\n"
    "  railhead doctor                            the cluster\n"
    "  railhead doctor node gpu-007               a node, and the pods on it\n"
    "  railhead doctor job team-a/train           a job, gang or pod, and its nodes\n"
    "  railhead doctor job train -n team-a        the same\n"
    "  railhead doctor --context=prod             another context of the kubeconfig\n"
    "  railhead doctor -o json |\n"
    "    jq -r '.findings[] | select(.verdict == \"fail\") | .object + \": \" + .fix'\n"
    "  railhead doctor || echo 'look at it'       for cron\n"
    "\n"
    "JSON: scope {kind, namespace, name}, result (pass, warn, fail), counts, findings {verdict, "
    "check,\n"
    "object, cause, fix}, next {symptom, command}. Colours only on a terminal, and not with "
    "NO_COLOR.\n"
    "\n"
    "Exit status: 0 all pass; 1 warnings; 2 failures, bad input, or a cluster that does not "
    "answer.\n"
    "\n"
    "Checks:";

std::string DoctorFooter() {
  std::string text = kDoctorFooter;
  for (const doctor::Check& check : doctor::Checks()) {
    absl::StrAppend(&text, "\n  ", check.name, std::string(12 - check.name.size(), ' '),
                    check.about);
  }
  return text;
}

int Doctor(const std::vector<std::string>& words, bool json, const std::string& space,
           const ClusterFlags& cluster) {
  const auto fail = [](const absl::Status& status) {
    std::cerr << "railhead doctor: " << fabric::PrintableText(status.message()) << "\n";
    return doctor::kFailed;
  };
  const absl::StatusOr<ReachedCluster> reached = ReachCluster(cluster);
  absl::StatusOr<doctor::Scope> scope =
      doctor::ParseScope(words, space.empty() && reached.ok() ? reached->space : space);
  if (!scope.ok()) return fail(scope.status());
  if (!reached.ok()) return fail(reached.status());
  const bool colours = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  return doctor::RunDoctor({*std::move(scope), json, colours, RAILHEAD_VERSION}, *reached->api,
                           absl::Now(), std::cout, std::cerr);
}

int Why(const WhyOptions& options, const ClusterFlags& cluster) {
  if (!options.files.empty() || !options.decision.empty()) {
    return RunWhy(options, nullptr, absl::Now(), std::cout, std::cerr);
  }
  const absl::StatusOr<ReachedCluster> reached = ReachCluster(cluster);
  if (!reached.ok()) {
    std::cerr << "railhead why: " << reached.status().message()
              << "; or give -f with what `kubectl get nodes,pods,events -A -o json` prints\n";
    return kBadInput;
  }
  return RunWhy(options, reached->api.get(), absl::Now(), std::cout, std::cerr);
}

int Topology(const TopologyOptions& options, const ClusterFlags& cluster) {
  if (!options.files.empty()) return RunTopology(options, nullptr, std::cout, std::cerr);
  const absl::StatusOr<ReachedCluster> reached = ReachCluster(cluster);
  if (!reached.ok()) {
    std::cerr << "railhead topology: " << reached.status().message()
              << "; or give -f with the sources (--help)\n";
    return kBadSource;
  }
  return RunTopology(options, reached->api.get(), std::cout, std::cerr);
}

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// kubectl's flags. They say nothing where `files` are read instead.
void AddClusterFlags(CLI::App& command, ClusterFlags& flags, CLI::Option* files) {
  CLI::Option* kubeconfig = command
                                .add_option("--kubeconfig", flags.kubeconfig,
                                            "How to reach the cluster [KUBECONFIG, ~/.kube/config]")
                                ->type_name("FILE");
  CLI::Option* context =
      command.add_option("--context", flags.context, "Context of that file; else its current one")
          ->type_name("NAME");
  if (files == nullptr) return;
  kubeconfig->excludes(files);
  context->excludes(files);
}

int Main(int argc, char** argv) {
  CLI::App app(kAbout, "railhead");
  app.set_version_flag("--version", RAILHEAD_VERSION);
  app.require_subcommand(1);
  PlanOptions options;
  std::string output = "text";
  CLI::App* plan = app.add_subcommand("plan", kPlanAbout);
  plan->footer(kPlanFooter);
  CLI::Option* fabric =
      plan->add_option("--fabric", options.fabric, "The cluster's fabric; - is standard input")
          ->type_name("FILE");
  CLI::Option* request =
      plan->add_option("--request", options.request, "What the gang asks for")->type_name("FILE");
  plan->add_option("-o,--output", output, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  plan->add_flag("--explain", options.explain,
                 "Also say how the answer came about: which nodes were left out, and why it takes "
                 "as many domains as it does (in JSON: the field explanation)");
  plan->add_option("--save", options.save,
                   "Save request and result to FILE, from which the request can be repeated")
      ->type_name("FILE");
  CLI::Option* replay = plan->add_option("--replay", options.replay,
                                         "Ask the question of a file from --save again, and say "
                                         "whether the answer is the same")
                            ->type_name("FILE");
  replay->excludes(fabric)->excludes(request);
  TopologyOptions topology_options;
  CLI::App* topology = app.add_subcommand("topology", kTopologyAbout);
  topology->footer(kTopologyFooter);
  CLI::Option* sources = topology
                             ->add_option("-f,--file", topology_options.files,
                                          "The sources, instead of a cluster; - is standard input")
                             ->type_name("SOURCE...");
  ClusterFlags cluster;
  AddClusterFlags(*topology, cluster, sources);
  topology
      ->add_option("-o,--output", topology_options.output,
                   "text, yaml, json, svg, labels, kueue, kai or volcano")
      ->check(CLI::IsMember({"text", "yaml", "json", "svg", "labels", "kueue", "kai", "volcano"}))
      ->capture_default_str();
  topology->add_option("--name", topology_options.name,
                       "What the fabric is called, and its Topology object; of a FabricModel its "
                       "own name, else \"discovered\"");
  WhyOptions why_options;
  CLI::App* why = app.add_subcommand("why", kWhyAbout);
  why->footer(kWhyFooter);
  CLI::Option* job = why->add_option("JOB", why_options.job, "The job");
  why->add_option("-n,--namespace", why_options.space, "Its namespace; else any");
  CLI::Option* objects =
      why->add_option("-f,--file", why_options.files,
                      "Nodes, pods and events as JSON, instead of a cluster; - is standard input")
          ->type_name("FILE...");
  AddClusterFlags(*why, cluster, objects);
  why->add_option("--decision", why_options.decision, "A file of `railhead plan --save`")
      ->type_name("FILE")
      ->excludes(objects)
      ->excludes(job);
  why->add_option("-o,--output", output, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  CLI::App* doctor = app.add_subcommand("doctor", kDoctorAbout);
  doctor->footer(DoctorFooter());
  std::vector<std::string> doctor_words;
  std::string doctor_space;
  doctor
      ->add_option("WHAT", doctor_words, "cluster (the default), node NAME, or job NAMESPACE/NAME")
      ->type_name("");
  doctor->add_option("-n,--namespace", doctor_space, "Namespace of a job that is named without one")
      ->type_name("NAME");
  AddClusterFlags(*doctor, cluster, nullptr);
  doctor->add_option("-o,--output", output, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
    if (why->parsed() && job->empty() && why_options.decision.empty()) {
      throw CLI::RequiredError("JOB, or --decision");
    }
    if (plan->parsed() && options.replay.empty() && (fabric->empty() || request->empty())) {
      throw CLI::RequiredError("--fabric and --request, or --replay");
    }
  } catch (const CLI::ParseError& error) {
    // CLI11 has a number for each kind of mistake; here all of them are bad input.
    if (app.exit(error) == 0) return 0;
    return doctor->parsed() ? doctor::kFailed : kBadInput;
  }
  if (topology->parsed()) return Topology(topology_options, cluster);
  if (doctor->parsed()) return Doctor(doctor_words, output == "json", doctor_space, cluster);
  options.json = output == "json";
  why_options.json = options.json;
  if (why->parsed()) return Why(why_options, cluster);
  return RunPlan(options, Seconds, std::cout, std::cerr);
}

}  // namespace
}  // namespace railhead::cli

int main(int argc, char** argv) { return railhead::cli::Main(argc, argv); }
