// SPDX-License-Identifier: Apache-2.0
//
// Who gives way when an HTTP server is full: decisions as functions of values, with no sockets and
// no clock. The rule of all three: whoever takes most gives way first, so a client that takes
// little is served, whatever others do.
#ifndef RAILHEAD_KUBE_HTTP_FAIRNESS_H_
#define RAILHEAD_KUBE_HTTP_FAIRNESS_H_

#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace railhead::kube {

// The machines behind one address, and what they take of the server at this moment.
struct HttpSource {
  std::string name;
  size_t connections = 0;
  size_t bytes = 0;    // of requests and answers in memory
  size_t in_hand = 0;  // requests that handlers are answering
};

// One connection, as far as these decisions need it.
struct HttpStanding {
  enum class State {
    kSilent,     // has not begun its first request
    kSending,    // has sent a part of a request
    kQueued,     // its request is complete and waits for a handler
    kInHand,     // a handler is answering it
    kAnswering,  // is being sent its answer
    kIdle,       // was answered, and has not begun another request
    kClosing,    // was sent its last answer; its end is awaited
  };
  State state = State::kSilent;
  absl::Time since;       // start of this state
  bool answered = false;  // a handler has answered a request of it
  size_t bytes = 0;
  const HttpSource* source = nullptr;
};

// The name of a client's source: an IPv4 address, or the first 64 bits of an IPv6 address, as
// whoever has one of those has all of them.
std::string SourceOf(const sockaddr& address);

// The connection to close so that a new one of `newcomer` has room, as an index into `all`, or
// nullopt when the new one is to be refused. `own` looks at the newcomer's connections only, as
// when its source has as many as one may have. A request that is complete is never given up.
std::optional<size_t> WhoMakesRoom(const std::vector<const HttpStanding*>& all,
                                   const HttpSource& newcomer, bool own, absl::Time now);

// The connection to give up so that memory becomes free: the slowest one of the source that holds
// most. Nullopt when handlers hold all of it.
std::optional<size_t> WhoFreesMemory(const std::vector<const HttpStanding*>& all, absl::Time now);

// Which of the waiting requests a handler takes next: sources take turns, each in the order of
// arrival. `queued` is not empty.
size_t WhoIsNext(const std::vector<const HttpStanding*>& queued);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_FAIRNESS_H_
