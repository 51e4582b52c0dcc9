// SPDX-License-Identifier: Apache-2.0
#include "runtime/config/env.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/printable_text.h"
#include "fabric/rail_limit.h"
#include "runtime/config/world.h"

namespace railhead::config {
namespace {

// Output of the parsers: a variable is stored in one of the two.
struct Target {
  Rendezvous rendezvous;
  Settings settings;
};

constexpr size_t kLongestInterface = 15;  // of a name that Linux allows

// Parses the text into the target. Returns "" or what is allowed ("a number from 1 to 5").
using Parser = std::string (*)(const std::string& text, Target& target);

enum class Group { kRendezvous, kSettings };

// kYes: all ranks of a communicator must set this field of rhConfig_t to the same value.
enum class Alike : uint8_t { kNo, kYes };

struct Variable {
  Group group;
  const char* name;
  const char* fallback;  // for people; the value itself is the initialiser of the struct
  const char* help;
  Parser parse;
  const char* field = "";  // of rhConfig_t; "": a program cannot set it
  Alike alike = Alike::kNo;
};

std::string ParseInteger(const std::string& text, int low, int high, int& into) {
  int value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < low || value > high) {
    return absl::StrCat("a whole number from ", low, " to ", high);
  }
  into = value;
  return "";
}

std::string ParseName(const std::string& text, size_t limit, std::string& into) {
  if (text.size() > limit) return absl::StrCat("a text of at most ", limit, " bytes");
  if (!IsPrintableText(text)) {
    return "a text in UTF-8 without control characters and invisible ones";
  }
  into = text;
  return "";
}

std::string ParseInterfaces(const std::string& text, Settings& into) {
  std::vector<std::string> names = absl::StrSplit(text, ',');
  for (std::string& name : names) {
    name = std::string(absl::StripAsciiWhitespace(name));
    std::string wrong =
        name.empty() ? "names separated by commas" : ParseName(name, kLongestInterface, name);
    if (!wrong.empty()) return wrong;
  }
  if (names.size() > fabric::kMaxRails) {
    return absl::StrCat("at most ", fabric::kMaxRails, " names");
  }
  into.socket_ifname = names.front();
  into.more_socket_ifnames.assign(names.begin() + 1, names.end());
  return "";
}

// Numbers and ranges of them: "0,2,4-7".
std::string ParseRails(const std::string& text, std::vector<int>& into) {
  std::set<int> rails;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(absl::StripAsciiWhitespace(part), absl::MaxSplits('-', 1));
    int first = 0;
    int last = 0;
    const bool one = !absl::StrContains(part, '-');
    if (!absl::SimpleAtoi(ends.first, &first) ||
        !absl::SimpleAtoi(one ? ends.first : ends.second, &last) || first < 0 || last < first ||
        last > fabric::kHighestRail) {
      return absl::StrCat("rails such as 0,2 or 0-3, numbered from 0 to ", fabric::kHighestRail);
    }
    for (int rail = first; rail <= last; ++rail) rails.insert(rail);
  }
  into.assign(rails.begin(), rails.end());
  return "";
}

std::string ParseAuth(const std::string& text, Settings& into) {
  FrameWish frames = FrameWish::kPlain;
  bool require = false;
  if (absl::StripAsciiWhitespace(text) == "off") {
    into.frames = frames;
    into.require_secret = require;
    into.use_secret = false;
    return "";
  }
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const absl::string_view value = absl::StripAsciiWhitespace(word);
    if (value == "frames") {
      frames = std::max(frames, FrameWish::kSigned);
    } else if (value == "encrypt") {
      frames = FrameWish::kEncrypted;
    } else if (value == "require") {
      require = true;
    } else if (value != "handshake") {
      return "off alone, or handshake, frames, encrypt or require, or several of these separated "
             "by commas";
    }
  }
  into.use_secret = true;
  into.frames = frames;
  into.require_secret = require;
  return "";
}

