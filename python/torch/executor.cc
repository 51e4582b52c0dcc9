// SPDX-License-Identifier: Apache-2.0
#include "executor.h"

#include <c10/core/InferenceMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "per_process.h"

namespace railhead_torch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLook = std::chrono::milliseconds(200);

// One thread for all groups of the process. It lives as long as that.
class Watchdog {
 public:
  const int process = ::getpid();

  void Watch(const std::shared_ptr<Executor>& executor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    executors_.push_back(executor);
    if (started_) return;
    started_ = true;
    StartThread([this] { Loop(); }).detach();
  }

 private:
  [[noreturn]] void Loop() {
    for (;;) {
      std::this_thread::sleep_for(kLook);
      std::vector<std::shared_ptr<Executor>> executors;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto gone = std::remove_if(executors_.begin(), executors_.end(),
                                         [](const auto& executor) { return executor.expired(); });
        executors_.erase(gone, executors_.end());
        for (const auto& watched : executors_) {
          if (auto executor = watched.lock()) executors.push_back(std::move(executor));
        }
      }
      for (const auto& executor : executors) executor->EndIfLate(Clock::now());
    }
  }

  std::mutex mutex_;
  std::vector<std::weak_ptr<Executor>> executors_;
  bool started_ = false;
};

}  // namespace

Executor::Executor(rhComm_t comm) : comm_(comm), process_(::getpid()) {}

std::shared_ptr<Executor> Executor::Create(rhComm_t comm) {
  std::shared_ptr<Executor> executor(new Executor(comm));
  OfThisProcess<Watchdog>().Watch(executor);
  return executor;
}

Executor::~Executor() {
  // A forked child has neither connections nor threads; the parent's are not its to end.
  if (::getpid() != process_) {
    if (thread_.joinable()) thread_.detach();
    return;
  }
  if (thread_.joinable()) thread_.detach();  // this is it
  if (ended_.empty()) {
    rhCommDestroy(comm_);
  } else {
    rhCommAbort(comm_);
  }
}

std::string Executor::WhyEnded() {
  if (::getpid() != process_) {
    return "this process was forked from the one that called init_process_group: only that one may "
           "use the "
           "process group";
  }
  if (!ended_.empty()) return ended_;
  return leaving_ ? "the process group was destroyed" : "";
}

std::string Executor::WhyUnusable() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return WhyEnded();
}

std::string Executor::WhyEndedOr(const char* library_text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ended_.empty() ? library_text : ended_;
}

void Executor::Submit(Job job, bool waited_for) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (const std::string why = WhyEnded(); !why.empty()) {
    lock.unlock();
    job.work->Fail(job.What() + ": " + why)->Set();
    return;
  }
  if (waited_for && !busy_ && jobs_.empty()) {
    DoAlone(std::move(job), lock);
    return;
  }
  if (busy_ && runner_ == std::this_thread::get_id()) {
    // This is a callback of the job that this thread runs. It may wait for the new job, which no
    // other thread would run.
    const c10::intrusive_ptr<RailWork> mine = job.work;
    jobs_.push_back(std::move(job));
    while (!mine->isCompleted()) DoFirst(lock);
    return;
  }
  jobs_.push_back(std::move(job));
  if (!thread_.joinable()) {
    thread_ = StartThread([self = shared_from_this()] { self->Loop(); });
  }
  changed_.NotifyAll();
}

void Executor::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    while (busy_ || (jobs_.empty() && !leaving_)) changed_.Wait(lock);
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    DoAlone(std::move(job), lock);
  }
}

void Executor::DoAlone(Job job, std::unique_lock<std::mutex>& lock) {
  busy_ = true;
  runner_ = std::this_thread::get_id();
  lock.unlock();
  Do(std::move(job));
  lock.lock();
  busy_ = false;
  runner_ = std::thread::id();
  changed_.NotifyAll();
}

