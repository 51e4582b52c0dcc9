// SPDX-License-Identifier: Apache-2.0
//
// One page of metrics for all processes of a pod: Prometheus scrapes one port of a pod, and a pod
// often has one process for each of its GPUs. The first process serves the page. The others connect
// to it by a Unix socket and send their series on request; if it ends, one of them takes
// over.
#ifndef RAILHEAD_RUNTIME_METRICS_POD_PAGE_H_
#define RAILHEAD_RUNTIME_METRICS_POD_PAGE_H_

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/log.h"
#include "runtime/metrics/families.h"
#include "runtime/metrics/page.h"
#include "runtime/net/fd.h"

namespace railhead::metrics {

// This process's part in the page.
class PodPage {
 public:
  // Shows what `read` returns on the page at `port` until destroyed. `read` is called on threads of
  // the page. `pod` distinguishes pods that share the node's network; a process of another pod or
  // user cannot take part. Port 0: a separate page at any free port. Unavailable if
  // another process has the port. `log` gets each warning about the page once.
  static absl::StatusOr<std::unique_ptr<PodPage>> Open(int port, absl::string_view pod,
                                                       std::function<Families()> read,
                                                       const Logger& log);
  ~PodPage();
  PodPage(const PodPage&) = delete;
  PodPage& operator=(const PodPage&) = delete;

  int port() const { return port_; }

 private:
  PodPage(int port, std::string name, std::function<Families()> read, Logger log);
  // Serves the page or connects to the process that does.
  absl::Status Join();
  absl::Status Serve();
  // Answers the process that serves the page, until this one serves it or is destroyed.
  void Attend();
  absl::Status AnswerOnce();
  // The whole page.
  Families Collect();
  void Welcome();
  void Log(const std::vector<PageWarning>& warnings);

  int port_;
  const std::string name_;  // of the socket
  const std::function<Families()> read_;
  const Logger log_;

  net::Fd stop_;  // an event that ends Attend
  net::Fd host_;  // connection to the process that serves the page; only Attend uses it

  std::mutex mutex_;  // guards members_ and warned_
  std::list<net::Fd> members_;
  std::set<std::string> warned_;  // of these subjects
  net::Fd listener_;              // where they connect
  std::unique_ptr<Server> server_;
  std::thread attendant_;
};

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_POD_PAGE_H_
