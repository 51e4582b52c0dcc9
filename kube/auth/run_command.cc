// SPDX-License-Identifier: Apache-2.0
#include "kube/auth/run_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"

extern char** environ;

namespace railhead::kube {
namespace {

using Clock = std::chrono::steady_clock;

// A running child process. Killed and reaped at destruction, unless reaped before.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    Reap();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Returns its wait status. Blocks until it has ended.
  int Reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
};

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> EnvironmentOf(const Command& command) {
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line) {
    const absl::string_view name(*line, std::strcspn(*line, "="));
    const bool replaced = std::any_of(command.environment.begin(), command.environment.end(),
                                      [&](const auto& entry) { return entry.first == name; });
    if (!replaced) lines.emplace_back(*line);
  }
  for (const auto& [name, value] : command.environment) {
    lines.push_back(absl::StrCat(name, "=", value));
  }
  return lines;
}

absl::StatusOr<pid_t> Spawn(const Command& command, int output) {
  std::vector<std::string> words = {command.program};
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  std::vector<std::string> lines = EnvironmentOf(command);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (!command.reads_input) {
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  // This process itself may ignore or block signals.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigaddset(&signals, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, command.program.c_str(), &files, &attributes,
                                   Pointers(words).data(), Pointers(lines).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error == 0) return pid;
  const std::string text = absl::StrCat(command.program, " cannot be run: ", std::strerror(error));
  if (error == ENOENT) return absl::NotFoundError(text);
  return absl::FailedPreconditionError(text);
}

absl::Status Ended(const std::string& program, int wait_status) {
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) return absl::OkStatus();
  if (WIFEXITED(wait_status)) {
    return absl::FailedPreconditionError(
        absl::StrCat(program, " exited with code ", WEXITSTATUS(wait_status)));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(program, " was terminated by signal ", WTERMSIG(wait_status)));
}

}  // namespace

absl::StatusOr<std::string> RunCommand(const Command& command, const CommandLimits& limits) {
  const Clock::time_point deadline = Clock::now() + absl::ToChronoMilliseconds(limits.time);
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");
  const FileDescriptor output(ends[0]);
  FileDescriptor input(ends[1]);
  const absl::StatusOr<pid_t> pid = Spawn(command, input.get());
  if (!pid.ok()) return pid.status();
  Child child(*pid);
  input.Close();
  const FileDescriptor end(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
  if (!end.valid()) return absl::ErrnoToStatus(errno, "pidfd_open");

  // First until it has closed its output, then until it has ended. Its own children may keep the
  // output open for longer: only what was written before it ended counts.
  std::string text;
  bool open = true;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      return absl::DeadlineExceededError(absl::StrCat(command.program, " did not exit within ",
                                                      absl::FormatDuration(limits.time)));
    }
    std::array<pollfd, 2> events = {
        {{end.get(), POLLIN, 0}, {open ? output.get() : -1, POLLIN, 0}}};
    if (::poll(events.data(), events.size(),
               static_cast<int>(std::min<int64_t>(left.count(), 1000))) < 0) {
      if (errno == EINTR) continue;
      return absl::ErrnoToStatus(errno, "poll");
    }
    if (events[1].revents != 0) {
      std::array<char, 4096> bytes;
      const ssize_t got = ::read(output.get(), bytes.data(), bytes.size());
      if (got < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "read");
      if (got == 0) open = false;
      if (got > 0) text.append(bytes.data(), static_cast<size_t>(got));
      if (text.size() > limits.output_bytes) {
        return absl::ResourceExhaustedError(
            absl::StrCat(command.program, " wrote more than ", limits.output_bytes, " bytes"));
      }
    } else if (events[0].revents != 0) {
      break;
    }
  }
  if (absl::Status ended = Ended(command.program, child.Reap()); !ended.ok()) return ended;
  return text;
}

}  // namespace railhead::kube
