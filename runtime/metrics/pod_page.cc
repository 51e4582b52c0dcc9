// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/pod_page.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runtime/base/halt.h"
#include "runtime/base/mac.h"
#include "runtime/base/now.h"
#include "runtime/base/thread.h"
#include "runtime/base/wire.h"
#include "runtime/net/local_socket.h"
#include "runtime/net/socket.h"

namespace railhead::metrics {
namespace {

// The host sends this byte; the answer is its length in 4 bytes and the encoded families.
constexpr char kAsk = 'p';
constexpr size_t kLengthSize = 4;
constexpr size_t kLongestAnswer = 16 << 20;
// No pod has more processes.
constexpr size_t kMostMembers = 1024;

// Jobs with such names in one pod, one after the other.
constexpr size_t kMostWarnings = 100;

// A member that takes longer, such as one that is stopped in a debugger, is omitted; it reconnects
// when it continues. Prometheus waits 10 s by default.
constexpr absl::Duration kAnswer = absl::Seconds(1);
// The host serves soon after it has the name; it has the name a little longer than it serves.
constexpr absl::Duration kJoin = absl::Seconds(2);
// Between attempts to take over where another process keeps the port.
constexpr absl::Duration kTryAgain = absl::Seconds(1);

// Unlike that of another port, or of another pod in the same network namespace.
std::string SocketName(int port, absl::string_view pod) {
  const std::string digest = Mac("", "railhead metrics page 1", {absl::StrCat(port), pod});
  return absl::StrCat("railhead-page-", absl::BytesToHexString(digest.substr(0, 16)));
}

// Returns the number of the process at the other end, as this process sees it.
std::string ProcessAt(int fd) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return absl::StrCat(peer.pid);
}

// The answer of one member, as it arrives.
class Answer {
 public:
  // Takes what has arrived. Returns false if nothing more can come of this connection.
  bool Receive(int fd) {
    const size_t most = kLengthSize + kLongestAnswer - bytes_.size();
    const absl::StatusOr<bool> open = net::ReceiveSome(fd, most, &bytes_);
    return open.ok() && *open && Length() <= kLongestAnswer;
  }
  bool IsComplete() const {
    return bytes_.size() >= kLengthSize && bytes_.size() >= kLengthSize + Length();
  }
  absl::StatusOr<Families> Parse() const {
    if (!IsComplete()) return absl::UnavailableError("the connection has ended");
    return ParseFamilies(absl::string_view(bytes_).substr(kLengthSize));
  }

 private:
  size_t Length() const { return WireReader(bytes_).U32(); }  // 0 while it is unknown

  std::string bytes_;
};

// Asks all members for their families. Closes the connections of those that give no answer in time.
std::vector<Page> Ask(std::list<net::Fd>& members) {
  const absl::Time deadline = MonotonicNow() + kAnswer;
  struct Asked {
    std::list<net::Fd>::iterator member;
    Answer answer = {};
  };
  std::list<Asked> waiting;
  for (auto member = members.begin(); member != members.end(); ++member) {
    waiting.push_back({member});
    // A member that is gone reads as the end of the stream.
    net::SendAll(member->get(), absl::string_view(&kAsk, 1), deadline).IgnoreError();
  }
  std::vector<Page> pages;
  while (!waiting.empty() && MonotonicNow() < deadline) {
    std::vector<pollfd> entries;
    for (const Asked& asked : waiting) entries.push_back({asked.member->get(), POLLIN, 0});
    if (::poll(entries.data(), entries.size(), net::PollTimeout(deadline)) < 0) continue;
    auto asked = waiting.begin();
    for (const pollfd& entry : entries) {
      const auto current = asked++;
      if (entry.revents == 0) continue;
      const bool open = current->answer.Receive(entry.fd);
      if (open && !current->answer.IsComplete()) continue;
      absl::StatusOr<Families> families = current->answer.Parse();
      if (families.ok()) {
        pages.push_back({ProcessAt(entry.fd), *std::move(families)});
      } else {
        members.erase(current->member);
      }
      waiting.erase(current);
    }
  }
  for (const Asked& asked : waiting) members.erase(asked.member);
  return pages;
}

}  // namespace

PodPage::PodPage(int port, std::string name, std::function<Families()> read, Logger log)
    : port_(port), name_(std::move(name)), read_(std::move(read)), log_(std::move(log)) {}

