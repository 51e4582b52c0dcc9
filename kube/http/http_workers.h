// SPDX-License-Identifier: Apache-2.0
//
// The threads on which an HTTP server's handler runs (http_server.h): the server's I/O thread gives
// them requests and takes the responses back.
#ifndef RAILHEAD_KUBE_HTTP_HTTP_WORKERS_H_
#define RAILHEAD_KUBE_HTTP_HTTP_WORKERS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "kube/http/http_fairness.h"
#include "kube/http/http_request_reader.h"
#include "kube/http/http_response.h"

namespace railhead::kube {

// A request on its way to the handler, or its response on its way back.
struct HttpTask {
  uint64_t client = 0;
  HttpSource* source = nullptr;
  size_t bytes = 0;
  bool is_probe = false;
  bool is_large = false;
  bool with_body = true;
  HttpRequest request;
  HttpResponse response;
};

// Thread-safe after Start.
class HttpWorkers {
 public:
  // `done` is called on the workers' threads after each response.
  HttpWorkers(HttpHandler handler, std::function<void()> done);
  ~HttpWorkers();  // ends

  // Call it once. `threads` requests are handled at a time, and a probe beside them if
  // `with_probes`.
  void Start(int threads, bool with_probes);
  void Give(HttpTask task);
  // The responses since the last call.
  std::vector<HttpTask> TakeDone();
  // Returns when all that was given is done and the threads have ended.
  void End();

 private:
  void Work(std::deque<HttpTask>& queue);

  const HttpHandler handler_;
  const std::function<void()> on_done_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;                  // guards all below
  std::condition_variable has_task_;  // or it is time to end
  std::deque<HttpTask> tasks_;
  std::deque<HttpTask> probes_;
  std::vector<HttpTask> done_;
  bool ending_ = false;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_HTTP_WORKERS_H_
