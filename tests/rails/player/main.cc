// SPDX-License-Identifier: Apache-2.0
//
// Starts ranks: forks a process for each, which plays its part (player.h). It has loaded the library and computed the
// expected values already, so a rank starts within a millisecond.
//
// Commands on stdin, fields separated by tabs:
//
//   table TYPE OP SCALED ROUNDED RANKS     computes values, for all later ranks
//   start KEY NAMESPACE FOLDER RANK RANKS [NAME=VALUE]...
//       a rank of the program in FOLDER: rank-RANK.txt has its commands, rank-RANK.out gets what it
//       writes, rank-RANK.log its stderr; NAMESPACE is a file of /run/netns, or -
//
// Answers on stdout: `started KEY PID`, `ended KEY STATUS` (of waitpid), `stopped KEY`.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/rails/player/player.h"

namespace railhead::player {
namespace {

[[noreturn]] void Die(const std::string& what) {
  std::perror(what.c_str());
  std::_Exit(3);
}

std::vector<std::string> Lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) Die(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::set<std::string> Entries(const char* folder) {
  std::set<std::string> names;
  DIR* const open = opendir(folder);
  if (open == nullptr) Die(folder);
  while (const dirent* entry = readdir(open)) {
    if (entry->d_name[0] != '.') names.insert(entry->d_name);
  }
  names.erase(std::to_string(dirfd(open)));
  closedir(open);
  return names;
}

std::set<std::string> Threads() { return Entries("/proc/self/task"); }
std::set<std::string> Descriptors() { return Entries("/proc/self/fd"); }

// Describes what is there now and was not there before; "" if nothing is.
std::string Left(const std::set<std::string>& descriptors) {
  std::vector<std::string> left;
  for (const std::string& thread : Threads()) {
    if (thread == std::to_string(getpid())) continue;
    std::string name;
    std::ifstream file(absl::StrCat("/proc/self/task/", thread, "/comm"));
    std::getline(file, name);
    left.push_back(absl::StrCat("thread ", name));
  }
  for (const std::string& descriptor : Descriptors()) {
    if (descriptors.count(descriptor) != 0) continue;
    char target[256] = "";
    const std::string link = absl::StrCat("/proc/self/fd/", descriptor);
    const ssize_t size = readlink(link.c_str(), target, sizeof target - 1);
    left.push_back(absl::StrCat("descriptor ", std::string(target, size > 0 ? static_cast<size_t>(size) : 0)));
  }
  return absl::StrJoin(left, ", ");
}

constexpr int kLeftSeconds = 25;  // rhCommDestroy waits for 10 s in the background

constexpr int kSlowWaits = 300;   // of 10 ms; longer ones are worth a line

[[noreturn]] void PlayRank(const std::vector<std::string>& fields) {
  const std::string& space = fields[2];
  const std::string& folder = fields[3];
  const int rank = std::atoi(fields[4].c_str());
  const int ranks = std::atoi(fields[5].c_str());
  if (space != "-") {
    const int fd = open(space.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) Die(space);
    close(fd);
  }
  for (size_t i = 6; i < fields.size(); ++i) {
    const size_t equal = fields[i].find('=');
    setenv(fields[i].substr(0, equal).c_str(), fields[i].substr(equal + 1).c_str(), 1);
  }
  const std::string own = absl::StrCat(folder, "/rank-", rank);
  const int log = open((own + ".log").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (log < 0 || dup2(log, STDERR_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0) Die(own);
  close(log);
  std::FILE* const out = std::fopen((own + ".out").c_str(), "we");
  const int shared = open(absl::StrCat(folder, "/progress").c_str(), O_RDWR | O_CLOEXEC);
  if (out == nullptr || shared < 0) Die(folder);
  void* const mapped = mmap(nullptr, sizeof(int32_t) * static_cast<size_t>(ranks),
                            PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
  if (mapped == MAP_FAILED) Die(folder);
  close(shared);
  const std::vector<std::string> lines = Lines(own + ".txt");
  const std::set<std::string> before = Descriptors();
  {
    Player player(folder, out, static_cast<std::atomic<int32_t>*>(mapped) + rank, nullptr);
    player.Play(lines);
  }
  const std::string at_first = Left(before);
  std::string left = at_first;
  int waits = 0;
  for (; !left.empty() && waits < kLeftSeconds * 100; ++waits) {
    const timespec pause = {0, 10000000};
    nanosleep(&pause, nullptr);
    left = Left(before);
  }
  if (waits > kSlowWaits) {
    std::fprintf(out, "slow seconds=%.1f until these had ended: %s\n", waits * 0.01, at_first.c_str());
  }
  if (!left.empty()) std::fprintf(out, "left %s\n", left.c_str());
  std::fprintf(out, "bye\n");
  std::fclose(out);
  std::exit(0);  // as programs end: with the library's own ends
}

class Starter {
 public:
  int Run() {
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, &mask_);
    const int signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    while (true) {
      pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {signals, POLLIN, 0}};
      if (poll(fds, 2, -1) < 0) continue;
      if (fds[1].revents != 0) {
        signalfd_siginfo info{};
        while (read(signals, &info, sizeof info) > 0) {
        }
        Reap();
      }
      if (fds[0].revents != 0) {
        char bytes[65536];
        const ssize_t size = read(STDIN_FILENO, bytes, sizeof bytes);
        if (size <= 0) return 0;
        input_.append(bytes, static_cast<size_t>(size));
        for (size_t end = input_.find('\n'); end != std::string::npos; end = input_.find('\n')) {
          const std::string line = input_.substr(0, end);
          input_.erase(0, end + 1);
          Do(absl::StrSplit(line, '\t'));
        }
      }
    }
  }

 private:
  void Do(const std::vector<std::string>& fields) {
    if (fields[0] == "table" && fields.size() == 6) {
      const auto number = [&](size_t i) { return std::atoi(fields[i].c_str()); };
      testing::ValueTable::Of({static_cast<rhDataType_t>(number(1)), static_cast<rhRedOp_t>(number(2)),
                               number(3) != 0,
                               number(4) != 0 ? testing::Values::kRounded : testing::Values::kExact,
                               number(5)});
    } else if (fields[0] == "start" && fields.size() >= 6) {
      const pid_t child = fork();
      if (child < 0) Die("fork");
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setpgid(0, 0);
        sigprocmask(SIG_SETMASK, &mask_, nullptr);
        PlayRank(fields);
      }
      keys_[child] = fields[1];
      Say(absl::StrCat("started ", fields[1], " ", child));
    } else {
      std::fprintf(stderr, "unknown command %s\n", fields[0].c_str());
      std::exit(2);
    }
  }

  void Reap() {
    int status = 0;
    for (pid_t child = 0; (child = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
      if (WIFSTOPPED(status)) {
        Say(absl::StrCat("stopped ", keys_[child]));
        continue;
      }
      Say(absl::StrCat("ended ", keys_[child], " ", status));
      keys_.erase(child);
    }
  }

  static void Say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  sigset_t mask_{};
  std::string input_;
  std::map<pid_t, std::string> keys_;
};

}  // namespace
}  // namespace railhead::player

int main() {
  railhead::player::Moved(0, 0, 0);  // computes its table
  return railhead::player::Starter().Run();
}
