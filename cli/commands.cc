// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/document_error.h"
#include "cli/doctor/diagnose.h"
#include "cli/nccl_log/log_rules.h"

namespace railhead::cli {
namespace {

constexpr char kAbout[] =
    "Shows and checks the RDMA rails of a cluster and the jobs on them. As a kubectl plugin (the\n"
    "name kubectl-railhead in PATH) it accepts kubectl's flags:\n"
    "kubectl railhead doctor --context=prod";

constexpr char kPlanAbout[] =
    "Finds nodes for a gang of pods, or reports why it does not fit. Does not access a cluster.\n"
    "\n"
    "The result is the best by these criteria, in this order: fewest domains of the outermost\n"
    "level (spines), then of each next level inwards (leaves); then all pods on the same rails,\n"
    "which pods of a part of a node only get on a node each; then the least room left in the\n"
    "leaves used; then the order of the file. Ranks follow the fabric.";

constexpr char kPlanFooter[] =
    "A fabric (fabric.yaml):\n"
    "  apiVersion: railhead.io/v1alpha1\n"
    "  kind: FabricModel\n"
    "  metadata: {name: small}\n"
    "  spec:\n"
    "    topology: rail-optimized   # fat-tree, rail-optimized or dragonfly\n"
    "    levels: [spine, leaf]      # outermost first; one nesting of domains for each\n"
    "    rails: 8                   # per node\n"
    "    domains:\n"
    "    - name: sp00\n"
    "      domains:\n"
    "      - name: lf000\n"
    "        nodes:\n"
    "        - {name: n0, gpus: 8, hcas: 8}\n"
    "        - {name: n1, gpus: 8, hcas: 8, usedGpus: 2, usedHcas: 2}\n"
    "        - {name: n2, gpus: 8, hcas: 8, deadRails: [3], unschedulable: \"taint maintenance\"}\n"
    "        - {name: n3, gpus: 8, hcas: 8, usedGpus: 2, usedRails: [0, 1]}   # if known\n"
    "\n"
    "A request (request.yaml):\n"
    "  apiVersion: railhead.io/v1alpha1\n"
    "  kind: PlacementRequest\n"
    "  metadata: {name: job-a}\n"
    "  spec: {pods: 2, gpusPerPod: 4, hcasPerPod: 4, requireLevel: leaf, sameRails: true}\n"
    "\n"
    "Examples:\n"
    "  railhead plan --fabric fabric.yaml --request request.yaml            a diagram\n"
    "  railhead plan --fabric fabric.yaml --request request.yaml -o json    for scripts\n"
    "  railhead plan --fabric f.yaml --request r.yaml --save decision.json  save for --replay\n"
    "  railhead plan --replay decision.json --explain                       repeat and explain\n"
    "  railhead plan --fabric f.yaml --request r.yaml --all-reduce 1MiB,1GiB  ring, tree, SHARP\n"
    "  railhead plan --parameters 70B --within 200ms                        size a cluster\n"
    "  railhead plan --parameters 70B --within 200ms --fabric fabric.yaml   and choose nodes\n"
    "\n"
    "Sizing: n replicas of a model all-reduce gradients of S = parameters x bytes. Each replica\n"
    "sends 2(n-1)/n x S and receives the same amount, divided among its nodes. A node transfers\n"
    "rails x rate / 8 x efficiency bytes per second.\n"
    "\n"
    "All-reduces: a node sends 2(n-1)/n of the bytes in a ring, at most twice the bytes in a "
    "tree,\n"
    "and the bytes once with SHARP, where InfiniBand's switches add. Latencies are those of "
    "NCCL's\n"
    "own model; congestion and late ranks are not in it.\n"
    "\n"
    "Exit status: 0 placed; 2 not placed; 1 bad input (the message names file, line and field),\n"
    "or a replay whose result differs from the saved one.";

constexpr char kTopologyAbout[] =
    "Shows the cluster's fabric and reports errors in it. Reads the running cluster (node labels\n"
    "or the FabricTopology's model), or files, which can list every cable.";

constexpr char kTopologyFooter[] =
    "Without -f, reads from the API server (list nodes, pods and fabrictopologies). With -f,\n"
    "reads any number of files; names do not matter, as the content determines the type of a\n"
    "source:\n"
    "  kubectl get nodes,pods -A -o json > nodes.json        nodes, labels, node facts, usage\n"
    "    (add ,nicinterfacenametemplates if NVIDIA's operator names NICs by rail)\n"
    "  ibnetdiscover > subnet.txt                            InfiniBand: every cable\n"
    "  (lldpcli -f json show chassis;\n"
    "   lldpcli -f json show neighbors details) > n0.json    RoCE: of each node, and of switches\n"
    "                                                        that run lldpd; a file may contain\n"
    "                                                        several outputs\n"
    "  a FabricModel (see `railhead plan --help`), alone     to display it\n"
    "Cables determine where nodes are; where no cable is known, labels do\n"
    "(topology.railhead.io/*, Topograph, AWS, GKE, zones). Without nodes.json, the number of\n"
    "GPUs is taken as 0.\n"
    "\n"
    "Examples:\n"
    "  railhead topology                                              tree of this cluster\n"
    "  railhead topology -f nodes.json subnet.txt                     tree from cables\n"
    "  railhead topology -f nodes.json lldp/*.json -o svg > f.svg     diagram for a browser\n"
    "  railhead topology -f nodes.json subnet.txt -o yaml > f.yaml    fabric for railhead plan\n"
    "  railhead topology -f nodes.json subnet.txt -o labels |\n"
    "    kubectl apply --server-side --field-manager=railhead-topology -f -\n"
    "                 node labels, which sort in the fabric's order. Always use this manager:\n"
    "                 labels of nodes without a place are then removed, and others stay. If a\n"
    "                 uid conflicts, the node is gone: create nodes.json again\n"
    "  railhead topology -f f.yaml --name fabric -o kueue |\n"
    "    kubectl apply --server-side --field-manager=railhead-topology -f -\n"
    "                 a Topology over these labels (or -o kai); -o volcano: HyperNodes, which\n"
    "                 need no labels\n"
    "\n"
    "Rails in the tree: | up, x dead, ! wrong cable.\n"
    "\n"
    "Findings are written to standard error (with -o json, also to the output). Exit status:\n"
    "0 no errors; 2 a finding requires a repair; 1 bad input (the message names file, line and\n"
    "field).";

constexpr char kWhyAbout[] =
    "Reports why a job's pods do not run yet: how many nodes each cause excludes, and the\n"
    "smallest change that would help. For gangs it runs the operator's planner on the cluster's\n"
    "current objects. It changes nothing.";

constexpr char kWhyFooter[] =
    "JOB is the name of a gang, of the owner of the pods (a Job, a JobSet) or of a pod.\n"
    "\n"
    "Examples:\n"
    "  railhead why train -n team-a                            read the cluster (list nodes,\n"
    "                                                          pods, events, fabrictopologies)\n"
    "  railhead why train -o json | jq '.reasons[]'            for scripts\n"
    "  kubectl get nodes,pods,events -A -o json > cluster.json\n"
    "  railhead why train -f cluster.json                      without access to the cluster\n"
    "  railhead why --decision decision.json                   a file of `railhead plan --save`\n"
    "\n"
    "JSON: namespace, name, kind, state (running, placed, waiting, incomplete, timed-out,\n"
    "pending, finished), pods, gated, bound, message; reasons: {cause, nodes, message},\n"
    "{change, nodes, message} or {room, nodes, message}; notes: texts; scheduler:\n"
    "{pods, message}; events: {reason, message}. A gang that fits is placed, or pending if the\n"
    "operator has not started it within a minute.\n"
    "\n"
    "The operator also keeps state that this command does not see: nodes where the scheduler\n"
    "recently rejected a pod, and nodes reserved for a gang that has waited long. Events report\n"
    "both.\n"
    "\n"
    "Exit status: 0 running, about to run or finished; 2 waiting; 1 no such job, or bad input.";

constexpr char kDoctorAbout[] =
    "Checks the cluster, a node or a job, and prints cause and fix of each problem. Its data\n"
    "come from node agents, operator and API server.";

constexpr char kDoctorFooter[] =
    "It reads objects from the API server (list, in pages) and changes nothing. It reports each\n"
    "missing permission and continues. It cannot see inside pods and switches; it prints the\n"
    "commands that can.\n"
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
    "JSON: scope {kind, namespace, name}, result (pass, warn, fail), counts, findings {verdict,\n"
    "check, object, cause, fix}, next {symptom, command}. Colours are used on a terminal unless\n"
    "NO_COLOR is set.\n"
    "\n"
    "Exit status: 0 all pass; 1 warnings; 2 failures, bad input, or no response from the\n"
    "cluster.\n"
    "\n"
    "Checks:";

constexpr char kNcclLogAbout[] =
    "Reads logs of NCCL, and prints cause and fix of each problem: a plugin that is not loaded,\n"
    "sockets instead of RDMA, no GPUDirect, SHARP that is not used or hangs.";

constexpr char kNcclLogFooter[] =
    "It needs lines of NCCL_DEBUG=INFO from the job's start. All ranks may be in one log or in\n"
    "several, with prefixes of kubectl or mpirun, and with other programs' lines.\n"
    "\n"
    "Examples:\n"
    "  kubectl logs -l job-name=train --prefix --tail=-1 | railhead nccl-log -\n"
    "  railhead nccl-log rank0.log rank1.log\n"
    "  railhead nccl-log -o json train.log | jq -r '.findings[].fix'\n"
    "\n"
    "JSON: result (ok, note, warn, fail), version, processes, findings {severity, check, object,\n"
    "observed, fix}.\n"
    "\n"
    "Exit status: 0 no problem; 1 warnings; 2 failures, or bad input.\n"
    "\n"
    "Checks:";

constexpr char kRailsAbout[] =
    "Shows the send rate of each job on each rail, from Prometheus; live with --watch.";

constexpr char kRailsFooter[] =
    "Examples:\n"
    "  kubectl -n monitoring port-forward service/prometheus 9090 &\n"
    "  railhead rails                                     all jobs, now\n"
    "  railhead rails --watch -n team-a                   live, one namespace\n"
    "  railhead rails --job train -o json                 for scripts\n"
    "  railhead rails --at 2026-01-15T12:00:00Z           at a past time\n"
    "  railhead rails --prometheus https://prometheus.example/base\n"
    "\n"
    "JSON: window, jobs {namespace, job, bytesPerSecond, rails {rail, bytesPerSecond,\n"
    "lostRanks}}; with --watch, one document per line.\n"
    "\n"
    "Exit status: 0 all rails work; 2 a rail is lost, or no job sends; 1 bad input, or\n"
    "Prometheus does not respond.";

constexpr char kCompletionAbout[] = "Prints a script that completes commands, flags and values.";

constexpr char kCompletionFooter[] =
    "  source <(railhead completion bash)                             for this shell\n"
    "  railhead completion bash > /etc/bash_completion.d/railhead     for all users\n"
    "  railhead completion zsh > \"${fpath[1]}/_railhead\"\n"
    "  railhead completion fish > ~/.config/fish/completions/railhead.fish\n"
    "\n"
    "For `kubectl railhead`, link kubectl_complete-railhead in PATH to this program as well.";

std::string DoctorFooter() {
  std::string text = kDoctorFooter;
  for (const doctor::Check& check : doctor::Checks()) {
    absl::StrAppend(&text, "\n  ", check.name, std::string(12 - check.name.size(), ' '),
                    check.about);
  }
  return text;
}

// Adds kubectl's flags. They exclude `files`, which replace the cluster.
void AddClusterFlags(CLI::App& command, ClusterFlags& flags, CLI::Option* files) {
  CLI::Option* kubeconfig =
      command
          .add_option("--kubeconfig", flags.kubeconfig,
                      "Kubeconfig file [KUBECONFIG, ~/.kube/config, or the pod's service account]")
          ->type_name("FILE");
  CLI::Option* context =
      command
          .add_option("--context", flags.context, "Context in that file; default: its current one")
          ->type_name("NAME");
  if (files == nullptr) return;
  kubeconfig->excludes(files);
  context->excludes(files);
}

void AddOutput(CLI::App& command, std::string& output) {
  command.add_option("-o,--output", output, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

void AddPlan(CLI::App& app, CommandLine& line) {
  CLI::App* plan = app.add_subcommand("plan", kPlanAbout);
  plan->footer(kPlanFooter);
  plan->add_option("--fabric", line.plan.fabric, "The cluster's fabric; - is standard input")
      ->type_name("FILE");
  CLI::Option* request = plan->add_option("--request", line.plan.request, "The request of the gang")
                             ->type_name("FILE");
  AddOutput(*plan, line.output);
  CLI::Option* explain =
      plan->add_flag("--explain", line.plan.explain,
                     "Also explain the result: which nodes were excluded, and why it needs this "
                     "number of domains (in JSON: the field explanation)");
  CLI::Option* save =
      plan->add_option("--save", line.plan.save, "Save request and result to FILE for --replay")
          ->type_name("FILE");
  CLI::Option* replay =
      plan->add_option(
              "--replay", line.plan.replay,
              "Repeat a request saved with --save, and report whether the result is the same")
          ->type_name("FILE");
  replay->excludes(plan->get_option("--fabric"))->excludes(request);
  CLI::Option* all_reduce =
      plan->add_option("--all-reduce", line.plan.all_reduce.sizes,
                       "Estimate all-reduces of these sizes, such as 64KiB,1GiB, over the nodes "
                       "found: rings, trees and SHARP")
          ->type_name("SIZE,...")
          ->delimiter(',')
          ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
          ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 50));
  plan->add_option("--gpu-gbps", line.plan.all_reduce.gpu_gbps,
                   "For --all-reduce: bandwidth of a GPU to the others of its node")
      ->check(CLI::Range(1.0, 100000.0))
      ->capture_default_str()
      ->needs(all_reduce);
  CLI::Option* parameters =
      plan->add_option("--parameters", line.size.parameters,
                       "Sizing, instead of --request: parameters of the model, such as 70B")
          ->type_name("NUMBER")
          ->excludes(request)
          ->excludes(replay)
          ->excludes(save)
          ->excludes(explain)
          ->excludes(all_reduce);
  const auto sizing = [&](CLI::Option* option) { option->needs(parameters); };
  sizing(plan->add_option("--within", line.size.within,
                          "Maximum time of its all-reduce, such as 200ms")
             ->type_name("TIME"));
  sizing(plan->add_option("--bytes", line.size.bytes_each, "Bytes per gradient")
             ->check(CLI::Range(0.125, 16.0))
             ->capture_default_str());
  sizing(plan->add_option("--rails", line.size.rails, "Rails per node; default: the fabric's, or 8")
             ->check(CLI::Range(1, 64)));
  plan->add_option("--rate-gbps", line.size.rate,
                   "Line rate of a rail; default: the fabric's linkGbps.node, or 400")
      ->check(CLI::Range(0.001, 100000.0));
  plan->add_option("--efficiency", line.size.efficiency,
                   "Fraction of the line rate that an all-reduce reaches")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  CLI::Option* replicas =
      plan->add_option("--replicas", line.size.replicas,
                       "Replicas of the model; default: the maximum that the nodes allow")
          ->check(CLI::Range(2, 1000000));
  sizing(replicas);
  sizing(plan->add_option("--nodes", line.size.nodes,
                          "Nodes for all replicas; default: the free nodes of the fabric")
             ->check(CLI::Range(1, 1000000))
             ->excludes(replicas));
}

void AddTopology(CLI::App& app, CommandLine& line) {
  CLI::App* topology = app.add_subcommand("topology", kTopologyAbout);
  topology->footer(kTopologyFooter);
  CLI::Option* sources =
      topology
          ->add_option("-f,--file", line.topology.files,
                       "Sources to read instead of a cluster; - is standard input")
          ->type_name("SOURCE...");
  AddClusterFlags(*topology, line.cluster, sources);
  topology
      ->add_option("-o,--output", line.topology.output,
                   "text, yaml, json, svg, labels, kueue, kai or volcano")
      ->check(CLI::IsMember({"text", "yaml", "json", "svg", "labels", "kueue", "kai", "volcano"}))
      ->capture_default_str();
  topology->add_option("--name", line.topology.name,
                       "Name of the fabric and of its Topology object; default: the FabricModel's "
                       "name, or \"discovered\"");
}

void AddWhy(CLI::App& app, CommandLine& line) {
  CLI::App* why = app.add_subcommand("why", kWhyAbout);
  why->footer(kWhyFooter);
  CLI::Option* job = why->add_option("JOB", line.why.job, "The job");
  why->add_option("-n,--namespace", line.why.space, "Its namespace; default: any");
  CLI::Option* objects =
      why->add_option("-f,--file", line.why.files,
                      "Nodes, pods and events as JSON, instead of a cluster; - is standard input")
          ->type_name("FILE...");
  AddClusterFlags(*why, line.cluster, objects);
  why->add_option("--decision", line.why.decision, "File written by `railhead plan --save`")
      ->type_name("FILE")
      ->excludes(objects)
      ->excludes(job);
  AddOutput(*why, line.output);
}

void AddDoctor(CLI::App& app, CommandLine& line) {
  CLI::App* doctor = app.add_subcommand("doctor", kDoctorAbout);
  doctor->footer(DoctorFooter());
  doctor
      ->add_option("WHAT", line.doctor_words,
                   "cluster (the default), node NAME, or job NAMESPACE/NAME")
      ->type_name("{cluster,node,job}");
  doctor
      ->add_option("-n,--namespace", line.doctor_space,
                   "Namespace of a job given without one; default: the context's")
      ->type_name("NAME");
  AddClusterFlags(*doctor, line.cluster, nullptr);
  AddOutput(*doctor, line.output);
}

void AddNcclLog(CLI::App& app, CommandLine& line) {
  CLI::App* log = app.add_subcommand("nccl-log", kNcclLogAbout);
  std::string footer = kNcclLogFooter;
  for (const NcclCheck& check : NcclChecks()) {
    absl::StrAppend(&footer, "\n  ", check.name, std::string(21 - check.name.size(), ' '),
                    check.about);
  }
  log->footer(footer);
  log->add_option("FILE", line.nccl_log.files, "Logs; - is standard input")
      ->type_name("FILE...")
      ->required();
  AddOutput(*log, line.output);
}

void AddRails(CLI::App& app, CommandLine& line) {
  CLI::App* rails = app.add_subcommand("rails", kRailsAbout);
  rails->footer(kRailsFooter);
  rails->add_option("--prometheus", line.rails.prometheus, "URL of Prometheus")
      ->type_name("URL")
      ->capture_default_str();
  rails->add_option("-n,--namespace", line.rails.space, "Only jobs of this namespace; default: all")
      ->type_name("NAME");
  rails->add_option("--job", line.rails.job, "Only this job (label job of its metrics)")
      ->type_name("NAME");
  rails->add_option("--window", line.rails.window, "Time window of the rate")
      ->type_name("TIME")
      ->capture_default_str();
  rails->add_option("--at", line.rails.at, "A time in the past; default: now")->type_name("TIME");
  CLI::Option* watch =
      rails->add_flag("-w,--watch", line.rails.watch, "Refresh the table continuously");
  rails->add_option("--interval", line.rails_interval, "Seconds between refreshes")
      ->check(CLI::Range(0.5, 3600.0))
      ->capture_default_str()
      ->needs(watch);
  AddOutput(*rails, line.output);
}

void AddCompletion(CLI::App& app, CommandLine& line) {
  CLI::App* completion = app.add_subcommand("completion", kCompletionAbout);
  completion->footer(kCompletionFooter);
  completion->add_option("SHELL", line.shell, "The shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

}  // namespace

std::unique_ptr<CLI::App> MakeApp(const std::string& name, CommandLine& line) {
  auto app = std::make_unique<CLI::App>(kAbout, name);
  app->set_version_flag("--version", RAILHEAD_VERSION);
  app->require_subcommand(1);
  AddDoctor(*app, line);
  AddNcclLog(*app, line);
  AddWhy(*app, line);
  AddTopology(*app, line);
  AddPlan(*app, line);
  AddRails(*app, line);
  AddCompletion(*app, line);
  return app;
}

void CheckTogether(const CLI::App& app, const CommandLine& line) {
  if (app.got_subcommand("why") && line.why.job.empty() && line.why.decision.empty()) {
    throw CLI::RequiredError("JOB, or --decision");
  }
  if (!app.got_subcommand("plan")) return;
  if (line.size.parameters.empty() && line.plan.all_reduce.sizes.empty()) {
    const CLI::App& plan = *app.get_subcommand("plan");
    for (const char* name : {"--rate-gbps", "--efficiency"}) {
      if (plan.count(name) > 0) throw CLI::RequiresError(name, "--parameters or --all-reduce");
    }
  }
  if (!line.plan.replay.empty()) return;
  if (!line.size.parameters.empty()) {
    if (line.size.within.empty()) throw CLI::RequiredError("--within");
  } else if (line.plan.fabric.empty() || line.plan.request.empty()) {
    throw CLI::RequiredError("--fabric and --request, --replay, or --parameters");
  }
}

std::string Advice(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  for (const std::string& argument : arguments) {
    std::vector<std::string> known;
    if (!absl::StartsWith(argument, "-")) {
      if (command != &app) continue;
      for (const CLI::App* other : app.get_subcommands([](const CLI::App*) { return true; })) {
        known.push_back(other->get_name());
        if (other->get_name() == argument) command = other;
      }
      if (command != &app) continue;
    } else {
      const std::string flag = argument.substr(0, argument.find('='));
      bool is_known = !absl::StartsWith(flag, "--") || flag == "--";
      for (const CLI::Option* option : command->get_options()) {
        for (const std::string& name : option->get_lnames()) {
          known.push_back("--" + name);
          is_known = is_known || flag == known.back();
        }
      }
      if (is_known) continue;
    }
    const std::string nearest = NearestText(argument.substr(0, argument.find('=')), known);
    if (!nearest.empty()) return absl::StrCat("did you mean ", nearest, "?");
    return command == &app && !known.empty() && !absl::StartsWith(argument, "-")
               ? absl::StrCat("the commands are ", ListedTexts(known, " and "))
               : "";
  }
  return "";
}

}  // namespace railhead::cli
