// SPDX-License-Identifier: Apache-2.0
#include "kube/http/http_workers.h"

#include <utility>

namespace railhead::kube {

HttpWorkers::HttpWorkers(HttpHandler handler, std::function<void()> done)
    : handler_(std::move(handler)), on_done_(std::move(done)) {}

HttpWorkers::~HttpWorkers() { End(); }

void HttpWorkers::Start(int threads, bool with_probes) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { Work(tasks_); });
  }
  if (with_probes) threads_.emplace_back([this] { Work(probes_); });
}

void HttpWorkers::Give(HttpTask task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  (task.is_probe ? probes_ : tasks_).push_back(std::move(task));
  has_task_.notify_all();
}

std::vector<HttpTask> HttpWorkers::TakeDone() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(done_, {});
}

void HttpWorkers::End() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
    has_task_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void HttpWorkers::Work(std::deque<HttpTask>& queue) {
  for (;;) {
    HttpTask task;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      has_task_.wait(lock, [this, &queue] { return ending_ || !queue.empty(); });
      if (queue.empty()) return;
      task = std::move(queue.front());
      queue.pop_front();
    }
    try {
      task.response = handler_(task.request);
    } catch (...) {  // no exception crosses this border
      task.response = PlainResponse(500, "internal error");
    }
    task.request = {};
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      done_.push_back(std::move(task));
    }
    on_done_();
  }
}

}  // namespace railhead::kube