absl::StatusOr<std::unique_ptr<PodPage>> PodPage::Open(int port, absl::string_view pod,
                                                       std::function<Families()> read,
                                                       const Logger& log) {
  auto page =
      std::unique_ptr<PodPage>(new PodPage(port, SocketName(port, pod), std::move(read), log));
  if (port == 0) {
    if (absl::Status served = page->Serve(); !served.ok()) return served;
    page->port_ = page->server_->port();
    return page;
  }
  page->stop_ = net::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!page->stop_.valid()) return net::ErrnoError("eventfd", errno);
  if (absl::Status joined = page->Join(); !joined.ok()) return joined;
  if (page->server_ != nullptr) return page;
  absl::StatusOr<std::thread> attendant = TryStartThread([raw = page.get()] { raw->Attend(); });
  if (!attendant.ok()) return attendant.status();
  page->attendant_ = *std::move(attendant);
  return page;
}

PodPage::~PodPage() {
  if (attendant_.joinable()) {
    const uint64_t one = 1;
    static_cast<void>(!::write(stop_.get(), &one, sizeof one));
    attendant_.join();
  }
  server_.reset();  // its threads use the rest
}

absl::Status PodPage::Join() {
  const absl::Time deadline = MonotonicNow() + kJoin;
  const Halt stopped = [this] {
    pollfd entry = {stop_.get(), POLLIN, 0};
    return ::poll(&entry, 1, 0) > 0 ? absl::CancelledError("the page is closed") : absl::OkStatus();
  };
  while (true) {
    absl::StatusOr<net::Fd> listener = net::BindLocal(name_);
    if (listener.ok()) {
      listener_ = *std::move(listener);
      listener_.KeepFromChildren();  // one that lives on would keep the others from taking over
      absl::Status served = Serve();
      if (served.ok()) served = net::ListenLocal(listener_);
      if (served.ok()) return served;
      server_.reset();
      listener_.Reset();
      return served;
    }
    if (!absl::IsAlreadyExists(listener.status())) return listener.status();
    absl::StatusOr<net::Fd> host = net::DialLocal(name_, deadline, stopped);
    if (host.ok() && net::IsOurUser(host->get())) {
      host_ = *std::move(host);
      return absl::OkStatus();
    }
    if (host.ok()) {
      return absl::UnavailableError(
          absl::StrCat("cannot share the page at RAILHEAD_METRICS_PORT ", port_,
                       " with the process of this pod that serves it, which runs as another user"));
    }
    absl::Status again = host.status();
    if (absl::IsNotFound(again) && MonotonicNow() < deadline) {
      again = SleepUntil(MonotonicNow() + absl::Milliseconds(1), stopped);
    }
    if (!again.ok()) {
      return absl::UnavailableError(
          absl::StrCat("cannot share the page at RAILHEAD_METRICS_PORT ", port_,
                       " with the process of this pod that serves it: ", again.message()));
    }
  }
}

absl::Status PodPage::Serve() {
  absl::StatusOr<std::unique_ptr<Server>> server =
      metrics::Serve(port_, [this] { return Collect(); });
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  return absl::OkStatus();
}

void PodPage::Attend() {
  while (true) {
    if (!host_.valid() && Join().ok() && server_ != nullptr) return;
    pollfd entries[] = {{stop_.get(), POLLIN, 0}, {host_.get(), POLLIN, 0}};
    const int pause = host_.valid() ? -1 : static_cast<int>(absl::ToInt64Milliseconds(kTryAgain));
    ::poll(entries, std::size(entries), pause);
    if (entries[0].revents != 0) return;
    if (entries[1].revents != 0 && !AnswerOnce().ok()) host_.Reset();
  }
}

absl::Status PodPage::AnswerOnce() {
  std::string asked;
  const absl::StatusOr<bool> open = net::ReceiveSome(host_.get(), 1, &asked);
  if (!open.ok()) return open.status();
  if (!*open) return absl::UnavailableError("the host has ended");
  if (asked.empty()) return absl::OkStatus();
  WireWriter answer;
  answer.String(Encode(read_()));
  return net::SendAll(host_.get(), answer.Take(), MonotonicNow() + kAnswer);
}

Families PodPage::Collect() {
  std::vector<Page> pages = {{absl::StrCat(::getpid()), read_()}};
  const std::lock_guard<std::mutex> lock(mutex_);
  Welcome();
  std::vector<Page> others = Ask(members_);
  std::move(others.begin(), others.end(), std::back_inserter(pages));
  MergedPage merged = Merge(std::move(pages));
  Log(merged.warnings);
  return std::move(merged.families);
}

void PodPage::Log(const std::vector<PageWarning>& warnings) {
  for (const PageWarning& warning : warnings) {
    if (warned_.size() < kMostWarnings && warned_.insert(warning.subject).second) {
      log_.Warn(warning.text);
    }
  }
}

void PodPage::Welcome() {
  while (listener_.valid() && members_.size() < kMostMembers) {
    absl::StatusOr<net::Fd> member = net::Accept(listener_.get());
    if (!member.ok() || !member->valid()) return;
    if (net::IsOurUser(member->get())) members_.push_back(*std::move(member));
  }
}

}  // namespace railhead::metrics
