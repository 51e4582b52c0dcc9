// SPDX-License-Identifier: Apache-2.0
//
// Ranks as processes, for what threads cannot show: dying, standing still, a whole program.
#ifndef RAILHEAD_RUNTIME_TESTING_PROCESSES_H_
#define RAILHEAD_RUNTIME_TESTING_PROCESSES_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/background.h"
#include "runtime/base/now.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"

namespace railhead::testing {

using Environment = std::map<std::string, std::string>;

// The environment of one rank of a job on this machine, without a metrics server.
inline Environment RankEnvironment(int rank, int world_size, int port) {
  return {{"RANK", absl::StrCat(rank)},
          {"WORLD_SIZE", absl::StrCat(world_size)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", absl::StrCat(port)},
          {"RAILHEAD_POD", absl::StrCat("p", rank)},
          {"RAILHEAD_TRANSPORT", "tcp"},
          {"RAILHEAD_RAILS_FILE", "/nonexistent/rails.json"},
          {"RAILHEAD_METRICS_PORT", "0"},
          {"RAILHEAD_TIMEOUT_SECONDS", "60"},
          {"RAILHEAD_START_TIMEOUT_SECONDS", "60"},
          {"RAILHEAD_LOG", "error"}};
}

// What became of a process.
struct Outcome {
  int exit_code = -1;  // -1: killed by a signal
  std::string output;  // what it wrote to the pipe, or to its standard output and error
};

// A child process whose output is collected. It is killed if it is still there at the end.
class Process {
 public:
  // A fork that runs `body` and exits; what `body` returns is its output.
  static Process Fork(const Environment& environment, const std::function<std::string()>& body) {
    return Process(environment, [&](int pipe) {
      const std::string text = body();
      size_t written = 0;
      while (written < text.size()) {
        const ssize_t part = ::write(pipe, text.data() + written, text.size() - written);
        if (part <= 0) _exit(125);
        written += static_cast<size_t>(part);
      }
      // As exit() would, which also ends what belongs to the parent.
      AwaitBackground();
      _exit(0);
    });
  }

  // A program with its arguments.
  static Process Run(const Environment& environment, const std::vector<std::string>& command) {
    return Process(environment, [&](int pipe) {
      ::dup2(pipe, STDOUT_FILENO);
      ::dup2(pipe, STDERR_FILENO);
      std::vector<char*> arguments;
      for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
      arguments.push_back(nullptr);
      ::execv(arguments[0], arguments.data());
      _exit(127);
    });
  }

  Process(Process&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        pipe_(std::move(other.pipe_)),
        output_(std::move(other.output_)) {}
  Process& operator=(Process&&) = delete;
  ~Process() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }

  // Waits until `enough` of its output so far; false: it ended before, or the deadline came.
  bool WaitForOutput(const std::function<bool(const std::string& output)>& enough,
                     absl::Time deadline) {
    while (!enough(output_)) {
      if (!ReadMore(deadline)) return false;
    }
    return true;
  }

  // Waits for the end of the process, at most until the deadline (then it is killed).
  Outcome Wait(absl::Time deadline) {
    Outcome outcome;
    while (ReadMore(deadline)) {
    }
    outcome.output = std::move(output_);
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (MonotonicNow() >= deadline) ::kill(pid_, SIGKILL);
      absl::SleepFor(absl::Milliseconds(1));
    }
    pid_ = -1;
    if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
    return outcome;
  }

 private:
  Process(const Environment& environment, const std::function<void(int pipe)>& child) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
      child(ends[1]);
      _exit(126);
    }
    ::close(ends[1]);
    pipe_ = net::Fd(ends[0]);
  }

  // False at the end of the output, or when the deadline has come.
  bool ReadMore(absl::Time deadline) {
    if (!net::WaitReadable(pipe_.get(), deadline).ok()) return false;
    std::string part(65536, '\0');
    const ssize_t got = ::read(pipe_.get(), part.data(), part.size());
    if (got <= 0) return false;
    output_.append(part, 0, static_cast<size_t>(got));
    return true;
  }

  pid_t pid_ = -1;
  net::Fd pipe_;
  std::string output_;
};

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_PROCESSES_H_
