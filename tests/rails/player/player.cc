// SPDX-License-Identifier: Apache-2.0
#include "tests/rails/player/player.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace railhead::player {
namespace {

double Now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void Sleep(double seconds) {
  timespec left{
      static_cast<time_t>(seconds),
      static_cast<long>((seconds - static_cast<double>(static_cast<time_t>(seconds))) * 1e9)};
  while (nanosleep(&left, &left) != 0) {
  }
}

constexpr double kFailSeconds =
    300;  // until a communicator must have failed; the driver ends it earlier
constexpr double kIdSeconds = 300;  // until another rank has written an id
constexpr double kSlowSeconds = 4;  // of a command that is worth a line
constexpr unsigned char kFence = 0x5a;

// Sends this process a signal after a while, wherever it is then.
void Alarm(long microseconds, int number) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = number;
  timer_t timer{};
  itimerspec when{};
  when.it_value.tv_sec = microseconds / 1000000;
  when.it_value.tv_nsec = std::max(1L, microseconds % 1000000 * 1000);
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
      timer_settime(timer, 0, &when, nullptr) != 0) {
    std::abort();
  }
}

std::string Key(int comm, int peer, int tag) { return absl::StrCat(comm, " ", peer, " ", tag); }

size_t Sum(const std::vector<size_t>& counts) {
  size_t sum = 0;
  for (const size_t count : counts) sum += count;
  return sum;
}

// Begins of the parts, one after the other with `gap` elements between them.
std::vector<size_t> Begins(const std::vector<size_t>& counts, size_t gap) {
  std::vector<size_t> begins;
  size_t at = 0;
  for (const size_t count : counts) {
    begins.push_back(at);
    at += count + gap;
  }
  return begins;
}

}  // namespace

void Player::Play(const std::vector<std::string>& lines) {
  for (size_t i = 0; i < lines.size(); ++i) {
    progress_->store(static_cast<int32_t>(i), std::memory_order_relaxed);
    const double begin = Now();
    Do(Command(lines[i]));
    if (Now() - begin > kSlowSeconds) {
      std::fprintf(out_, "slow seconds=%.3f %s\n", Now() - begin, lines[i].c_str());
      std::fflush(out_);
    }
  }
  progress_->store(static_cast<int32_t>(lines.size()), std::memory_order_relaxed);
  CompareMessages();
  FreeWindows();
  for (auto& [number, stream] : streams_) {
    if (rhStreamDestroy(stream) != rhSuccess && queued_[number].empty()) continue;
  }
  std::fprintf(out_, "end checked=%llu\n", static_cast<unsigned long long>(checked_));
  std::fflush(out_);
}

void Player::Do(const Command& command) {
  const std::string& verb = command.verb();
  if (verb == "init") return Init(command);
  if (verb == "split" || verb == "shrink" || verb == "grow") return Make(command);
  if (verb == "call") return Collective(command);
  if (verb == "send" || verb == "recv") return PointToPoint(command);
  if (verb == "isend" || verb == "irecv") return Begin(command);
  if (verb == "wait" || verb == "test") return Finish(command);
  if (verb == "window" || verb == "register") return OpenWindow(command);
  if (verb == "unwindow" || verb == "unregister") return CloseWindow(command);
  if (verb == "destroy" || verb == "abort" || verb == "finalize" || verb == "revoke") {
    return Leave(command);
  }
  if (verb == "fail") return Fail(command);
  if (verb == "compute") return Sleep(static_cast<double>(command.Number("us")) * 1e-6);
  if (verb == "alarm") return Alarm(command.Number("us"), command.Int("signal"));
  if (verb == "expect") {
    expected_[Key(command.Int("comm"), command.Int("peer"), command.Int("tag"))].push_back(
        {command.Number("step"), command.Size("bytes")});
    return;
  }
  if (verb == "group_begin") {
    if (rhGroupStart() != rhSuccess) Wrong(command.Number("step"), "rhGroupStart failed");
    in_group_ = true;
    return;
  }
  if (verb == "group_end") {
    in_group_ = false;
    const double begin = Now();
    const rhResult_t result = rhGroupEnd();
    std::vector<Pending> pending = std::move(grouped_);
    grouped_.clear();
    if (result != rhSuccess) {
      RecordFailed(pending, result, begin);
      const bool known = std::any_of(pending.begin(), pending.end(), [this](const Pending& one) {
        return comms_[one.comm].failed;
      });
      if (!known && !pending.empty())
        Record(result, pending.front().comm, pending.front().step, begin);
    }
    Settle(pending, result == rhSuccess);
    return;
  }
  if (verb == "sync") {
    const int number = command.Int("stream");
    const auto stream = streams_.find(number);
    if (stream == streams_.end()) return;
    const double begin = Now();
    const rhResult_t result = rhStreamSynchronize(stream->second);
    std::vector<Pending> pending = std::move(queued_[number]);
    queued_[number].clear();
    if (result != rhSuccess) RecordFailed(pending, result, begin);
    Settle(pending, result == rhSuccess);
    return;
  }
  Wrong(0, absl::StrCat("unknown command ", verb));
}

