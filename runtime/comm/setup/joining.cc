// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/joining.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "runtime/base/log.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/agent_store.h"
#include "runtime/bootstrap/hello.h"
#include "runtime/bootstrap/job_secret.h"
#include "runtime/bootstrap/local_meeting.h"
#include "runtime/bootstrap/meeting_place.h"
#include "runtime/bootstrap/secret.h"
#include "runtime/bootstrap/starter.h"

namespace railhead::comm {
namespace {

static_assert(config::kLongestLaunchName <= bootstrap::kLaunchLimit);

// Returns "pod a on node b", without unknown parts.
std::string Place(const config::Settings& settings) {
  std::vector<std::string> parts;
  if (!settings.pod.empty()) parts.push_back(absl::StrCat("pod ", settings.pod));
  if (!settings.node.empty()) {
    parts.push_back(absl::StrCat(settings.pod.empty() ? "" : "on ", "node ", settings.node));
  }
  return absl::StrJoin(parts, " ");
}

// Maximum time in which the node agent finds the job of a container.
constexpr absl::Duration kJobSecretTakes = absl::Seconds(15);

// Returns the processes that have started this rank, if nothing else identifies its job.
std::string StarterOf(const CommunicatorOptions& options) {
  const config::Rendezvous& rendezvous = options.rendezvous;
  const bool unnamed = rendezvous.by_launcher || options.setup.settings.job == config::kUnnamedJob;
  if (!options.key.empty() || !rendezvous.launch.name.empty() || !unnamed) return "";
  return bootstrap::FindStarter(options.setup.root, rendezvous.rank_variable);
}

// Returns where ranks find rank 0; null: at MASTER_ADDR and MASTER_PORT.
absl::StatusOr<std::shared_ptr<bootstrap::MeetingPlace>> PlaceOf(
    const config::Rendezvous& rendezvous, const std::string& starter) {
  const config::Launch& launch = rendezvous.launch;
  if (!launch.store_key.empty()) {
    return std::make_shared<bootstrap::AgentStore>(rendezvous.master_addr, rendezvous.master_port,
                                                   launch.store_key);
  }
  if (!rendezvous.master_addr.empty() || !launch.one_host) return nullptr;
  const std::string outermost = bootstrap::OutermostStarter(starter);
  if (launch.name.empty() && outermost.empty()) {
    return absl::InvalidArgumentError(
        "MASTER_ADDR is not set, and /proc does not show which process has started this rank: set "
        "MASTER_ADDR=127.0.0.1, and MASTER_PORT to a free port, on all ranks");
  }
  return std::make_shared<bootstrap::LocalMeeting>(
      absl::StrCat(launch.name, "\n", launch.on_host, "\n", outermost, "\n", ::geteuid()),
      launch.name.empty() ? bootstrap::DescribeStarter(starter) : launch.name);
}

}  // namespace

absl::StatusOr<std::string> SecretOf(CommunicatorOptions& options, const Logger& log) {
  config::Settings& settings = options.setup.settings;
  if (!settings.use_secret) {
    // Read neither of them: an unreadable file does not prevent the start.
    if (options.key.empty() && options.rendezvous.world_size > 1) {
      options.setup.no_secret_cause = "RAILHEAD_AUTH=off";
      log.Write(LogLevel::kInfo,
                "any process that knows the name of the job can join it: RAILHEAD_AUTH=off");
    }
    return std::string();
  }
  if (!settings.secret_file.empty()) {
    return bootstrap::ReadSecretFile(settings.secret_file, log, settings.SetBy("secretFile"));
  }
  // The job's secret is not used with a unique id, which is a secret itself and may unite ranks of
  // several jobs with different secrets; a communicator made of that one follows it. Nor is it used
  // if the program has set a secret file.
  if ((!options.key.empty() && !options.made_of_another) ||
      settings.configured.contains("secretFile")) {
    settings.job_secret = false;
  }
  if (!settings.job_secret || options.rendezvous.world_size == 1) return std::string();
  absl::StatusOr<bootstrap::JobSecret> found = bootstrap::AwaitJobSecret(
      absl::StrCat(absl::StripSuffix(options.setup.root, "/"), bootstrap::kJobSecretFolder),
      MonotonicNow() + std::min(kJobSecretTakes, settings.StartTimeout() / 2), options.aborted);
  if (!found.ok()) return found.status();
  options.setup.no_secret_cause = found->none_cause;
  if (found->secret.empty() && options.key.empty()) {
    log.Write(found->promised ? LogLevel::kWarn : LogLevel::kInfo,
              absl::StrCat("any process that knows the name of the job can join it: ",
                           found->none_cause));
  }
  return std::move(found->secret);
}

std::string NameOfRank(const CommunicatorOptions& options) {
  return bootstrap::DescribeRank(options.rendezvous.rank, Place(options.setup.settings));
}

std::string GroupOf(const CommunicatorOptions& options) {
  return options.key.empty() ? options.setup.settings.job : bootstrap::GroupName(options.key);
}

absl::StatusOr<bootstrap::Bootstrap> Join(CommunicatorOptions& options) {
  const config::Settings& settings = options.setup.settings;
  const std::string self = NameOfRank(options);
  const Logger log(settings.log_level, self);
  if (const std::string& note = options.rendezvous.world_note; !note.empty()) {
    // All ranks have the same note.
    log.Write(options.rendezvous.rank == 0 ? LogLevel::kWarn : LogLevel::kInfo, note);
  }
  const absl::Time deadline = MonotonicNow() + settings.StartTimeout();
  const absl::StatusOr<std::string> secret = SecretOf(options, log);
  bootstrap::JoinOptions join;
  join.starter = StarterOf(options);
  join.launch = options.rendezvous.launch.name;
  absl::StatusOr<std::shared_ptr<bootstrap::MeetingPlace>> place =
      PlaceOf(options.rendezvous, join.starter);
  // Without a place, the others cannot be notified.
  if (!place.ok()) return place.status();
  join.place = *std::move(place);
  // A process that knows the secret is of this job.
  if (secret.ok() && !secret->empty()) join.starter = "";
  join.trouble = secret.status();
  join.rank = options.rendezvous.rank;
  join.world_size = options.rendezvous.world_size;
  join.host = options.rendezvous.master_addr;
  join.port = options.rendezvous.master_port;
  join.listener = std::exchange(options.listener, std::nullopt);
  join.shared_listener = std::move(options.shared_listener);
  join.job = GroupOf(options);
  join.secret = bootstrap::Secret(secret.ok() ? *secret : "", options.key);
  join.name = Place(settings);
  join.deadline = deadline;
  join.hopeless = options.hopeless;
  join.aborted = options.aborted;
  join.log = log;
  return bootstrap::Bootstrap::Join(std::move(join));
}

}  // namespace railhead::comm
