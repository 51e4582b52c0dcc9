// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/joining.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/log.h"
#include "runtime/base/now.h"

namespace railhead::comm {
namespace {

// "pod a on node b", with what is known.
std::string Place(const config::Settings& settings) {
  std::vector<std::string> parts;
  if (!settings.pod.empty()) parts.push_back(absl::StrCat("pod ", settings.pod));
  if (!settings.node.empty()) {
    parts.push_back(absl::StrCat(settings.pod.empty() ? "" : "on ", "node ", settings.node));
  }
  return absl::StrJoin(parts, " ");
}

}  // namespace

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
  const absl::StatusOr<std::string> secret =
      bootstrap::ReadSecretFile(settings.secret_file, log, settings.SetBy("secretFile"));
  bootstrap::JoinOptions join;
  join.trouble = secret.status();
  join.rank = options.rendezvous.rank;
  join.world_size = options.rendezvous.world_size;
  join.host = options.rendezvous.master_addr;
  join.port = options.rendezvous.master_port;
  join.listener = std::exchange(options.listener, std::nullopt);
  join.job = GroupOf(options);
  join.secret = bootstrap::Secret(secret.ok() ? *secret : "", options.key);
  join.name = Place(settings);
  join.deadline = MonotonicNow() + settings.StartTimeout();
  join.hopeless = options.hopeless;
  join.aborted = options.aborted;
  join.log = log;
  return bootstrap::Bootstrap::Join(std::move(join));
}

}  // namespace railhead::comm