// ---- Results ----

void Player::RecordFailed(const std::vector<Pending>& pending, rhResult_t result, double begin) {
  for (const Pending& one : pending) {
    rhResult_t state = rhSuccess;
    Comm& comm = comms_[one.comm];
    if (comm.failed || comm.handle == nullptr) continue;
    if (rhCommGetAsyncError(comm.handle, &state) == rhSuccess && state == rhSuccess) continue;
    Record(result, one.comm, one.step, begin);
  }
}

bool Player::Record(rhResult_t result, int comm, long step, double begin) {
  if (result == rhSuccess) return true;
  const auto found = comms_.find(comm);
  rhComm_t const handle = found == comms_.end() ? nullptr : found->second.handle;
  WriteError(result, comm, step, begin, rhGetLastError(handle));
  if (found != comms_.end()) found->second.failed = true;
  return false;
}

void Player::WriteError(rhResult_t result, int comm, long step, double begin, const char* text) {
  const std::string line = absl::StrReplaceAll(text, {{"\n", " "}});
  std::fprintf(out_, "error comm=%d step=%ld seconds=%.3f %s: %s\n", comm, step, Now() - begin,
               rhGetErrorString(result), line.c_str());
  std::fflush(out_);
}

void Player::Wrong(long step, const std::string& text) {
  std::fprintf(out_, "wrong step=%ld %s\n", step, absl::StrReplaceAll(text, {{"\n", " "}}).c_str());
  std::fflush(out_);
}

void Player::Settle(std::vector<Pending>& pending, bool good) {
  for (Pending& one : pending) {
    if (good || !comms_[one.comm].failed) one.check();
  }
  pending.clear();
}

void Player::After(const Command& command, int comm, long step, rhResult_t result, double begin,
                   std::function<void()> check) {
  if (!Record(result, comm, step, begin)) return;
  Pending one{comm, step, std::move(check)};
  if (in_group_) {
    grouped_.push_back(std::move(one));
  } else if (command.Has("stream")) {
    queued_[command.Int("stream")].push_back(std::move(one));
  } else {
    one.check();
  }
}

void Player::Compare(long step, const Buffer& buffer, size_t at, const Content& content,
                     size_t bytes) {
  checked_ += bytes;
  const auto difference = content.Difference(buffer.data() + at, bytes);
  if (!difference.has_value()) return;
  Wrong(step, absl::StrCat("byte ", *difference, " of ", bytes, " (at ", at, ") is 0x",
                           absl::Hex(static_cast<unsigned>(buffer.data()[at + *difference])),
                           ", not 0x", absl::Hex(static_cast<unsigned>(content.at(*difference)))));
}

void Player::CompareReduced(long step, const Buffer& buffer, size_t at, const Reduced& content,
                            size_t first, size_t count, size_t element) {
  checked_ += count * element;
  const std::string difference = content.Difference(buffer.data() + at, first, count);
  if (!difference.empty())
    Wrong(step, absl::StrCat(difference, " (of ", count, " from ", first, ")"));
}

void Player::Digest(long step, const std::byte* data, size_t bytes) {
  uint64_t digest = 14695981039346656037U;
  for (size_t i = 0; i < bytes; ++i) {
    digest = (digest ^ static_cast<uint64_t>(data[i])) * 1099511628211U;
  }
  std::fprintf(out_, "digest step=%ld %016llx\n", step, static_cast<unsigned long long>(digest));
}

// ---- Communicators ----

