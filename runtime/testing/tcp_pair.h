// SPDX-License-Identifier: Apache-2.0
//
// Two TCP links of this process that are connected with each other, for tests.
#ifndef RAILHEAD_RUNTIME_TESTING_TCP_PAIR_H_
#define RAILHEAD_RUNTIME_TESTING_TCP_PAIR_H_

#include <gtest/gtest.h>

#include <memory>

#include "absl/time/time.h"
#include "runtime/base/now.h"
#include "runtime/testing/acceptors.h"
#include "runtime/transport/connect/acceptor.h"
#include "runtime/transport/link.h"
#include "runtime/transport/tcp/tcp.h"

namespace railhead::testing {

struct TcpPair {
  std::unique_ptr<transport::Link> a;
  std::unique_ptr<transport::Link> b;
};

// At acceptors that the caller has opened.
inline TcpPair ConnectedTcp(const std::shared_ptr<transport::Acceptor>& acceptor_a,
                            const std::shared_ptr<transport::Acceptor>& acceptor_b,
                            transport::FrameProtection protection = {}) {
  TcpPair pair = {*transport::OpenTcpLink(acceptor_a, acceptor_b->Address(), "rank 1", protection),
                  *transport::OpenTcpLink(acceptor_b, acceptor_a->Address(), "rank 0", protection)};
  const absl::Time deadline = MonotonicNow() + absl::Seconds(20);
  while (!pair.a->connected() || !pair.b->connected()) {
    for (transport::Link* link : {pair.a.get(), pair.b.get()}) {
      link->Reconnect(MonotonicNow()).IgnoreError();
    }
    if (MonotonicNow() < deadline) continue;
    ADD_FAILURE() << "the links do not connect";
    break;
  }
  return pair;
}

inline TcpPair ConnectedTcp(transport::FrameProtection protection = {}) {
  return ConnectedTcp(OpenAcceptor(), OpenAcceptor(), protection);
}

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_TCP_PAIR_H_