// The highest bit marks full members, the others identify the partition; 0 is not a partition.
std::string ParsePkey(const std::string& text, int& into) {
  constexpr uint32_t kPartition = 0x7fff;
  constexpr uint32_t kLast = 0xffff;
  uint32_t value = 0;
  const bool number = absl::StartsWith(text, "0x") ? absl::SimpleHexAtoi(text, &value)
                                                   : absl::SimpleAtoi(text, &value);
  if (!number || value > kLast || (value & kPartition) == 0) {
    return "a P_Key such as 0x8001, from 0x0001 to 0xffff";
  }
  into = static_cast<int>(value);
  return "";
}

std::string ParseTimeout(const std::string& text, absl::Duration& into) {
  int seconds = 0;
  std::string wrong = ParseInteger(text, 1, 86400, seconds);
  if (wrong.empty()) into = absl::Seconds(seconds);
  return wrong;
}

std::string ParseSwitch(const std::string& text, bool& into) {
  if (text != "0" && text != "1") return "0 or 1";
  into = text == "1";
  return "";
}

// Parser of variables that the table only describes: FindWorld, WhyNotSet and plugins/nccl read
// them.
std::string ReadElsewhere(const std::string& /*text*/, Target& /*to*/) { return ""; }

constexpr const char* kRails = "rails";  // a field

// Limits of plausible values; larger ones are errors.
constexpr int kLastPort = 65535;
constexpr size_t kLongestName = 253;  // of a DNS name, and so of anything in Kubernetes
constexpr size_t kLongestPath = 4095;
constexpr size_t kLongestReason = 700;  // of the operator's text; it writes less
constexpr absl::string_view kNotDone = "RAILHEAD_NOT_DONE";