rhUniqueId Player::ReadId(const std::string& name) const {
  rhUniqueId id{};
  const std::string path = absl::StrCat(folder_, "/", name);
  for (const double end = Now() + kIdSeconds; Now() < end; Sleep(0.001)) {
    std::ifstream file(path, std::ios::binary);
    if (file.read(id.internal, sizeof id.internal)) return id;
  }
  return id;
}

void Player::WriteId(const std::string& name, const rhUniqueId& id) const {
  const std::string path = absl::StrCat(folder_, "/", name);
  {
    std::ofstream file(path + ".part", std::ios::binary);
    file.write(id.internal, sizeof id.internal);
  }
  if (std::rename((path + ".part").c_str(), path.c_str()) != 0) std::abort();
}

// Waits for a start in the background.
rhResult_t Player::Await(rhComm_t handle, rhResult_t result) {
  while (result == rhInProgress) {
    Sleep(0.0002);
    rhResult_t state = rhSuccess;
    const rhResult_t asked = rhCommGetAsyncError(handle, &state);
    result = asked != rhSuccess ? asked : state;
  }
  return result;
}

void Player::AddComm(int number, rhComm_t handle, const Command& command) {
  Comm& comm = comms_[number];
  comm.handle = handle;
  if (rhCommUserRank(handle, &comm.rank) != rhSuccess || comm.rank != command.Int("rank") ||
      rhCommCount(handle, &comm.ranks) != rhSuccess || comm.ranks != command.Int("ranks")) {
    Wrong(command.Number("step"),
          absl::StrCat("communicator ", number, " has rank ", comm.rank, " of ", comm.ranks,
                       ", not ", command.Int("rank"), " of ", command.Int("ranks")));
  }
}

void Player::Init(const Command& command) {
  const int number = command.Int("comm");
  const double begin = Now();
  rhComm_t handle = nullptr;
  rhResult_t result = rhSuccess;
  if (join_ != nullptr) {
    result = join_(&handle);
  } else if (command.Text("how") == "env") {
    result = rhCommInitFromEnv(&handle);
  } else {
    rhUniqueId id{};
    if (command.Int("rank") == 0) {
      result = rhGetUniqueId(&id);
      WriteId(command.Text("id"), id);
    } else {
      id = ReadId(command.Text("id"));
    }
    rhConfig_t config = RH_CONFIG_INITIALIZER;
    if (command.Has("background")) config.blocking = 0;
    if (result == rhSuccess) {
      result =
          rhCommInitRankConfig(&handle, command.Int("ranks"), id, command.Int("rank"), &config);
    }
    if (result == rhInProgress) comms_[number].handle = handle;
    result = Await(handle, result);
  }
  if (!Record(result, number, command.Number("step"), begin)) {
    comms_[number].failed = true;
    return;
  }
  AddComm(number, handle, command);
  std::fprintf(out_, "ready\n");
  std::fflush(out_);
}

void Player::Make(const Command& command) {
  const int number = command.Int("new");
  const long step = command.Number("step");
  const bool newcomer = command.verb() == "grow" && !command.Has("comm");
  rhComm_t handle = nullptr;
  rhConfig_t config = RH_CONFIG_INITIALIZER;
  if (command.Has("background")) config.blocking = 0;
  const double begin = Now();
  rhResult_t result = rhSuccess;
  rhComm_t parent = nullptr;
  const int parent_number = command.Int("comm", -1);
  if (!newcomer) {
    Comm& from = comms_[parent_number];
    parent = from.handle;
    if (parent == nullptr || (from.failed && command.verb() != "shrink")) {
      comms_[number].failed = true;  // what could not be made fails like its parent
      return;
    }
    if (command.verb() == "shrink" && from.failed) {
      // What others wrote from now on would be seen at the end.
      for (auto& [key, window] : windows_) {
        if (window.comm != parent_number || window.window == nullptr) continue;
        std::memset(window.memory, kFence, window.bytes);
        window.fenced = true;
      }
    }
  }
  if (command.verb() == "split") {
    const int color = command.Has("color") ? command.Int("color") : RH_SPLIT_NOCOLOR;
    result = rhCommSplit(parent, color, command.Int("key"), &handle, &config);
    if (color == RH_SPLIT_NOCOLOR) {
      if (Record(Await(parent, result), parent_number, step, begin) && handle != nullptr) {
        Wrong(step, "a split without a color has made a communicator");
      }
      return;
    }
  } else if (command.verb() == "shrink") {
    std::vector<int> excluded;
    for (const size_t rank : command.Sizes("exclude")) excluded.push_back(static_cast<int>(rank));
    result =
        rhCommShrink(parent, excluded.data(), static_cast<int>(excluded.size()), &handle, &config);
  } else {
    rhUniqueId id{};
    if (command.Has("makes")) {
      result = rhGetUniqueId(&id);
      WriteId(command.Text("id"), id);
    } else {
      id = ReadId(command.Text("id"));
    }
    if (result == rhSuccess) {
      result = rhCommGrow(parent, command.Int("ranks"), id, newcomer ? command.Int("rank") : -1,
                          &handle, &config);
    }
  }
  if (result == rhInProgress) {
    comms_[number].handle = handle;
    result = Await(handle, result);
    if (!Record(result, number, step, begin)) return;
  } else if (!Record(result, newcomer ? number : parent_number, step, begin)) {
    comms_[number].failed = true;
    return;
  }
  AddComm(number, handle, command);
}

