// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/background.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "runtime/base/condition.h"
#include "runtime/base/now.h"
#include "runtime/base/thread.h"

namespace railhead {
namespace {

struct Job {
  std::thread thread;
  absl::Time deadline;
  bool done = false;
};

struct Jobs {
  std::mutex mutex;
  Condition changed;
  std::list<Job> list;
  const pid_t process = ::getpid();

  // Takes those away that are done. With the lock.
  void Reap() {
    for (auto job = list.begin(); job != list.end();) {
      if (!job->done) {
        ++job;
        continue;
      }
      job->thread.join();
      job = list.erase(job);
    }
  }
};

// Jobs of this process: a forked child has none of its parent's threads. Never destroyed: a job may
// outlive its deadline, and the objects of this library.
Jobs& AllJobs() {
  static std::atomic<Jobs*> jobs = nullptr;
  Jobs* known = jobs.load();
  while (known == nullptr || known->process != ::getpid()) {
    auto fresh = std::make_unique<Jobs>();
    if (jobs.compare_exchange_strong(known, fresh.get())) known = fresh.release();
  }
  return *known;
}

class End {
 public:
  End() = default;
  ~End() {
    AwaitBackground();
    Jobs& jobs = AllJobs();
    const std::lock_guard<std::mutex> lock(jobs.mutex);
    for (Job& job : jobs.list) job.thread.detach();
    jobs.list.clear();
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;
};

}  // namespace

void AwaitBackground() {
  Jobs& jobs = AllJobs();
  std::unique_lock<std::mutex> lock(jobs.mutex);
  const auto all_done = [&jobs] {
    return std::all_of(jobs.list.begin(), jobs.list.end(),
                       [](const Job& job) { return job.done || job.deadline <= MonotonicNow(); });
  };
  while (!jobs.changed.WaitFor(lock, absl::Milliseconds(20), all_done)) {
  }
  jobs.Reap();
}

size_t BackgroundJobs() {
  Jobs& jobs = AllJobs();
  const std::lock_guard<std::mutex> lock(jobs.mutex);
  return static_cast<size_t>(
      std::count_if(jobs.list.begin(), jobs.list.end(), [](const Job& job) { return !job.done; }));
}

absl::Status TryRunInBackground(absl::Time deadline, const std::function<void()>& work) {
  Jobs& jobs = AllJobs();
  static const End end;
  const std::lock_guard<std::mutex> lock(jobs.mutex);
  jobs.Reap();
  const auto job = jobs.list.insert(jobs.list.end(), {std::thread(), deadline});
  absl::StatusOr<std::thread> thread = TryStartThread([&jobs, job, work] {
    work();
    const std::lock_guard<std::mutex> done(jobs.mutex);
    job->done = true;
    jobs.changed.NotifyAll();
  });
  if (!thread.ok()) {
    jobs.list.erase(job);
    return thread.status();
  }
  job->thread = *std::move(thread);
  return absl::OkStatus();
}

void RunInBackground(absl::Time deadline, const std::function<void()>& work) {
  // Without the lock: the work may wait for a thread that starts other work here.
  if (!TryRunInBackground(deadline, work).ok()) work();
}

}  // namespace railhead
