// SPDX-License-Identifier: Apache-2.0
//
// The connections of an HTTP server, and what each source uses of it: how many there may be, who
// gives way, and the memory of their requests and responses. Private to http_server.cc, whose I/O
// thread owns all of it.
#ifndef RAILHEAD_KUBE_HTTP_HTTP_CLIENTS_H_
#define RAILHEAD_KUBE_HTTP_HTTP_CLIENTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/time/time.h"
#include "base/file_descriptor.h"
#include "kube/http/http_connection.h"
#include "kube/http/http_fairness.h"
#include "kube/http/http_request_reader.h"

namespace railhead::kube {

// One connection.
struct HttpClient {
  HttpClient(uint64_t id_of, FileDescriptor fd, HttpReadLimits limits)
      : id(id_of), connection(std::make_unique<Connection>(std::move(fd))), reader(limits) {}

  const uint64_t id;
  std::unique_ptr<Connection> connection;  // null: closed, to be removed
  HttpStanding standing;
  HttpSource* source = nullptr;
  HttpRequestReader reader;
  absl::Time deadline;
  std::string pending;  // arrived after the end of the request
  std::string out;      // the response
  size_t out_sent = 0;
  uint32_t interest = 0;  // as epoll knows it
  bool secured = false;   // the TLS handshake is over, or there is none
  bool closes = false;    // after the response
  bool blocked_on_read = false;
  bool blocked_on_write = false;
  bool has_more = false;  // to be continued, whatever epoll reports
};

struct HttpClientLimits {
  size_t connections = 0;
  size_t connections_of_source = 0;
  size_t bytes = 0;       // of all requests and responses
  size_t body_bytes = 0;  // of one request
};

// Use from one thread.
class HttpClients {
 public:
  // Ids begin with `first_id`.
  HttpClients(HttpClientLimits limits, uint64_t first_id) : limits_(limits), next_id_(first_id) {}

  // Adds a connection from the source of this name. If there are too many, it takes the place of
  // one that uses the server less; if there is none, the new one is closed, and the result is null.
  HttpClient* Add(FileDescriptor fd, const std::string& source, absl::Time now);
  // Closes a connection so that the process has a descriptor more; false if none may be closed.
  bool GiveUpOne(absl::Time now);

  // Returns null if the connection is closed.
  HttpClient* Find(uint64_t id) const;
  // Includes closed connections that are not removed yet.
  const std::unordered_map<uint64_t, std::unique_ptr<HttpClient>>& all() const { return all_; }

  // The entry stays until RemoveClosed, so that a loop over `all()` may close any.
  void Close(HttpClient& client);
  void RemoveClosed();

  // Notes what the client holds in memory now.
  void Account(HttpClient& client);
  // A request in a handler: its bytes count for the source, which stays known until the Release.
  void Hold(HttpSource& source, size_t bytes);
  void Release(HttpSource& source, size_t bytes);

  // A request of this size counts as small, for memory and for threads.
  size_t Share() const { return limits_.bytes / limits_.connections; }
  bool IsFull() const { return bytes_ > limits_.bytes; }
  // Returns the client to close in order to free memory; null if only small requests are left.
  HttpClient* Slowest(absl::Time now) const;

 private:
  bool MakeRoom(const HttpSource& newcomer, bool own, absl::Time now);
  std::vector<HttpClient*> Open() const;
  void ForgetIfUnused(HttpSource* source);

  const HttpClientLimits limits_;
  std::unordered_map<uint64_t, std::unique_ptr<HttpClient>> all_;
  std::map<std::string, std::unique_ptr<HttpSource>> sources_;
  std::vector<uint64_t> closed_;  // to be removed
  uint64_t next_id_;
  size_t open_ = 0;   // connections
  size_t bytes_ = 0;  // of requests and responses
};

// The standings of these clients, in their order, as the functions of http_fairness.h take them.
std::vector<const HttpStanding*> StandingsOf(const std::vector<HttpClient*>& clients);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_HTTP_CLIENTS_H_
