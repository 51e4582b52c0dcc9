// SPDX-License-Identifier: Apache-2.0
//
// Every environment variable that the runtime reads, declared once: name, default, help and parser
// stand together in one table (env.cc), and the help that people see is printed from it. The table
// also names the field of rhConfig_t by which a program sets the same for one communicator.
#ifndef RAILHEAD_RUNTIME_CONFIG_ENV_H_
#define RAILHEAD_RUNTIME_CONFIG_ENV_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/log.h"

namespace railhead::config {

enum class TransportChoice { kAuto, kVerbs, kTcp, kShm };

// What happens when a job would start with less RDMA than its ranks were given; the stricter, the
// larger (comm/decision.h).
enum class Fallback : uint8_t { kAllow, kWarn, kFail };

// Who this rank is and where it meets the others.
struct Rendezvous {
  int rank = 0;
  int world_size = 1;
  std::string master_addr;  // empty only where nobody needs it: on rank 0
  int master_port = 29500;
};

// Fields of rhConfig_t that a program has set, by name, as the text that the environment would
// have.
using Fields = std::map<std::string, std::string>;

// How this rank works.
struct Settings {
  std::string job = "default";
  std::string secret_file;      // "": ranks are known by the name of their job alone
  bool sign_frames = false;     // over TCP
  bool require_secret = false;  // a job without one fails
  std::string pod;              // "" outside Kubernetes
  std::string node;             // "" outside Kubernetes
  std::string rails_file = "/run/railhead/rails.json";
  TransportChoice transport = TransportChoice::kAuto;
  bool require_rdma = false;  // as if RDMA was given, and nothing less is accepted
  Fallback fallback = Fallback::kWarn;
  std::vector<int> rails;     // those to use of the rails file, ascending; none: all
  std::string socket_ifname;  // of TCP rail 0; "": the interface that routes to the other ranks
  std::vector<std::string> more_socket_ifnames;  // of TCP rails 1, 2, ...
  int metrics_port = 9402;                       // 0: no metrics server
  absl::Duration timeout = absl::Seconds(60);    // of what stands still
  std::optional<absl::Duration> start_timeout;   // none: `timeout`
  absl::Duration StartTimeout() const { return start_timeout.value_or(timeout); }
  std::string algorithms;       // "": the model decides
  std::string flight_recorder;  // a directory; "": the flight recorder leaves no file
  int ib_traffic_class = 0;
  int ib_service_level = 0;
  int ib_pkey = 0;  // 0: the ports agree on one
  int ib_qps_per_rail = 1;
  LogLevel log_level = LogLevel::kWarn;
  bool metrics = true;    // whether this communicator is on the metrics page
  std::string comm_name;  // of the communicator; "": it has none
  Fields configured;      // what the program has set

  // Of that, what all ranks must set alike.
  Fields SetAlike() const;
  // What sets the field, for people: "rhConfig_t.timeoutSeconds" or "RAILHEAD_TIMEOUT_SECONDS".
  std::string SetBy(absl::string_view field) const;
};

// Looks a variable up; nullopt when it is not set. An empty value counts as not set.
using Lookup = absl::FunctionRef<std::optional<std::string>(absl::string_view name)>;

// Both return InvalidArgument that names the variable, its value and what is allowed.
absl::StatusOr<Rendezvous> ReadRendezvous(Lookup lookup);
// Sets what is right even when something else is wrong, so that a rank with a wrong value can still
// meet the others and tell them.
absl::Status ReadSettings(Lookup lookup, Settings& settings);

// Sets what a program has set for its communicator, and leaves the rest as it is. InvalidArgument
// that names the field, its value and what is allowed; then it sets nothing.
absl::Status Configure(const Fields& fields, Settings& settings);

// What of a group's settings contradicts what else.
absl::Status CheckSettings(const Settings& settings);

// The lookup that reads this process's environment.
std::optional<std::string> ProcessEnvironment(absl::string_view name);

// The table as text for people: one paragraph for each variable.
std::string EnvHelp();
// The same as a man page, railhead-environment(7).
std::string EnvManPage();

// "auto", "verbs", "tcp" or "shm".
absl::string_view TransportChoiceName(TransportChoice choice);
// "allow", "warn" or "fail".
absl::string_view FallbackName(Fallback fallback);

}  // namespace railhead::config

#endif  // RAILHEAD_RUNTIME_CONFIG_ENV_H_