void Player::Leave(const Command& command) {
  const int number = command.Int("comm");
  Comm& comm = comms_[number];
  if (comm.handle == nullptr) return;
  const double begin = Now();
  const std::string& verb = command.verb();
  if (verb == "revoke") {
    if (!comm.failed) Record(rhCommRevoke(comm.handle, 0), number, command.Number("step"), begin);
    return;
  }
  if (verb == "finalize") {
    if (!comm.failed) {
      Record(Await(comm.handle, rhCommFinalize(comm.handle)), number, command.Number("step"),
             begin);
    }
    return;
  }
  for (auto op = operators_.begin(); op != operators_.end();) {
    if (op->first.rfind(absl::StrCat(number, " "), 0) == 0) {
      op = operators_.erase(op);
    } else {
      ++op;
    }
  }
  if (verb == "abort") {
    Record(rhCommAbort(comm.handle), number, command.Number("step"), begin);
  } else if (const rhResult_t result = rhCommDestroy(comm.handle); result != rhSuccess) {
    Record(result, number, command.Number("step"), begin);
    rhCommAbort(comm.handle);
  }
  comm.handle = nullptr;
  comm.failed = true;
}

// The communicator has failed or is about to: calls must not go on for ever.
void Player::Fail(const Command& command) {
  const int number = command.Int("comm");
  Comm& comm = comms_[number];
  const double begin = Now();
  while (!comm.failed && comm.handle != nullptr) {
    if (Now() - begin > kFailSeconds) {
      Wrong(command.Number("step"), "the communicator has not failed");
      return;
    }
    Record(rhBarrier(comm.handle, nullptr), number, command.Number("step"), begin);
  }
}

// ---- Memory ----

void Player::OpenWindow(const Command& command) {
  const int comm_number = command.Int("comm");
  Comm& comm = comms_[comm_number];
  Window& window = windows_[command.Int("window")];
  window.comm = comm_number;
  window.bytes = command.Size("bytes");
  const bool shared = window.shared = command.verb() == "window";
  if (shared) {
    if (rhMemAlloc(&window.memory, window.bytes) != rhSuccess) {
      Wrong(command.Number("step"), absl::StrCat("rhMemAlloc: ", rhGetLastError(nullptr)));
      return;
    }
  } else {
    window.memory = std::malloc(window.bytes);
  }
  if (comm.failed || comm.handle == nullptr) return;
  const double begin = Now();
  const rhResult_t result =
      shared ? rhCommWindowRegister(comm.handle, window.memory, window.bytes, &window.window, 0)
             : rhCommRegister(comm.handle, window.memory, window.bytes, &window.registration);
  if (!Record(result, comm_number, command.Number("step"), begin)) return;
  window.arena = std::make_unique<Arena>(static_cast<std::byte*>(window.memory), window.bytes);
}

void Player::CloseWindow(const Command& command) {
  Window& window = windows_[command.Int("window")];
  Comm& comm = comms_[window.comm];
  if (window.arena == nullptr) return;
  window.arena = nullptr;
  if (!comm.failed && comm.handle != nullptr) {
    const double begin = Now();
    Record(command.verb() == "unwindow" ? rhCommWindowDeregister(comm.handle, window.window)
                                        : rhCommDeregister(comm.handle, window.registration),
           window.comm, command.Number("step"), begin);
  }
  window.window = nullptr;
}

