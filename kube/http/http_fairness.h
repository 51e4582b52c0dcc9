// SPDX-License-Identifier: Apache-2.0
//
// Fairness of the HTTP server under overload, as pure functions: no sockets, no clock. The client
// that uses most of a resource loses first, so a client that uses little is served, whatever others
// do.
#ifndef RAILHEAD_KUBE_HTTP_HTTP_FAIRNESS_H_
#define RAILHEAD_KUBE_HTTP_HTTP_FAIRNESS_H_

#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace railhead::kube {

// The machines behind one address, and their current use of the server.
struct HttpSource {
  std::string name;
  size_t connections = 0;
  size_t bytes = 0;    // of requests and responses in memory
  size_t in_hand = 0;  // requests in handlers
};

// State of one connection, as input of these decisions.
struct HttpStanding {
  enum class State {
    kSilent,     // first request not begun
    kSending,    // has sent part of a request
    kQueued,     // request complete, waits for a handler
    kInHand,     // in a handler
    kAnswering,  // response being sent
    kIdle,       // answered, next request not begun
    kClosing,    // last response sent, waits for the client to close
  };
  State state = State::kSilent;
  absl::Time since;       // start of the state
  bool answered = false;  // a handler has answered one of its requests
  size_t bytes = 0;
  const HttpSource* source = nullptr;
};

// Returns the name of a client's source: an IPv4 address, or the /64 prefix of an IPv6 address,
// because one client has all addresses of it.
std::string SourceOf(const sockaddr& address);

// Returns the index in `all` of the connection to close to admit one of `newcomer`, or nullopt to
// refuse the new one. With `own`, only the newcomer's connections are candidates (its source is at
// its limit). A connection with a complete request is never closed.
std::optional<size_t> WhoMakesRoom(const std::vector<const HttpStanding*>& all,
                                   const HttpSource& newcomer, bool own, absl::Time now);

// Returns the connection to close to free memory: the slowest one of the source that holds most.
// Connections that hold at most `share` bytes are never closed: that would free little, and a small
// request would fail because of large ones from the same source. Nullopt if there is no other
// connection than these and those in handlers.
std::optional<size_t> WhoFreesMemory(const std::vector<const HttpStanding*>& all, size_t share,
                                     absl::Time now);

// Returns the request to handle next: sources take turns, each in order of arrival. `queued` is not
// empty.
size_t WhoIsNext(const std::vector<const HttpStanding*>& queued);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_HTTP_FAIRNESS_H_
