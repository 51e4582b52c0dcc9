// SPDX-License-Identifier: Apache-2.0
//
// Facts of each process in a log of NCCL (NCCL_DEBUG=INFO): the network that it uses, and why it
// does not use another one. Pure. Lines that are not known are skipped, so logs of several
// processes, with prefixes of kubectl or mpirun, and of other programs may be mixed.
//
// Texts: NVIDIA's src/init.cc, src/plugin/net.cc and src/transport/coll_net.cc of 2.19 to 2.32, and
// the SHARP plugin's.
#ifndef RAILHEAD_CLI_NCCL_LOG_NCCL_LOG_H_
#define RAILHEAD_CLI_NCCL_LOG_NCCL_LOG_H_

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace railhead::cli {

// Bytes of a line that are read; and of processes in a log.
inline constexpr size_t kMostOfNcclLine = 4096;
inline constexpr size_t kMostNcclProcesses = 100'000;

// A library that NCCL could not open.
struct PluginError {
  std::string library;
  std::string error;  // the loader's; "": there is no such file

  bool operator==(const PluginError&) const = default;
};

struct NcclProcess {
  std::string name;         // "host:pid"
  std::optional<int> rank;  // of its first communicator
  int nodes = 0;            // of that; 0: unknown
  bool complete = false;    // its first communicator was made

  // Variables that NCCL says to have read.
  std::map<std::string, std::string> environment;

  std::vector<PluginError> plugin_errors;
  std::set<std::string> plugins;          // names of the networks of plugins that were loaded
  std::set<std::string> unsupported;      // libraries without a table that NCCL knows
  std::set<std::string> failed_networks;  // that were loaded and could not be used
  std::vector<std::string> own_warnings;  // of Railhead's plugin
  std::string network;                    // in use: "IB", "Socket", a plugin's name; "": unknown
  bool no_network = false;
  bool sockets = false;  // it has looked for interfaces for sockets
  bool no_rdma = false;  // it tried NCCL's own RDMA transport before that, and found no device
  std::set<std::string> connected_over;  // networks of its connections to other nodes
  std::set<std::string> staged_hcas;     // without GPUDirect

  std::optional<int> collnet_devices;
  std::optional<int> collnet_threshold;  // nodes; the communicator has fewer
  bool collnet_differs = false;          // ranks have different numbers of CollNet devices
  bool collnet_begun = false;            // it connects to switches
  bool collnet_connected = false;
  bool collnet_failed = false;            // NCCL goes on without it
  std::vector<std::string> sharp_errors;  // of the SHARP library, which has its own lines
};

struct NcclLog {
  std::string version;                 // "2.30.7+cuda12.9"; "" if the log does not say it
  std::vector<NcclProcess> processes;  // in order of appearance
  bool info = false;                   // lines of NCCL_DEBUG=INFO were seen
  bool sharp_failed = false;           // some process has errors of SHARP, or went on without it
};

NcclLog ParseNcclLog(absl::string_view text);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_NCCL_LOG_NCCL_LOG_H_