void Player::FreeWindows() {
  for (auto& [number, window] : windows_) {
    if (window.fenced) CheckFence(number, window);
    if (window.shared) {
      if (rhMemFree(window.memory) != rhSuccess) {
        Wrong(0, absl::StrCat("rhMemFree: ", rhGetLastError(nullptr)));
      }
    } else {
      std::free(window.memory);
    }
  }
}

void Player::CheckFence(int number, const Window& window) {
  const auto* const bytes = static_cast<const unsigned char*>(window.memory);
  const auto changed = std::count_if(bytes, bytes + window.bytes,
                                     [](unsigned char value) { return value != kFence; });
  checked_ += window.bytes;
  if (changed > 0) {
    Wrong(0, absl::StrCat(changed, " bytes of window ", number,
                          " were changed after its communicator had failed"));
  }
}

std::shared_ptr<Buffer> Player::NewBuffer(const Command& command, size_t bytes, size_t shift) {
  Arena* arena = nullptr;
  if (command.Has("window")) {
    const auto found = windows_.find(command.Int("window"));
    if (found != windows_.end()) arena = found->second.arena.get();
  }
  return std::make_shared<Buffer>(bytes, shift, arena);
}

rhStream_t Player::StreamOf(const Command& command) {
  if (!command.Has("stream")) return nullptr;
  rhStream_t& stream = streams_[command.Int("stream")];
  if (stream == nullptr && rhStreamCreate(&stream) != rhSuccess) {
    Wrong(command.Number("step"), absl::StrCat("rhStreamCreate: ", rhGetLastError(nullptr)));
  }
  return stream;
}

rhRedOp_t Player::OperatorOf(const Command& command, const Comm& comm, rhDataType_t type) {
  if (!command.Has("scaled")) return static_cast<rhRedOp_t>(command.Int("op"));
  const testing::Values values =
      command.Has("rounded") ? testing::Values::kRounded : testing::Values::kExact;
  const std::string key =
      absl::StrCat(command.Int("comm"), " ", type, " ", static_cast<int>(values));
  const auto found = operators_.find(key);
  if (found != operators_.end()) return found->second;
  uint64_t factor = Reduced(0, {type, rhSum, true, values, comm.ranks}).factor(comm.rank);
  rhRedOp_t op = rhSum;
  const rhResult_t result =
      rhRedOpCreatePreMulSum(&op, &factor, type, rhScalarHostImmediate, comm.handle);
  if (result != rhSuccess) {
    Wrong(command.Number("step"),
          absl::StrCat("rhRedOpCreatePreMulSum: ", rhGetLastError(comm.handle)));
  }
  return operators_[key] = op;
}

// ---- Calls ----

// What a collective's check needs, beyond its call.
struct Player::Call {
  std::string kind;
  long step;
  rhDataType_t type;
  size_t element;
  size_t count;
  int root;
  bool in_place;
  int rank;
  size_t ranks;
  std::vector<size_t> counts;    // of parts: received by each rank, or sent by this one
  std::vector<size_t> received;  // all_to_allv
  size_t gap;
};