constexpr auto kTable = std::to_array<Variable>({
    {Group::kRendezvous, "RANK", "required",
     "This process's number in the job, from 0. A launcher that has started the process applies "
     "instead, with its own variables: OMPI_COMM_WORLD_RANK and _SIZE (mpirun of Open MPI), "
     "PMI_RANK and PMI_SIZE (mpiexec of MPICH and Intel MPI), FLUX_TASK_RANK and FLUX_JOB_SIZE "
     "(flux run), SLURM_PROCID and SLURM_STEP_NUM_TASKS or SLURM_NTASKS (srun; SLURM_STEP_ID must "
     "be set, too). If several are set, the innermost launcher applies: torchrun, which sets RANK "
     "itself, then the others in this order. A process of a Slurm job outside of a step of srun "
     "is a job of one rank.",
     ReadElsewhere},
    {Group::kRendezvous, "WORLD_SIZE", "required", "Number of processes of the job.",
     ReadElsewhere},
    {Group::kRendezvous, "RAILHEAD_WORLD", "auto",
     "Which variables apply if a pod has RANK and WORLD_SIZE and a launcher has started the "
     "process. launcher: the launcher's. pod: RANK and WORLD_SIZE. auto: the launcher's, with a "
     "line in the log of rank 0 if the two differ; if WORLD_SIZE is larger, the start fails. Must "
     "be the same on all ranks.",
     ReadElsewhere},
    {Group::kRendezvous, "MASTER_ADDR", "required, except on rank 0 and for launchers on one host",
     "Host name or address of rank 0; an IPv6 address may be in brackets. If DNS does not know it "
     "yet, ranks retry. Without it, ranks find each other if mpirun, mpiexec, flux run or srun has "
     "started all of them on one host; MASTER_PORT is not used then.",
     [](const std::string& text, Target& to) {
       std::string& address = to.rendezvous.master_addr;
       std::string wrong = ParseName(text, kLongestName, address);
       if (absl::StartsWith(address, "[") && absl::EndsWith(address, "]")) {
         address = address.substr(1, address.size() - 2);
       }
       return wrong;
     }},
    {Group::kRendezvous, "MASTER_PORT", "29500",
     "Port on which rank 0 accepts the other ranks. Under torchrun, it is the port of the agent's "
     "store (TORCHELASTIC_USE_AGENT_STORE=True): rank 0 chooses another port and publishes it in "
     "that store.",
     [](const std::string& text, Target& to) {
       return ParseInteger(text, 1, kLastPort, to.rendezvous.master_port);
     }},
    {Group::kRendezvous, "RAILHEAD_NOT_DONE", "none",
     "Reason why the Railhead operator has not set these; the pod's annotation "
     "railhead.io/not-done has it in words. Part of the error if one of them is missing.",
     ReadElsewhere},
    {Group::kSettings, "RAILHEAD_JOB", "default",
     "Name of the job, and a label of every metric. Ranks with another job name are rejected, and "
     "so are ranks that another launcher's job has started. Ranks that no launcher has started, on "
     "one host, must have a name or a common process that has started them, such as a script.",
     [](const std::string& text, Target& to) {
       return ParseName(text, kLongestName, to.settings.job);
     }},
    {Group::kSettings, "RAILHEAD_SECRET_FILE", "that of RAILHEAD_JOB_SECRET",
     "Path of a file, for example in a mounted Secret, with at least 16 bytes that only this "
     "job's ranks know. Ranks prove to each other that they know it, without sending it. Set "
     "it on all ranks or none.",
     [](const std::string& text, Target& to) {
       return ParseName(text, kLongestPath, to.settings.secret_file);
     },
     "secretFile"},
    {Group::kSettings, "RAILHEAD_JOB_SECRET", "auto",
     "auto: without RAILHEAD_SECRET_FILE and an id, ranks use the secret that the node agent gives "
     "to each job (/run/railhead/secret/key). Without one, any process that knows the job's name "
     "can join. off: do not use it, for example where some ranks run in pods without RDMA devices, "
     "which get none. Must be the same on all ranks.",
     [](const std::string& text, Target& to) -> std::string {
       if (text != "auto" && text != "off") return "auto or off";
       to.settings.job_secret = text == "auto";
       return "";
     }},
    {Group::kSettings, "RAILHEAD_AUTH", "handshake",
     "Authentication between ranks; a list such as frames,require. off: the job's secret is "
     "not used, neither RAILHEAD_SECRET_FILE nor that of the node agent, so that any process that "
     "knows the job's name can join it; must be set on all ranks or none. handshake: both sides "
     "of every connection prove that they belong to this job. frames: in addition, "
     "every frame over TCP is signed, so that it cannot be changed or inserted in transit. "
     "encrypt: its data is encrypted, too. A job that needs the network must then use TCP "
     "(RAILHEAD_TRANSPORT=tcp) and have a secret, or it fails at start. require: a job without a "
     "secret (RAILHEAD_SECRET_FILE, RAILHEAD_JOB_SECRET, or an id) fails "
     "at start on all ranks. If ranks differ, the strictest value applies.",
     [](const std::string& text, Target& to) { return ParseAuth(text, to.settings); }},
    {Group::kSettings, "RAILHEAD_POD", "empty",
     "Name of this pod, for messages. Processes with the same one share a metrics page.",
     [](const std::string& text, Target& to) {
       return ParseName(text, kLongestName, to.settings.pod);
     }},
    {Group::kSettings, "RAILHEAD_NODE", "empty", "Name of this node, for messages.",
     [](const std::string& text, Target& to) {
       return ParseName(text, kLongestName, to.settings.node);
     }},
    {Group::kSettings, "RAILHEAD_RAILS_FILE", "/run/railhead/rails.json",
     "File in which the device plugin lists the RDMA rails given to this pod.",
     [](const std::string& text, Target& to) {
       return ParseName(text, kLongestPath, to.settings.rails_file);
     }},
    {Group::kSettings, "RAILHEAD_RAILS", "all of them",
     "RDMA rails of RAILHEAD_RAILS_FILE to use, for example 0,2 or 0-3; others are ignored. "
     "Must be the same on all ranks.",
     [](const std::string& text, Target& to) { return ParseRails(text, to.settings.rails); },
     kRails, Alike::kYes},
    {Group::kSettings, "RAILHEAD_TRANSPORT", "auto",
     "auto: shared memory inside pods; between them RDMA if every rank has it, else TCP. "
     "verbs: RDMA between all ranks, also inside pods; TCP counts as degraded even without a "
     "rails file. tcp: TCP between all ranks, also inside pods. shm: shared memory, or fail.",
     [](const std::string& text, Target& to) -> std::string {
       for (const TransportChoice choice : {TransportChoice::kAuto, TransportChoice::kVerbs,
                                            TransportChoice::kTcp, TransportChoice::kShm}) {
         if (text == TransportChoiceName(choice)) {
           to.settings.transport = choice;
           return "";
         }
       }
       return "auto, verbs, tcp or shm";
     },
     "transport", Alike::kYes},
    {Group::kSettings, "RAILHEAD_REQUIRE_RDMA", "0",
     "1: fail on all ranks at start instead of falling back to TCP. Fewer rails than given "
     "are accepted unless RAILHEAD_FALLBACK=fail.",
     [](const std::string& text, Target& to) {
       return ParseSwitch(text, to.settings.require_rdma);
     }},
    {Group::kSettings, "RAILHEAD_FALLBACK", "warn",
     "Action if a job would start with less RDMA than its ranks were given: on fewer rails, or "
     "over TCP. fail: all ranks fail with the reason. warn: the job runs, and every rank "
     "warns with the reason. allow: the job runs without a warning; rhCommGetInfo and "
     "railhead_degraded show it. If ranks differ, the strictest value applies.",
     [](const std::string& text, Target& to) -> std::string {
       for (const Fallback fallback : {Fallback::kAllow, Fallback::kWarn, Fallback::kFail}) {
         if (text == FallbackName(fallback)) {
           to.settings.fallback = fallback;
           return "";
         }
       }
       return "fail, warn or allow";
     },
     "fallback", Alike::kYes},
    {Group::kSettings, "RAILHEAD_SOCKET_IFNAME", "the interface with the route to the other ranks",
     "Network interfaces of TCP transfers, for example eth0 or eth1,eth2. Each is a rail; "
     "transfers use all rails at once, in proportion to their speed. All ranks must list the "
     "same number, in the same order. One that is down is used when it is up. Give each a subnet "
     "of "
     "its own: in one subnet, sockets are bound to their interface where the kernel permits it, "
     "and "
     "each rank warns if its bytes leave by another one.",
     [](const std::string& text, Target& to) { return ParseInterfaces(text, to.settings); },
     "socketIfname"},
    {Group::kSettings, "RAILHEAD_IB_TC", "0",
     "Traffic class of packets on RDMA rails, 0 to 255: DSCP times 4 plus ECN bits, matching "
     "the fabric's lossless class. Must be the same on all ranks.",
     [](const std::string& text, Target& to) {
       return ParseInteger(text, 0, 255, to.settings.ib_traffic_class);
     }},
    {Group::kSettings, "RAILHEAD_IB_SL", "0",
     "Service level of packets on RDMA rails: 0 to 15 on InfiniBand; on RoCE the VLAN "
     "priority, 0 to 7. Must be the same on all ranks.",
     [](const std::string& text, Target& to) {
       return ParseInteger(text, 0, 15, to.settings.ib_service_level);
     }},
    {Group::kSettings, "RAILHEAD_IB_PKEY",
     "a partition that both ports are in, preferably as full members",
     "P_Key of the InfiniBand partition of RDMA rails, for example 0x8001. The membership bit "
     "is ignored: the port's table determines full or limited membership.",
     [](const std::string& text, Target& to) { return ParsePkey(text, to.settings.ib_pkey); }},
    {Group::kSettings, "RAILHEAD_IB_QPS_PER_RAIL", "1",
     "Queue pairs per connection over an RDMA rail, 1 to 8. A fabric that spreads flows over "
     "equal paths (ECMP) sends each queue pair over one path: several use more paths, and "
     "lose less if one is congested. If two ranks differ, the smaller number applies. iWARP "
     "always has one.",
     [](const std::string& text, Target& to) {
       return ParseInteger(text, 1, 8, to.settings.ib_qps_per_rail);
     }},
    {Group::kSettings, "RAILHEAD_METRICS_PORT", "9402",
     "Port of the /metrics page for Prometheus; 0 disables it. All processes of a pod share the "
     "page: one of them serves it, and another takes over when that one ends.",
     [](const std::string& text, Target& to) {
       return ParseInteger(text, 0, kLastPort, to.settings.metrics_port);
     }},
    {Group::kSettings, "RAILHEAD_TIMEOUT_SECONDS", "60",
     "Time in seconds that a collective called by all ranks may make no progress before it "
     "fails, or a rank may not answer while others wait. A live rank that has not called yet is "
     "waited for, and every rank's log names it.",
     [](const std::string& text, Target& to) { return ParseTimeout(text, to.settings.timeout); },
     "timeoutSeconds", Alike::kYes},
    {Group::kSettings, "RAILHEAD_START_TIMEOUT_SECONDS", "that of RAILHEAD_TIMEOUT_SECONDS",
     "Time in seconds to wait for the other ranks at start.",
     [](const std::string& text, Target& to) {
       absl::Duration start;
       std::string wrong = ParseTimeout(text, start);
       if (wrong.empty()) to.settings.start_timeout = start;
       return wrong;
     },
     "startTimeoutSeconds", Alike::kYes},
    {Group::kSettings, "RAILHEAD_ALGO",
     "empty: the fastest, by a model of the network and by trials",
     "Algorithms of collectives, for example "
     "all_reduce<=64K=recursive_doubling,all_reduce=ring; the first matching entry applies. "
     "Must be the same on all ranks. Disables trials of the matching calls, and so gives "
     "bit-identical results from call to call. An entry that cannot be applied fails the "
     "start with the reason; rhAlltoAllv is always pairwise. railhead-perf --explain lists the "
     "algorithms, and why one is chosen.",
     [](const std::string& text, Target& to) {
       return ParseName(text, kLongestPath, to.settings.algorithms);
     }},
    {Group::kSettings, "RAILHEAD_NCCL_TUNER", "off",
     "For NCCL with libnccl-net-railhead.so: the rate and the speed in Gbit/s of each rail of the "
     "slowest node, for example 400/400,100/400; the rate of a lost rail is 0. NCCL's costs of "
     "algorithms and protocols then count the network as that much slower. off: NCCL's own costs. "
     "Must be the same on all ranks: NCCL lets each rank choose, and ranks that choose differently "
     "hang.",
     ReadElsewhere},
    {Group::kSettings, "RAILHEAD_NCCL_GPU_MEMORY", "auto",
     "GPUDirect with libnccl-net-railhead.so: auto: where the node has it (dma-buf or "
     "nvidia-peermem, and all rails are RDMA rails that are open); off: NCCL copies through the "
     "host; dmabuf, peermem: only in this way, peermem even if no module for it is found.",
     ReadElsewhere},
    {Group::kSettings, "RAILHEAD_FLIGHT_RECORDER", "none: no file is written",
     "Directory in which every rank writes a file when the job fails: the error, the position "
     "of every rank, and the last 256 operations (runtime/README.md).",
     [](const std::string& text, Target& to) {
       return ParseName(text, kLongestPath, to.settings.flight_recorder);
     }},
    {Group::kSettings, "RAILHEAD_NCCL_PROFILER", "none",
     "File of another profiler plugin, to which Railhead's plugin for NCCL passes all events that "
     "it wants. If NCCL_PROFILER_PLUGIN is set, NCCL loads that one instead of Railhead's.",
     ReadElsewhere},
    {Group::kSettings, "RAILHEAD_NCCL_KERNEL_EVENTS", "0",
     "1: Railhead's plugin for NCCL times collectives by their kernels, also those that do not "
     "use the network. The first collective then takes longer: NCCL opens 64 channels for "
     "these events.",
     ReadElsewhere},
    {Group::kSettings, "RAILHEAD_LOG", "warn",
     "Log level of the library on stderr: error, warn, info or debug.",
     [](const std::string& text, Target& to) -> std::string {
       constexpr std::array<std::pair<const char*, LogLevel>, 4> kLevels = {
           {{"error", LogLevel::kError},
            {"warn", LogLevel::kWarn},
            {"info", LogLevel::kInfo},
            {"debug", LogLevel::kDebug}}};
       for (const auto& [name, level] : kLevels) {
         if (text == name) {
           to.settings.log_level = level;
           return "";
         }
       }
       return "error, warn, info or debug";
     }},
});

