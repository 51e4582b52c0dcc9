// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_KUBE_TESTING_HTTP_CLIENT_H_
#define RAILHEAD_KUBE_TESTING_HTTP_CLIENT_H_

#include <httplib.h>

#include <string>

namespace railhead::kube::testing {

// A client that waits for an answer for a minute, as a busy machine may need more than the
// library's five seconds.
inline httplib::Client HttpClient(const std::string& host, int port) {
  httplib::Client client(host, port);
  client.set_connection_timeout(60);
  client.set_read_timeout(60);
  client.set_write_timeout(60);
  return client;
}

}  // namespace railhead::kube::testing

#endif  // RAILHEAD_KUBE_TESTING_HTTP_CLIENT_H_