void Player::Collective(const Command& command) {
  const int number = command.Int("comm");
  const Comm& comm = comms_[number];
  if (comm.handle == nullptr || comm.failed) return;
  Call call;
  call.kind = command.Text("kind");
  call.step = command.Number("step");
  call.type = static_cast<rhDataType_t>(command.Int("type", rhInt8));
  call.element = reduce::SizeOf(call.type);
  call.count = command.Size("count");
  call.root = command.Int("root");
  call.in_place = command.Has("in_place");
  call.rank = comm.rank;
  call.ranks = static_cast<size_t>(comm.ranks);
  call.counts = command.Sizes("counts");
  call.received = command.Sizes("received");
  call.gap = command.Size("gap");
  const std::string& kind = call.kind;
  const size_t element = call.element;
  const auto me = static_cast<size_t>(comm.rank);
  const bool is_root = comm.rank == call.root;
  const bool reduces = kind == "all_reduce" || kind == "reduce" || kind == "reduce_scatter" ||
                       kind == "reduce_scatterv";
  const testing::Operation operation = {
      call.type, static_cast<rhRedOp_t>(command.Int("op")), command.Has("scaled"),
      command.Has("rounded") ? testing::Values::kRounded : testing::Values::kExact, comm.ranks};

  // Elements that this rank sends and receives, and where the smaller one is in the larger.
  size_t send = call.count;
  size_t receive = call.count;
  size_t part = 0;  // of this rank, in the larger buffer, in elements
  const std::vector<size_t> begins = Begins(call.counts, call.gap);
  const std::vector<size_t> received_at = Begins(call.received, call.gap);
  if (kind == "all_gather") {
    receive = call.count * call.ranks;
    part = me * call.count;
  } else if (kind == "reduce_scatter") {
    send = call.count * call.ranks;
    part = me * call.count;
  } else if (kind == "all_gatherv") {
    send = call.counts[me];
    receive = Sum(call.counts) + call.gap * call.ranks;
    part = begins[me];
  } else if (kind == "reduce_scatterv") {
    send = Sum(call.counts);
    receive = call.counts[me];
    part = begins[me];
  } else if (kind == "all_to_all") {
    send = receive = call.count * call.ranks;
  } else if (kind == "all_to_allv") {
    send = Sum(call.counts) + call.gap * call.ranks;
    receive = Sum(call.received) + call.gap * call.ranks;
  } else if (kind == "gather") {
    receive = is_root ? call.count * call.ranks : 0;
    part = me * call.count;
  } else if (kind == "scatter") {
    send = is_root ? call.count * call.ranks : 0;
    part = me * call.count;
  } else if (kind == "broadcast") {
    send = is_root ? call.count : 0;
  } else if (kind == "reduce") {
    receive = is_root ? call.count : 0;
  } else if (kind == "barrier") {
    send = receive = 0;
  }
  // Not in place where one buffer does not exist.
  if (((kind == "gather" || kind == "scatter" || kind == "broadcast" || kind == "reduce") &&
       !is_root) ||
      kind == "all_to_allv") {
    call.in_place = false;
  }
  const size_t shift = command.Size("shift") * element;
  std::shared_ptr<Buffer> out;
  std::shared_ptr<Buffer> in;
  std::byte* out_at = nullptr;
  std::byte* in_at = nullptr;
  if (call.in_place) {
    out = in = NewBuffer(command, std::max(send, receive) * element, shift);
    out_at = in->data() + (send < receive ? part * element : 0);
    in_at = in->data() + (receive < send ? part * element : 0);
  } else {
    out = NewBuffer(command, send * element, shift);
    in = NewBuffer(command, receive * element, command.Size("shift2") * element);
    out_at = out->data();
    in_at = in->data();
  }

  // Write what is sent.
  if (reduces) {
    Reduced(static_cast<uint64_t>(call.step), operation)
        .Input(comm.rank, 0)
        .Write(out_at, send * element);
  } else if (kind == "all_to_all" || kind == "scatter" || kind == "all_to_allv") {
    for (size_t to = 0; to < call.ranks && send > 0; ++to) {
      const bool listed = kind == "all_to_allv";
      Moved(static_cast<uint64_t>(call.step), comm.rank, static_cast<int>(to))
          .Write(out_at + (listed ? begins[to] : to * call.count) * element,
                 (listed ? call.counts[to] : call.count) * element);
    }
  } else if (kind != "barrier") {
    Moved(static_cast<uint64_t>(call.step), comm.rank, 0).Write(out_at, send * element);
  }
  std::vector<std::byte> sent;  // nothing may change in what is sent
  if (!call.in_place && command.Has("keeps")) sent.assign(out_at, out_at + send * element);

  const rhRedOp_t op = reduces ? OperatorOf(command, comm, call.type) : rhSum;
  rhStream_t const stream = StreamOf(command);
  const size_t* const displs = call.gap > 0 ? begins.data() : nullptr;
  const size_t* const more_displs = call.gap > 0 ? received_at.data() : nullptr;
  // A buffer that a rank does not use may be NULL.
  const void* const from = send == 0 && !is_root && !call.in_place ? nullptr : out_at;
  void* const to = receive == 0 && !is_root && !call.in_place ? nullptr : in_at;
  const double begin = Now();
  rhResult_t result = rhSuccess;
  rhComm_t const handle = comm.handle;
  if (kind == "all_reduce") {
    result = rhAllReduce(out_at, in_at, call.count, call.type, op, handle, stream);
  } else if (kind == "all_gather") {
    result = rhAllGather(out_at, in_at, call.count, call.type, handle, stream);
  } else if (kind == "reduce_scatter") {
    result = rhReduceScatter(out_at, in_at, call.count, call.type, op, handle, stream);
  } else if (kind == "broadcast") {
    result = rhBroadcast(from, in_at, call.count, call.type, call.root, handle, stream);
  } else if (kind == "reduce") {
    result = rhReduce(out_at, to, call.count, call.type, op, call.root, handle, stream);
  } else if (kind == "barrier") {
    result = rhBarrier(handle, stream);
  } else if (kind == "all_gatherv") {
    result = rhAllGatherv(out_at, in_at, call.counts.data(), displs, call.type, handle, stream);
  } else if (kind == "reduce_scatterv") {
    result = rhReduceScatterv(out_at, in_at, call.counts.data(), call.type, op, handle, stream);
  } else if (kind == "all_to_all") {
    result = rhAlltoAll(out_at, in_at, call.count, call.type, handle, stream);
  } else if (kind == "all_to_allv") {
    result = rhAlltoAllv(out_at, call.counts.data(), displs, in_at, call.received.data(),
                         more_displs, call.type, handle, stream);
  } else if (kind == "gather") {
    result = rhGather(out_at, to, call.count, call.type, call.root, handle, stream);
  } else if (kind == "scatter") {
    result = rhScatter(from, in_at, call.count, call.type, call.root, handle, stream);
  } else {
    Wrong(call.step, absl::StrCat("unknown collective ", kind));
  }

  const auto step = static_cast<uint64_t>(call.step);
  auto check = [this, call = std::move(call), out = std::move(out), in = std::move(in), out_at,
                in_at, begins, received_at, part, sent = std::move(sent), operation, step, is_root,
                reduces, receive] {
    const std::string& of = call.kind;
    const size_t size = call.element;
    const auto at = static_cast<size_t>(in_at - in->data());
    if (!out->GuardsAreWhole() || !in->GuardsAreWhole())
      Wrong(call.step, "a guard was overwritten");
    if (!sent.empty() && std::memcmp(sent.data(), out_at, sent.size()) != 0) {
      Wrong(call.step, "what was sent was changed");
    }
    if (of == "barrier" || receive == 0) return;
    if (reduces) {
      const size_t first = of == "reduce_scatter" || of == "reduce_scatterv" ? part : 0;
      CompareReduced(call.step, *in, at, Reduced(step, operation), first, receive, size);
      if (operation.depends_on_order() && of == "all_reduce") {
        Digest(call.step, in_at, receive * size);
      }
    } else if (of == "broadcast") {
      Compare(call.step, *in, at, Moved(step, call.root, 0), receive * size);
    } else if (of == "scatter") {
      Compare(call.step, *in, at, Moved(step, call.root, call.rank), receive * size);
    } else {
      const bool listed = of == "all_gatherv" || of == "all_to_allv";
      const std::vector<size_t>& counts = of == "all_to_allv" ? call.received : call.counts;
      const std::vector<size_t>& from_begins = of == "all_to_allv" ? received_at : begins;
      const bool each = of == "all_to_all" || of == "all_to_allv";
      for (size_t r = 0; r < call.ranks; ++r) {
        Compare(call.step, *in, at + (listed ? from_begins[r] : r * call.count) * size,
                Moved(step, static_cast<int>(r), each ? call.rank : 0),
                (listed ? counts[r] : call.count) * size);
      }
    }
  };
  After(command, number, command.Number("step"), result, begin, std::move(check));
}

