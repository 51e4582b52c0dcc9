// SPDX-License-Identifier: Apache-2.0
//
// Environment variables of the runtime, declared once in a table (env.cc): name, default, help and
// parser; the printed help is generated from it. The table also names the field of rhConfig_t that
// sets the same value for one communicator.
#ifndef RAILHEAD_RUNTIME_CONFIG_ENV_H_
#define RAILHEAD_RUNTIME_CONFIG_ENV_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/log.h"
#include "runtime/config/launch.h"
#include "runtime/config/lookup.h"

namespace railhead::config {

enum class TransportChoice { kAuto, kVerbs, kTcp, kShm };

// Action if a job would start with less RDMA than its ranks were given; larger is stricter
// (comm/decision.h).
enum class Fallback : uint8_t { kAllow, kWarn, kFail };

// Identity and rendezvous of this rank.
struct Rendezvous {
  int rank = 0;  // as World (world.h)
  int world_size = 1;
  // May be empty on rank 0, and if all ranks are on this host according to the launcher.
  std::string master_addr;
  int master_port = 29500;
  std::string world_note = "";         // World::note
  Launch launch = {};                  // World::launch
  std::string rank_variable = "RANK";  // World::rank_variable
  bool by_launcher = false;            // a launcher has started this rank, and not the pod
};

// Fields of rhConfig_t set by a program, by name, with values as in the environment.
using Fields = std::map<std::string, std::string>;

// What RAILHEAD_AUTH wants of the frames between ranks; stricter values are greater.
enum class FrameWish : uint8_t {
  kPlain,
  kSigned,     // with TCP
  kEncrypted,  // TCP or shared memory, but no RDMA
};

// The name of jobs without one.
inline constexpr char kUnnamedJob[] = "default";

// Settings of this rank.
struct Settings {
  std::string job = kUnnamedJob;
  std::string secret_file;  // "": ranks are identified by the name of their job only
  bool job_secret = true;   // without `secret_file`, use the node agent's (job_secret.h)
  bool use_secret = true;   // false: neither of the two is used (RAILHEAD_AUTH=off)
  FrameWish frames = FrameWish::kPlain;
  bool require_secret = false;  // fail without a secret
  std::string pod;              // "" outside Kubernetes
  std::string node;             // "" outside Kubernetes
  std::string rails_file = "/run/railhead/rails.json";
  TransportChoice transport = TransportChoice::kAuto;
  bool require_rdma = false;  // treat RDMA as given, and accept nothing less
  Fallback fallback = Fallback::kWarn;
  std::vector<int> rails;     // rails of the rails file to use, ascending; empty: all
  std::string socket_ifname;  // of TCP rail 0; "": the interface with the route to the other ranks
  std::vector<std::string> more_socket_ifnames;  // of TCP rails 1, 2, ...
  int metrics_port = 9402;                       // 0: no metrics server
  absl::Duration timeout = absl::Seconds(60);    // of calls without progress
  std::optional<absl::Duration> start_timeout;   // nullopt: `timeout`
  absl::Duration StartTimeout() const { return start_timeout.value_or(timeout); }
  std::string algorithms;       // "": the model decides
  std::string flight_recorder;  // a directory; "": the flight recorder writes no file
  int ib_traffic_class = 0;
  int ib_service_level = 0;
  int ib_pkey = 0;  // 0: the ports choose a common one
  int ib_qps_per_rail = 1;
  LogLevel log_level = LogLevel::kWarn;
  bool metrics = true;    // show this communicator on the metrics page
  std::string comm_name;  // name of the communicator; "": none
  Fields configured;      // set by the program

  // The subset that all ranks must set alike.
  Fields SetAlike() const;
  // Returns the name of the setting for messages: "rhConfig_t.timeoutSeconds" or
  // "RAILHEAD_TIMEOUT_SECONDS".
  std::string SetBy(absl::string_view field) const;
};

// Both return InvalidArgument that names the variable, its value and the allowed values.
absl::StatusOr<Rendezvous> ReadRendezvous(Lookup lookup);
// Sets all valid values even if others are invalid, so that a rank with an invalid value can still
// report it to the others.
absl::Status ReadSettings(Lookup lookup, Settings& settings);

// Applies a program's settings of its communicator. InvalidArgument names the field, its value and
// the allowed values; it changes nothing then.
absl::Status Configure(const Fields& fields, Settings& settings);

// Returns an error if settings contradict each other.
absl::Status CheckSettings(const Settings& settings);

// Reads this process's environment.
std::optional<std::string> ProcessEnvironment(absl::string_view name);

// Returns the table as text, one paragraph per variable.
std::string EnvHelp();
// Returns it as a man page, railhead-environment(7).
std::string EnvManPage();

// Returns "auto", "verbs", "tcp" or "shm".
absl::string_view TransportChoiceName(TransportChoice choice);
// Returns "allow", "warn" or "fail".
absl::string_view FallbackName(Fallback fallback);

}  // namespace railhead::config

#endif  // RAILHEAD_RUNTIME_CONFIG_ENV_H_