// Reads every variable of the group; the error is that of the first wrong one.
absl::Status ReadGroup(Group group, Lookup lookup, Target& target) {
  absl::Status result;
  for (const Variable& variable : kTable) {
    if (variable.group != group) continue;
    const std::optional<std::string> text = lookup(variable.name);
    if (!text.has_value() || text->empty()) continue;
    const std::string allowed = variable.parse(*text, target);
    if (allowed.empty()) continue;
    result.Update(absl::InvalidArgumentError(
        absl::StrCat(variable.name, "='", *text, "' is not allowed: set it to ", allowed)));
  }
  return result;
}

// A field of rhConfig_t without a variable: the communicator's name in messages and metrics.
constexpr const char* kCommName = "commName";
constexpr size_t kLongestCommName = 64;
// Another one: whether the page of RAILHEAD_METRICS_PORT includes the communicator.
constexpr const char* kMetrics = "metrics";

// The row with this field; the end of the table where there is none.
const Variable* RowOf(absl::string_view field) {
  return std::find_if(kTable.begin(), kTable.end(),
                      [field](const Variable& row) { return field == row.field; });
}

// Sets one field. Returns "" or what is allowed.
std::string SetField(const std::string& field, const std::string& text, Target& target) {
  Settings& settings = target.settings;
  if (field == kCommName) return ParseName(text, kLongestCommName, settings.comm_name);
  if (field == kMetrics) return ParseSwitch(text, settings.metrics);
  const Variable* const row = RowOf(field);
  return row == kTable.end() ? "nothing: there is no such field" : row->parse(text, target);
}