void Player::PointToPoint(const Command& command) {
  const int number = command.Int("comm");
  const Comm& comm = comms_[number];
  if (comm.handle == nullptr || comm.failed) return;
  const long step = command.Number("step");
  const auto type = static_cast<rhDataType_t>(command.Int("type"));
  const size_t element = reduce::SizeOf(type);
  const size_t count = command.Size("count");
  const int peer = command.Int("peer");
  const bool sends = command.verb() == "send";
  std::shared_ptr<Buffer> buffer =
      NewBuffer(command, count * element, command.Size("shift") * element);
  const Content content = Moved(static_cast<uint64_t>(step), 0, 0);
  if (sends) content.Write(buffer->data(), count * element);
  rhStream_t const stream = StreamOf(command);
  const double begin = Now();
  const rhResult_t result = sends ? rhSend(buffer->data(), count, type, peer, comm.handle, stream)
                                  : rhRecv(buffer->data(), count, type, peer, comm.handle, stream);
  After(command, number, step, result, begin, [this, buffer, content, step, count, element, sends] {
    if (!buffer->GuardsAreWhole()) Wrong(step, "a guard was overwritten");
    if (!sends) Compare(step, *buffer, 0, content, count * element);
  });
}

// ---- Transfers ----

void Player::Begin(const Command& command) {
  const int number = command.Int("comm");
  const Comm& comm = comms_[number];
  if (comm.handle == nullptr || comm.failed) return;
  const long step = command.Number("step");
  const long key = command.Number("request");
  const auto type = static_cast<rhDataType_t>(command.Int("type"));
  const size_t element = reduce::SizeOf(type);
  const size_t count = command.Size("count");
  Transfer& transfer = transfers_[key];
  transfer.comm = number;
  transfer.step = step;
  transfer.sends = command.verb() == "isend";
  transfer.element = element;
  transfer.buffer =
      std::make_unique<Buffer>(count * element, command.Size("shift") * element, nullptr);
  const double begin = Now();
  rhResult_t result = rhSuccess;
  if (transfer.sends) {
    Moved(static_cast<uint64_t>(step), 0, 0).Write(transfer.buffer->data(), count * element);
    result = rhIsend(transfer.buffer->data(), count, type, command.Int("peer"), command.Int("tag"),
                     comm.handle, &transfer.request);
  } else {
    receives_.push_back(key);
    result = rhIrecv(transfer.buffer->data(), count, type, command.Int("peer"), command.Int("tag"),
                     comm.handle, &transfer.request);
  }
  if (!Record(result, number, step, begin)) transfer.request = nullptr;
}