void Executor::DoFirst(std::unique_lock<std::mutex>& lock) {
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  lock.unlock();
  Do(std::move(job));
  lock.lock();
}

rhResult_t Executor::RunSteps(Job& job, Running& running) {
  if (job.steps.size() == 1) return job.steps.front().run(running);
  rhGroupStart();
  rhResult_t first = rhSuccess;
  for (Step& step : job.steps) {
    const rhResult_t result = step.run(running);
    if (first == rhSuccess) first = result;
  }
  const rhResult_t result = rhGroupEnd();
  return first != rhSuccess ? first : result;
}

void Executor::FinishSteps(const Job& job) {
  // As c10d's calls, which autograd does not see. Their tensors may be of the caller's inference
  // mode, or parameters.
  const c10::InferenceMode no_autograd;
  for (const Step& step : job.steps) {
    if (step.finish) step.finish();
  }
  // Copies of results run on a stream of this thread, which no waiter knows.
  if (!job.device.is_cpu()) {
    c10::impl::VirtualGuardImpl(job.device.type()).getStream(job.device).synchronize();
  }
}

void Executor::Do(Job job) {
  std::string error;
  {
    Running running(comm_);
    // Before the deadline is known: the caller's own work on the GPU may take as long as it wants.
    try {
      for (const c10::Event& event : job.queued) event.synchronize();
    } catch (const std::exception& exception) {
      error = job.What() + ": the work before it on its device failed: " + exception.what();
      End(error);
    }
    if (error.empty()) {
      const std::lock_guard<std::mutex> lock(mutex_);
      error = WhyEnded();
      if (!ended_.empty() || ::getpid() != process_) {
        error = job.What() + ": " + error;
      } else {
        error.clear();  // what was begun before the group is left is done
        deadline_ = Clock::now() + job.timeout + kGrace;
      }
    }
    if (error.empty()) {
      rhResult_t result = rhInternalError;
      std::string thrown;
      try {
        result = RunSteps(job, running);
      } catch (const std::exception& exception) {
        thrown = exception.what();
      }
      const std::lock_guard<std::mutex> lock(mutex_);
      deadline_ = Clock::time_point::max();
      if (!thrown.empty()) {
        error = job.What() + ": " + thrown;
      } else if (result != rhSuccess) {
        error = job.What() + ": " + (ended_.empty() ? rhGetLastError(comm_) : ended_.c_str());
      }
    }
  }
  std::exception_ptr failed;
  if (error.empty()) {
    try {
      FinishSteps(job);
    } catch (...) {
      failed = std::current_exception();
    }
  }
  job.steps.clear();
  auto finished = failed           ? job.work->Fail(failed)
                  : !error.empty() ? job.work->Fail(error)
                                   : job.work->Succeed(std::move(job.results));
  job.work.reset();
  job.results.clear();
  finished->Set();
}

void Executor::Drain() {
  std::unique_lock<std::mutex> lock(mutex_);
  leaving_ = true;
  changed_.NotifyAll();
  // A callback of a job cannot wait for that job.
  if (::getpid() != process_ || runner_ == std::this_thread::get_id()) return;
  while (busy_ || !jobs_.empty()) changed_.Wait(lock);
  if (!thread_.joinable()) return;
  std::thread thread = std::move(thread_);
  lock.unlock();
  thread.join();
}

void Executor::Leave() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    leaving_ = true;
    changed_.NotifyAll();
    if (busy_ || !jobs_.empty()) return;
  }
  Drain();
}

void Executor::End(const std::string& reason) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!ended_.empty() || ::getpid() != process_) return;
    ended_ = reason;
  }
  rhCommRevoke(comm_, 0);
}

void Executor::EndIfLate(Clock::time_point now) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (now < deadline_) return;
  }
  End("not done within the timeout of the process group, so it was ended on all ranks: a rank "
      "lives and has not called it; librailhead's warnings name it");
}

}  // namespace railhead_torch
