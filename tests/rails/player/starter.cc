// SPDX-License-Identifier: Apache-2.0
#include "tests/rails/player/starter.h"

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

#include <cstdlib>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/rails/player/content.h"

namespace railhead::player {
namespace {

constexpr int kWaitMilliseconds = 10;
constexpr int kMostWaits = 2500;  // 25 s; rhCommDestroy waits for 10 s in the background
constexpr int kSlowWaits = 300;   // longer ones are worth a line

[[noreturn]] void Die(const std::string& what) {
  std::perror(what.c_str());
  std::_Exit(3);
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

}  // namespace

std::vector<std::string> Start::Lines(int of_rank) const {
  const std::string path = absl::StrCat(folder, "/rank-", of_rank, ".txt");
  std::ifstream file(path);
  if (!file) Die(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::FILE* Start::Out(int of_rank) const {
  const std::string path = absl::StrCat(folder, "/rank-", of_rank, ".out");
  std::FILE* const out = std::fopen(path.c_str(), "we");
  if (out == nullptr) Die(path);
  return out;
}

std::atomic<int32_t>* Start::Progress() const {
  const int shared = open(absl::StrCat(folder, "/progress").c_str(), O_RDWR | O_CLOEXEC);
  if (shared < 0) Die(folder);
  void* const mapped = mmap(nullptr, sizeof(int32_t) * static_cast<size_t>(ranks),
                            PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
  if (mapped == MAP_FAILED) Die(folder);
  close(shared);
  return static_cast<std::atomic<int32_t>*>(mapped);
}

Leftovers::Leftovers() : descriptors_(Entries("/proc/self/fd")) {}

std::string Leftovers::Left() const {
  std::vector<std::string> left;
  for (const std::string& thread : Entries("/proc/self/task")) {
    if (thread != std::to_string(getpid())) left.push_back("a thread");
  }
  for (const std::string& descriptor : Entries("/proc/self/fd")) {
    if (descriptors_.count(descriptor) != 0) continue;
    char target[256] = "";
    const ssize_t size =
        readlink(absl::StrCat("/proc/self/fd/", descriptor).c_str(), target, sizeof target - 1);
    left.push_back(std::string(target, size > 0 ? static_cast<size_t>(size) : 0));
  }
  return absl::StrJoin(left, ", ");
}

void Leftovers::Report(std::FILE* out) const {
  const std::string at_first = Left();
  std::string left = at_first;
  int waits = 0;
  for (; !left.empty() && waits < kMostWaits; ++waits) {
    const timespec pause = {0, kWaitMilliseconds * 1000000};
    nanosleep(&pause, nullptr);
    left = Left();
  }
  if (!left.empty()) {
    std::fprintf(out, "left %s\n", left.c_str());
  } else if (waits > kSlowWaits) {
    std::fprintf(out, "slow seconds=%.1f until these had ended: %s\n",
                 waits * kWaitMilliseconds * 0.001, at_first.c_str());
  }
}

namespace {

class Server {
 public:
  explicit Server(const std::function<void(const Start&)>& play) : play_(play) {}

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
      testing::ValueTable::Of(
          {static_cast<rhDataType_t>(number(1)), static_cast<rhRedOp_t>(number(2)), number(3) != 0,
           number(4) != 0 ? testing::Values::kRounded : testing::Values::kExact, number(5)});
    } else if (fields[0] == "start" && fields.size() >= 6) {
      const pid_t child = fork();
      if (child < 0) Die("fork");
      if (child == 0) {
        sigprocmask(SIG_SETMASK, &mask_, nullptr);
        Play(fields);
      }
      keys_[child] = fields[1];
      Say(absl::StrCat("started ", fields[1], " ", child));
    } else {
      std::fprintf(stderr, "unknown command %s\n", fields[0].c_str());
      std::exit(2);
    }
  }

  // In the child.
  [[noreturn]] void Play(const std::vector<std::string>& fields) const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    const Start start = {fields[3], std::atoi(fields[4].c_str()), std::atoi(fields[5].c_str())};
    if (fields[2] != "-") {
      const int space = open(fields[2].c_str(), O_RDONLY | O_CLOEXEC);
      if (space < 0 || setns(space, CLONE_NEWNET) != 0) Die(fields[2]);
      close(space);
    }
    for (size_t i = 6; i < fields.size(); ++i) {
      const size_t equal = fields[i].find('=');
      setenv(fields[i].substr(0, equal).c_str(), fields[i].substr(equal + 1).c_str(), 1);
    }
    const std::string path = absl::StrCat(start.folder, "/rank-", start.rank, ".log");
    const int log = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (log < 0 || dup2(log, STDERR_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0) Die(path);
    close(log);
    play_(start);
    std::exit(0);  // as programs end: with the library's own ends
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

  const std::function<void(const Start&)>& play_;
  sigset_t mask_{};
  std::string input_;
  std::map<pid_t, std::string> keys_;
};

}  // namespace

int Serve(const std::function<void(const Start&)>& play) {
  Moved(0, 0, 0);  // computes its table
  return Server(play).Run();
}

}  // namespace railhead::player