void Player::Finish(const Command& command) {
  const auto found = transfers_.find(command.Number("request"));
  if (found == transfers_.end() || found->second.request == nullptr) return;
  Transfer& transfer = found->second;
  const double begin = Now();
  // The text of a transfer's failure is the thread's.
  const auto record_failed = [&](rhResult_t result) {
    Comm& comm = comms_[transfer.comm];
    if (result == rhSuccess || comm.failed) return;
    WriteError(result, transfer.comm, transfer.step, begin, rhGetLastError(nullptr));
    comm.failed = true;
  };
  if (command.verb() == "test") {
    int done = 0;
    record_failed(rhRequestTest(transfer.request, &done));
    return;
  }
  const rhResult_t result = rhRequestWait(transfer.request);
  record_failed(result);
  if (result == rhSuccess) {
    transfer.info.struct_size = sizeof transfer.info;
    if (rhRequestGetInfo(transfer.request, &transfer.info) != rhSuccess) {
      Wrong(transfer.step, absl::StrCat("rhRequestGetInfo: ", rhGetLastError(nullptr)));
    } else {
      transfer.done = true;
    }
  }
  if (rhRequestFree(transfer.request) != rhSuccess) Wrong(transfer.step, "rhRequestFree failed");
  transfer.request = nullptr;
}

void Player::CompareMessages() {
  std::map<std::string, size_t> next;
  std::set<int>
      incomplete;  // communicators with a receive that failed: later ones may have any message
  for (const long key : receives_) {
    Transfer& transfer = transfers_[key];
    if (!transfer.done) incomplete.insert(transfer.comm);
    if (incomplete.count(transfer.comm) != 0) continue;
    const std::string from = Key(transfer.comm, transfer.info.peer, transfer.info.tag);
    const std::vector<Message>& messages = expected_[from];
    const size_t number = next[from]++;
    if (number >= messages.size()) {
      Wrong(transfer.step, absl::StrCat("message ", number, " of peer ", transfer.info.peer,
                                        " and tag ", transfer.info.tag, " was never sent"));
      continue;
    }
    const Message& message = messages[number];
    if (!transfer.buffer->GuardsAreWhole()) Wrong(transfer.step, "a guard was overwritten");
    if (transfer.info.bytes != message.bytes) {
      Wrong(transfer.step, absl::StrCat("a message has ", transfer.info.bytes, " bytes, not ",
                                        message.bytes, " as that of step ", message.step));
      continue;
    }
    Compare(transfer.step, *transfer.buffer, 0, Moved(static_cast<uint64_t>(message.step), 0, 0),
            message.bytes);
    if (!transfer.buffer->IsUntouchedFrom(message.bytes)) {
      Wrong(transfer.step, "the library has written behind a message");
    }
  }
}

}  // namespace railhead::player