// Returns the operator's reason for not setting it, if in the pod (operator/objects/not_done.h).
std::string WhyNotSet(Lookup lookup) {
  const std::string told = lookup(kNotDone).value_or("");
  if (told.empty()) return "the Railhead operator sets them for pods that request rdma/*";
  const std::string first(absl::string_view(told).substr(0, told.find('\n')));
  return absl::StrCat("the Railhead operator has not set them. ",
                      PrintableText(first, kLongestReason));
}

absl::Status Missing(absl::string_view name, Lookup lookup) {
  return absl::InvalidArgumentError(
      absl::StrCat(name,
                   " is not set. Every process of a job needs RANK (0 to WORLD_SIZE-1), "
                   "WORLD_SIZE, MASTER_ADDR and MASTER_PORT; ",
                   WhyNotSet(lookup)));
}

// Launchers count ranks, but name no address of rank 0. On one host, ranks do not need it.
absl::Status NoMaster(const World& world) {
  return absl::InvalidArgumentError(absl::StrCat(
      "MASTER_ADDR is not set on a rank of ", world.source,
      ", whose launcher does not say that all ranks are on one host: set it to the host name or "
      "address of rank 0 on all ranks, for example with mpirun -x MASTER_ADDR=HOST"));
}

// Returns how a program sets it for one communicator.
std::string InPrograms(const Variable& variable) {
  return absl::StrCat("For one communicator: ", variable.field, " of its rhConfig_t.");
}

