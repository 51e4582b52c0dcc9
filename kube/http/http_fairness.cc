// SPDX-License-Identifier: Apache-2.0
#include "kube/http/http_fairness.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <tuple>

namespace railhead::kube {
namespace {

using State = HttpStanding::State;

// A client that means well sends something within this time, however busy it is.
constexpr absl::Duration kGrace = absl::Seconds(1);

bool HasSaidNothing(const HttpStanding& one) {
  return !one.answered && (one.state == State::kSilent || one.state == State::kSending);
}

// The order in which connections of one source go.
int RankOf(State state) {
  switch (state) {
    case State::kClosing:
      return 0;
    case State::kSilent:
      return 1;
    case State::kIdle:
      return 2;
    case State::kSending:
      return 3;
    case State::kAnswering:
    case State::kQueued:
    case State::kInHand:
      break;
  }
  return 4;
}

bool MayGo(const HttpStanding& one) {
  return one.state != State::kQueued && one.state != State::kInHand;
}

double BytesPerSecond(const HttpStanding& one, absl::Time now) {
  const absl::Duration age = std::max(now - one.since, absl::Milliseconds(1));
  return static_cast<double>(one.bytes) / absl::ToDoubleSeconds(age);
}

}  // namespace

std::string SourceOf(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return {reinterpret_cast<const char*>(&v4.sin_addr), sizeof(v4.sin_addr)};
  }
  if (address.sa_family != AF_INET6) return {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  const char* bytes = reinterpret_cast<const char*>(&v6.sin6_addr);
  // An IPv4 client of a socket for both families.
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return {bytes + 12, 4};
  return {bytes, 8};
}

std::optional<size_t> WhoMakesRoom(const std::vector<const HttpStanding*>& all,
                                   const HttpSource& newcomer, bool own, absl::Time now) {
  std::optional<size_t> chosen;
  std::tuple<int, size_t, int, absl::Time> best;
  for (size_t i = 0; i < all.size(); ++i) {
    const HttpStanding& one = *all[i];
    if (!MayGo(one) || (own && one.source != &newcomer)) continue;
    const bool is_closing = one.state == State::kClosing;
    const bool is_dumb = HasSaidNothing(one) && now - one.since >= kGrace;
    // A source does not grow at the expense of a smaller one.
    if (!is_closing && one.source != &newcomer && one.source->connections <= newcomer.connections) {
      continue;
    }
    // Closing ones first, as no client waits for them; then those without a request in time.
    const std::tuple<int, size_t, int, absl::Time> key = {is_closing ? 0
                                                          : is_dumb  ? 1
                                                                     : 2,
                                                          SIZE_MAX - one.source->connections,
                                                          RankOf(one.state), one.since};
    if (!chosen.has_value() || key < best) {
      chosen = i;
      best = key;
    }
  }
  return chosen;
}

std::optional<size_t> WhoFreesMemory(const std::vector<const HttpStanding*>& all, size_t share,
                                     absl::Time now) {
  std::optional<size_t> chosen;
  std::tuple<size_t, bool, double> best;
  for (size_t i = 0; i < all.size(); ++i) {
    const HttpStanding& one = *all[i];
    if (one.bytes <= share || one.state == State::kInHand) continue;
    // Complete requests last: they need nothing more from their client.
    const std::tuple<size_t, bool, double> key = {
        SIZE_MAX - one.source->bytes, one.state == State::kQueued, BytesPerSecond(one, now)};
    if (!chosen.has_value() || key < best) {
      chosen = i;
      best = key;
    }
  }
  return chosen;
}

size_t WhoIsNext(const std::vector<const HttpStanding*>& queued) {
  return static_cast<size_t>(std::min_element(queued.begin(), queued.end(),
                                              [](const HttpStanding* a, const HttpStanding* b) {
                                                return std::tuple(a->source->in_hand, a->since) <
                                                       std::tuple(b->source->in_hand, b->since);
                                              }) -
                             queued.begin());
}

}  // namespace railhead::kube
