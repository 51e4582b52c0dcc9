// SPDX-License-Identifier: Apache-2.0
//
// A descriptor to sleep on until a link stirs, for tests.
#ifndef RAILHEAD_RUNTIME_TESTING_SLEEPER_H_
#define RAILHEAD_RUNTIME_TESTING_SLEEPER_H_

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>

#include "runtime/net/fd.h"
#include "runtime/transport/link.h"

namespace railhead::testing {

class Sleeper {
 public:
  explicit Sleeper(transport::Link& link) : link_(link) {
    EXPECT_TRUE(link.WakeBy(epoll_.get(), nullptr).ok());
  }
  ~Sleeper() { link_.WakeBy(-1, nullptr).IgnoreError(); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  // Returns true once the link has stirred, false after `timeout_ms` without.
  bool Wakes(int timeout_ms) const {
    pollfd entry{epoll_.get(), POLLIN, 0};
    return ::poll(&entry, 1, timeout_ms) == 1;
  }

 private:
  transport::Link& link_;
  const net::Fd epoll_{::epoll_create1(EPOLL_CLOEXEC)};
};

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_SLEEPER_H_