// Text for troff, which would take these characters for its own.
std::string Roff(absl::string_view text) {
  std::string line = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  if (absl::StartsWith(line, ".") || absl::StartsWith(line, "'")) line.insert(0, "\\&");
  return line;
}

}  // namespace

absl::StatusOr<Rendezvous> ReadRendezvous(Lookup lookup) {
  absl::StatusOr<std::optional<World>> world = FindWorld(lookup);
  if (!world.ok()) return world.status();
  if (!world->has_value()) {
    return Missing(lookup("RANK").value_or("").empty() ? "RANK" : "WORLD_SIZE", lookup);
  }
  Target target;
  if (absl::Status read = ReadGroup(Group::kRendezvous, lookup, target); !read.ok()) return read;
  Rendezvous& result = target.rendezvous;
  result.rank = (*world)->rank;
  result.world_size = (*world)->size;
  result.world_note = std::move((*world)->note);
  result.by_launcher = (*world)->launcher != Launcher::kPod;
  result.rank_variable = (*world)->rank_variable;
  result.launch = (*world)->launch;
  const bool finds_rank_0 = !result.master_addr.empty() || result.launch.one_host ||
                            (result.rank == 0 && result.launch.store_key.empty());
  if (finds_rank_0 || result.world_size == 1) return result;
  if (result.by_launcher) return NoMaster(**world);
  return Missing("MASTER_ADDR", lookup);
}

