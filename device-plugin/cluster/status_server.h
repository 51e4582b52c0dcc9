// SPDX-License-Identifier: Apache-2.0
//
// A small web server for what others ask of this process: kubelet's probes, Prometheus' scrapes.
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_STATUS_SERVER_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_STATUS_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

namespace httplib {
class Server;
}

namespace railhead::device_plugin {

struct StatusPage {
  int status = 200;
  std::string body;
  std::string content_type = "text/plain";
};

class StatusServer {
 public:
  // Paths ("/healthz") to what makes the page. Called from the server's threads, two of them at
  // most at the same time, and must not throw.
  using Pages = std::map<std::string, std::function<StatusPage()>>;

  // Answers GET (and HEAD) of the paths in `pages`, and 404 to anything else, until destroyed.
  // `address` is "host:port", "[v6]:port" or, for all addresses of both families, ":port"; port 0
  // takes a free one. InvalidArgument when it is neither, Unavailable when the port is taken; both
  // name `flag`, which the address came from.
  static absl::StatusOr<std::unique_ptr<StatusServer>> Start(const std::string& flag,
                                                             const std::string& address,
                                                             const Pages& pages);
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

  int port() const { return port_; }

 private:
  StatusServer();

  std::unique_ptr<httplib::Server> server_;
  std::thread thread_;
  int port_ = 0;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_STATUS_SERVER_H_
