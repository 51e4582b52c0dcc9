// SPDX-License-Identifier: Apache-2.0
//
// HTTP server of the metrics page. One thread, which never waits for a client: clients that send
// nothing, that send or read slowly, or that come by the thousand cost one of kMostConnections
// places until a deadline, and cannot keep a scraper out. If all places are taken, a newcomer gets
// that of the source with most connections: the one that has waited longest. The page is made once
// for all clients that wait for it at the same time, so memory is bounded, too.
#ifndef RAILHEAD_RUNTIME_METRICS_PAGE_SERVER_H_
#define RAILHEAD_RUNTIME_METRICS_PAGE_SERVER_H_

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/metrics/page.h"
#include "runtime/net/fd.h"

namespace railhead::metrics {

class PageServer final : public Server {
 public:
  static constexpr size_t kMostConnections = 64;

  // `make` returns the text of the page; it is called on the server's thread.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(int port,
                                                           std::function<std::string()> make);
  ~PageServer() override;
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  int port() const override { return port_; }

 private:
  struct Connection {
    net::Fd fd;
    std::string source;
    absl::Time deadline;  // of its state
    enum class State { kAsking, kWaiting, kReading, kClosing } state = State::kAsking;
    std::string asked;
    bool wants_body = true;
    std::string head;
    std::shared_ptr<const std::string> body;  // shared by those who asked at the same time
    size_t sent = 0;
  };
  using Connections = std::list<Connection>;

  PageServer(net::Fd listener, int port, net::Fd stop, std::function<std::string()> make);
  void Run();
  // Accepts those who have come.
  void Welcome(absl::Time now);
  void MakeRoomFor(const std::string& source);
  // Reads or writes what is possible. Returns false if the connection is over.
  bool Advance(Connection& connection, absl::Time now);
  bool Listen(Connection& connection, absl::Time now);
  bool Answer(Connection& connection, absl::Time now);
  void Refuse(Connection& connection, absl::string_view status, absl::Time now);
  // Gives the page to all who wait for it.
  void ServePage();

  const net::Fd listener_;
  const int port_;
  const net::Fd stop_;  // an event that ends Run
  const std::function<std::string()> make_;
  absl::Time no_accept_until_ = absl::InfinitePast();
  absl::Time next_page_ = absl::InfinitePast();
  Connections connections_;
  std::thread thread_;
};

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_PAGE_SERVER_H_