absl::Status ReadSettings(Lookup lookup, Settings& settings) {
  Target target;
  absl::Status read = ReadGroup(Group::kSettings, lookup, target);
  settings = target.settings;
  return read;
}

absl::Status Configure(const Fields& fields, Settings& settings) {
  Target target{{}, settings};
  for (const auto& [name, text] : fields) {
    const std::string allowed = SetField(name, text, target);
    if (allowed.empty()) {
      // Rails that are the same are listed alike.
      target.settings.configured[name] =
          name == kRails ? absl::StrJoin(target.settings.rails, ",") : text;
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(name, "='", text, "' is not allowed: set it to ", allowed));
  }
  settings = std::move(target.settings);
  return absl::OkStatus();
}

absl::Status CheckSettings(const Settings& settings) {
  if (!settings.require_rdma || (settings.transport != TransportChoice::kTcp &&
                                 settings.transport != TransportChoice::kShm)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(settings.SetBy("transport"), "=", TransportChoiceName(settings.transport),
                   " and RAILHEAD_REQUIRE_RDMA=1 contradict each other: unset one"));
}

Fields Settings::SetAlike() const {
  Fields alike;
  for (const auto& [field, text] : configured) {
    const Variable* const row = RowOf(field);
    if (field == kCommName || (row != kTable.end() && row->alike == Alike::kYes)) {
      alike[field] = text;
    }
  }
  return alike;
}

std::string Settings::SetBy(absl::string_view field) const {
  if (configured.contains(std::string(field))) return absl::StrCat("rhConfig_t.", field);
  const Variable* const row = RowOf(field);
  return row == kTable.end() ? std::string(field) : row->name;
}

std::optional<std::string> ProcessEnvironment(absl::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

std::string EnvManPage() {
  std::string page = absl::StrCat(
      ".TH RAILHEAD\\-ENVIRONMENT 7 \"\" \"Railhead ", RAILHEAD_VERSION, "\" \"Railhead\"\n",
      ".SH NAME\nrailhead\\-environment \\- environment variables of librailhead\n",
      ".SH DESCRIPTION\nEvery rank of a job reads these when it starts. An empty value counts as "
      "not set. What a program sets for a communicator (rhConfig_t) counts more.\n");
  for (const Variable& variable : kTable) {
    absl::StrAppend(&page, ".TP\n.B ", Roff(variable.name), "\n", Roff(variable.help),
                    "\n.br\nDefault: ", Roff(variable.fallback), ".\n");
    if (variable.field[0] != '\0') {
      absl::StrAppend(&page, ".br\n", Roff(InPrograms(variable)), "\n");
    }
  }
  return page;
}

std::string EnvHelp() {
  std::string text;
  for (const Variable& variable : kTable) {
    absl::StrAppend(&text, variable.name, " (default: ", variable.fallback, ")\n    ",
                    variable.help, "\n");
    if (variable.field[0] != '\0') absl::StrAppend(&text, "    ", InPrograms(variable), "\n");
  }
  return text;
}

absl::string_view TransportChoiceName(TransportChoice choice) {
  switch (choice) {
    case TransportChoice::kAuto:
      return "auto";
    case TransportChoice::kVerbs:
      return "verbs";
    case TransportChoice::kTcp:
      return "tcp";
    case TransportChoice::kShm:
      return "shm";
  }
  return "";
}

absl::string_view FallbackName(Fallback fallback) {
  switch (fallback) {
    case Fallback::kAllow:
      return "allow";
    case Fallback::kWarn:
      return "warn";
    case Fallback::kFail:
      return "fail";
  }
  return "";
}

}  // namespace railhead::config
