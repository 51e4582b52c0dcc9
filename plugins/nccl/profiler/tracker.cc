// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/profiler/tracker.h"

#include <algorithm>

namespace railhead::nccl {
namespace {

constexpr Nanoseconds kSecond = 1'000'000'000;
// All transfers of a call start within this after each other.
constexpr Nanoseconds kGap = kSecond / 10;
// A call without transfers by then does not use the network.
constexpr Nanoseconds kNoTransfers = 5 * kSecond;
// Of events that NCCL never stops, after an error and for transports that do not report.
constexpr Nanoseconds kAbandoned = 600 * kSecond;
constexpr Nanoseconds kSilence = 5 * kSecond;
constexpr Nanoseconds kBetweenSearches = kSecond;
// Names of communicators that have series of their own; each may have hundreds.
constexpr size_t kMostLabels = 8;
constexpr char kOthers[] = "others";
constexpr size_t kMostSilent = 8;    // on the page
constexpr int kMostPeers = 1 << 17;  // ranks whose data is watched

constexpr unsigned kKindShift = 56;

// The pool's key of a handle.
uint64_t KeyOf(EventHandle handle) { return handle & ((uint64_t{1} << kKindShift) - 1); }

constexpr std::array<const char*, kStages> kCauses = {"gpu",  "peer",  "network",
                                                      "peer", "flush", "gpu"};
constexpr int kStagesOfTransfer = 3;

// The earlier of two, of which the first may not have happened.
Nanoseconds Earlier(Nanoseconds a, Nanoseconds b, Nanoseconds never) {
  return a == never ? b : std::min(a, b);
}

}  // namespace

Tracker::Tracker(Limits limits)
    : comms_(limits.communicators),
      calls_(limits.calls),
      transfers_(limits.transfers),
      steps_(limits.steps),
      kernels_(limits.others),
      others_(limits.others),
      labels_{""} {}

EventHandle Tracker::Handle(Kind kind, uint64_t key) {
  return key == 0 ? 0 : (static_cast<uint64_t>(kind) << kKindShift) | key;
}

template <class Object>
Object* Tracker::Find(SlotPool<Object>& pool, Kind kind, EventHandle handle) {
  if (handle >> kKindShift != static_cast<uint64_t>(kind)) return nullptr;
  return pool.Find(KeyOf(handle));
}

template <class Object>
EventHandle Tracker::Start(SlotPool<Object>& pool, Kind kind, Object object, Nanoseconds now) {
  if (pool.used() == pool.limit()) MakeRoom(now);
  const EventHandle handle = Handle(kind, pool.Acquire());
  if (handle == 0) {
    ++dropped_;
    return 0;
  }
  *Find(pool, kind, handle) = std::move(object);
  ++CountsOf(kind).started;
  return handle;
}

size_t Tracker::LabelOf(const std::string& name) {
  const auto known = std::find(labels_.begin(), labels_.end(), name);
  if (known != labels_.end()) return static_cast<size_t>(known - labels_.begin());
  // The first two of them are no name, and "others".
  if (labels_.size() == 1) labels_.emplace_back(kOthers);
  if (labels_.size() >= kMostLabels + 2) return 1;
  labels_.push_back(name);
  return labels_.size() - 1;
}

EventHandle Tracker::Open(Communicator communicator) {
  Comm comm;
  comm.label = LabelOf(communicator.name);
  comm.facts = std::move(communicator);
  const EventHandle handle = Handle(Kind::kCommunicator, comms_.Acquire());
  if (handle != 0) *Find(comms_, Kind::kCommunicator, handle) = std::move(comm);
  return handle;
}

void Tracker::NoteRank(EventHandle communicator, int rank) {
  Comm* const comm = Find(comms_, Kind::kCommunicator, communicator);
  if (comm != nullptr && rank < kMostPeers) comm->highest_rank = std::max(comm->highest_rank, rank);
}

bool Tracker::Close(EventHandle communicator, Nanoseconds now) {
  Comm* const comm = Find(comms_, Kind::kCommunicator, communicator);
  if (comm == nullptr) return false;
  for (const EventHandle handle : comm->stopped) {
    const Call* const call = Find(calls_, Kind::kCall, handle);
    if (call != nullptr && call->open == 0) CountCall(*call);
  }
  transfers_.ForEach([&](uint64_t key, Transfer& transfer) {
    if (transfer.comm != communicator) return;
    Account(transfer, now);
    transfers_.Release(key);
  });
  calls_.ForEach([&](uint64_t key, const Call& call) {
    if (call.comm == communicator) calls_.Release(key);
  });
  ReleaseOrphans();
  std::erase_if(silent_, [&](const auto& entry) { return entry.first.first == communicator; });
  comms_.Release(KeyOf(communicator));
  return true;
}

void Tracker::ReleaseOrphans() {
  steps_.ForEach([&](uint64_t key, const Step& step) {
    if (Find(transfers_, Kind::kTransfer, step.transfer) == nullptr) steps_.Release(key);
  });
  kernels_.ForEach([&](uint64_t key, const Kernel& kernel) {
    if (Find(calls_, Kind::kCall, kernel.call) == nullptr) kernels_.Release(key);
  });
}

uint64_t Tracker::LargerBuffer(const Call& call) {
  if (!call.name.is_part) return call.bytes;
  const Comm* const comm = Find(comms_, Kind::kCommunicator, call.comm);
  if (comm == nullptr) return call.bytes;
  const int ranks = comm->facts.ranks > 0 ? comm->facts.ranks : comm->highest_rank + 1;
  return call.bytes * static_cast<uint64_t>(ranks);
}

EventHandle Tracker::StartCall(EventHandle communicator, CallName name, uint64_t bytes,
                               Nanoseconds now) {
  if (Find(comms_, Kind::kCommunicator, communicator) == nullptr) return 0;
  Call call;
  call.comm = communicator;
  call.name = name;
  call.bytes = bytes;
  call.started = call.changed = now;
  call.cell = name.call * metrics::kSizeClasses.size() + metrics::SizeClass(LargerBuffer(call));
  return Start(calls_, Kind::kCall, call, now);
}

EventHandle Tracker::StartTransfer(EventHandle of_call, int peer, Direction direction,
                                   Nanoseconds now) {
  const Call* const known = Find(calls_, Kind::kCall, of_call);
  if (known == nullptr) return 0;
  Transfer transfer;
  transfer.call = of_call;
  transfer.comm = known->comm;
  transfer.cell = known->cell;
  transfer.peer = peer;
  transfer.direction = direction;
  transfer.since = transfer.changed = transfer.quiet = now;
  const EventHandle handle = Start(transfers_, Kind::kTransfer, transfer, now);
  // Start may have made room.
  Call* const call = Find(calls_, Kind::kCall, of_call);
  if (handle == 0 || call == nullptr) return handle;
  ++call->open;
  ++call->children;
  call->sends = call->sends || direction == Direction::kSend;
  call->changed = now;
  NoteRank(call->comm, peer);
  return handle;
}

EventHandle Tracker::StartForeignTransfer(int peer, Direction direction, Nanoseconds now) {
  Transfer transfer;
  transfer.cell = kOtherProcess * metrics::kSizeClasses.size();
  transfer.peer = peer;
  transfer.direction = direction;
  transfer.since = transfer.changed = transfer.quiet = now;
  return Start(transfers_, Kind::kTransfer, transfer, now);
}

EventHandle Tracker::StartStep(EventHandle of_transfer, int number, Nanoseconds now) {
  Transfer* transfer = Find(transfers_, Kind::kTransfer, of_transfer);
  if (transfer == nullptr) return 0;
  if (const Step* const known = Find(steps_, Kind::kStep, transfer->At(number))) {
    if (known->number == number && known->stage < 0) return transfer->At(number);
    EndStep(transfer->At(number), now);
  }
  Step step;
  step.transfer = of_transfer;
  step.number = number;
  const EventHandle handle = Start(steps_, Kind::kStep, step, now);
  transfer = Find(transfers_, Kind::kTransfer, of_transfer);
  if (transfer != nullptr) {
    transfer->At(number) = handle;
    transfer->changed = now;
  }
  return handle;
}

EventHandle Tracker::StartKernel(EventHandle of_call, std::optional<uint64_t> gpu_time,
                                 Nanoseconds now) {
  if (Find(calls_, Kind::kCall, of_call) == nullptr) return 0;
  Kernel kernel;
  kernel.call = of_call;
  kernel.by_gpu = gpu_time.has_value();
  kernel.start = kernel.end = gpu_time.value_or(static_cast<uint64_t>(now));
  const EventHandle handle = Start(kernels_, Kind::kKernel, kernel, now);
  Call* const call = Find(calls_, Kind::kCall, of_call);
  if (handle == 0 || call == nullptr) return handle;
  ++call->open;
  ++call->children;
  call->changed = now;
  return handle;
}

EventHandle Tracker::StartOther(Nanoseconds now) {
  return Start(others_, Kind::kOther, Other{false, now}, now);
}

void Tracker::Account(Transfer& transfer, Nanoseconds now) {
  // The step that is furthest in the pipeline is the oldest.
  for (int stage = kStagesOfTransfer - 1; stage >= 0; --stage) {
    if (transfer.steps[static_cast<size_t>(stage)] == 0) continue;
    const size_t first = transfer.direction == Direction::kSend ? 0 : kStagesOfTransfer;
    waits_[transfer.cell][first + static_cast<size_t>(stage)] +=
        std::max<Nanoseconds>(now - transfer.since, 0);
    break;
  }
  transfer.since = now;
}

void Tracker::NoteStage(Transfer& transfer, int from, int to, Nanoseconds now) {
  Call* const call = Find(calls_, Kind::kCall, transfer.call);
  if (transfer.direction == Direction::kSend) {
    if (call != nullptr && to >= 1 && from < 1) call->ready = Earlier(call->ready, now, kNever);
    return;
  }
  if (to == 0) {
    if (transfer.steps[0] == 1) transfer.quiet = now;
    if (call != nullptr) call->waited = Earlier(call->waited, now, kNever);
    return;
  }
  if (from >= 1) return;
  transfer.quiet = now;
  if (call != nullptr) call->came = Earlier(call->came, now, kNever);
  Comm* const comm = Find(comms_, Kind::kCommunicator, transfer.comm);
  if (comm == nullptr || transfer.peer < 0 || transfer.peer >= kMostPeers) return;
  const auto peer = static_cast<size_t>(transfer.peer);
  if (comm->came.size() <= peer) comm->came.resize(peer + 1, kNever);
  comm->came[peer] = now;
}

void Tracker::SetStage(EventHandle handle, Stage stage, Nanoseconds now) {
  Step* const step = Find(steps_, Kind::kStep, handle);
  if (step == nullptr) return;
  Transfer* const transfer = Find(transfers_, Kind::kTransfer, step->transfer);
  const int number = static_cast<int>(stage);
  const bool is_send = number < kStagesOfTransfer;
  const int to = number % kStagesOfTransfer;
  if (transfer == nullptr || is_send != (transfer->direction == Direction::kSend) ||
      to <= step->stage) {
    return;
  }
  Account(*transfer, now);
  transfer->changed = now;
  const int from = std::exchange(step->stage, to);
  if (from >= 0) --transfer->steps[static_cast<size_t>(from)];
  ++transfer->steps[static_cast<size_t>(to)];
  NoteStage(*transfer, from, to, now);
}

void Tracker::SetKernelEnd(EventHandle handle, uint64_t gpu_time) {
  Kernel* const kernel = Find(kernels_, Kind::kKernel, handle);
  if (kernel != nullptr && kernel->by_gpu) kernel->end = std::max(kernel->start, gpu_time);
}

void Tracker::EndStep(EventHandle handle, Nanoseconds now) {
  const Step* const step = Find(steps_, Kind::kStep, handle);
  if (step == nullptr) return;
  Transfer* const transfer = Find(transfers_, Kind::kTransfer, step->transfer);
  if (transfer != nullptr) {
    if (transfer->At(step->number) == handle) transfer->At(step->number) = 0;
    if (step->stage >= 0) {
      Account(*transfer, now);
      --transfer->steps[static_cast<size_t>(step->stage)];
      if (step->stage == 0) NoteStage(*transfer, 0, 1, now);
    }
  }
  steps_.Release(KeyOf(handle));
}

void Tracker::EndChild(EventHandle of_call, Nanoseconds now) {
  Call* const call = Find(calls_, Kind::kCall, of_call);
  if (call == nullptr) return;
  --call->open;
  call->changed = now;
  SettleFirst(call->comm, now);
}

bool Tracker::Stop(EventHandle handle, Nanoseconds now) {
  const auto kind = static_cast<Kind>(handle >> kKindShift);
  const uint64_t key = KeyOf(handle);
  if (Call* const call = Find(calls_, Kind::kCall, handle); call != nullptr) {
    if (std::exchange(call->has_stopped, true)) return false;
    call->changed = now;
    // Calls end with their communicator.
    Find(comms_, Kind::kCommunicator, call->comm)->stopped.push_back(handle);
    SettleFirst(call->comm, now);
  } else if (Transfer* const transfer = Find(transfers_, Kind::kTransfer, handle);
             transfer != nullptr) {
    for (const EventHandle step : transfer->open) EndStep(step, now);
    Account(*transfer, now);
    const EventHandle of_call = transfer->call;
    transfers_.Release(key);
    if (Call* const parent = Find(calls_, Kind::kCall, of_call)) parent->transfer_end = now;
    EndChild(of_call, now);
  } else if (Find(steps_, Kind::kStep, handle) != nullptr) {
    EndStep(handle, now);
  } else if (const Kernel* const kernel = Find(kernels_, Kind::kKernel, handle);
             kernel != nullptr) {
    const uint64_t end = kernel->by_gpu ? kernel->end : static_cast<uint64_t>(now);
    const EventHandle of_call = kernel->call;
    if (Call* const parent = Find(calls_, Kind::kCall, of_call)) {
      parent->kernel_start = std::min(parent->kernel_start.value_or(kernel->start), kernel->start);
      parent->kernel_end = std::max(parent->kernel_end.value_or(end), end);
    }
    kernels_.Release(key);
    EndChild(of_call, now);
  } else if (Other* const other = Find(others_, Kind::kOther, handle); other != nullptr) {
    if (std::exchange(other->has_stopped, true)) return false;
    other->changed = now;
  } else {
    return false;
  }
  ++CountsOf(kind).stopped;
  return true;
}

void** Tracker::AttachedTo(EventHandle handle) {
  const auto of = [handle](auto& pool, Kind kind) -> void** {
    auto* const object = Find(pool, kind, handle);
    return object == nullptr ? nullptr : &object->attached;
  };
  switch (static_cast<Kind>(handle >> kKindShift)) {
    case Kind::kCommunicator:
      return of(comms_, Kind::kCommunicator);
    case Kind::kCall:
      return of(calls_, Kind::kCall);
    case Kind::kTransfer:
      return of(transfers_, Kind::kTransfer);
    case Kind::kStep:
      return of(steps_, Kind::kStep);
    case Kind::kKernel:
      return of(kernels_, Kind::kKernel);
    case Kind::kOther:
      return of(others_, Kind::kOther);
    default:
      return nullptr;
  }
}

void* Tracker::Attached(EventHandle handle) {
  void** const attached = AttachedTo(handle);
  return attached == nullptr ? nullptr : *attached;
}

void Tracker::Attach(EventHandle handle, void* pointer) {
  if (void** const attached = AttachedTo(handle)) *attached = pointer;
}

bool Tracker::IsSettled(const Call& call, Nanoseconds now) {
  if (!call.has_stopped) return false;
  const Nanoseconds age = now - call.changed;
  if (call.open > 0) return age >= kAbandoned;
  return age >= (call.children > 0 ? kGap : kNoTransfers);
}

std::optional<Nanoseconds> Tracker::DurationOf(const Call& call) {
  if (call.kernel_start.has_value()) {
    return static_cast<Nanoseconds>(*call.kernel_end - *call.kernel_start);
  }
  if (call.transfer_end == kNever) return std::nullopt;
  const bool begins_with_data = call.sends && (call.name.sends_first || call.waited == kNever ||
                                               (call.ready != kNever && call.ready < call.came));
  const Nanoseconds begin = begins_with_data ? call.ready : call.waited;
  if (begin == kNever) return std::nullopt;
  return std::max<Nanoseconds>(call.transfer_end - begin, 0);
}

void Tracker::CountCall(const Call& call) {
  const std::optional<Nanoseconds> duration = DurationOf(call);
  if (!duration.has_value()) {
    ++untimed_[call.name.call];
    return;
  }
  const Comm* const comm = Find(comms_, Kind::kCommunicator, call.comm);
  const uint64_t bytes = LargerBuffer(call);
  metrics::CollectiveCounts& counts = counts_[{comm == nullptr ? 0 : comm->label, call.name.call,
                                               call.name.algorithm}][metrics::SizeClass(bytes)];
  ++counts.operations;
  counts.bytes += bytes;
  counts.seconds += static_cast<double>(*duration) * 1e-9;
  ++counts.buckets[metrics::DurationBucket(*duration)];
}

void Tracker::SettleFirst(EventHandle communicator, Nanoseconds now) {
  Comm* const comm = Find(comms_, Kind::kCommunicator, communicator);
  if (comm == nullptr) return;
  while (!comm->stopped.empty()) {
    const EventHandle first = comm->stopped.front();
    const Call* const call = Find(calls_, Kind::kCall, first);
    if (call != nullptr && !IsSettled(*call, now)) return;
    if (call != nullptr) ForgetCall(first);
    comm->stopped.pop_front();
  }
}

void Tracker::ForgetCall(EventHandle handle) {
  const Call* const call = Find(calls_, Kind::kCall, handle);
  if (call->open == 0) CountCall(*call);
  calls_.Release(KeyOf(handle));
}

void Tracker::Sweep(Nanoseconds now) {
  comms_.ForEach([&](uint64_t /*key*/, Comm& comm) {
    std::erase_if(comm.stopped, [&](EventHandle handle) {
      const Call* const call = Find(calls_, Kind::kCall, handle);
      if (call == nullptr) return true;
      if (!IsSettled(*call, now)) return false;
      ForgetCall(handle);
      return true;
    });
  });
  others_.ForEach([&](uint64_t key, const Other& other) {
    if (other.has_stopped && now - other.changed >= kNoTransfers) others_.Release(key);
  });
}

// Forgets what NCCL has probably forgotten, too. It has to search, so not too often.
void Tracker::MakeRoom(Nanoseconds now) {
  if (made_room_ != kNever && now - made_room_ < kBetweenSearches) return;
  made_room_ = now;
  Sweep(now);
  calls_.ForEach([&](uint64_t key, const Call& call) {
    if (!call.has_stopped || call.open > 0) return;
    CountCall(call);
    calls_.Release(key);
  });
  transfers_.ForEach([&](uint64_t key, const Transfer& transfer) {
    // One that waits for a silent peer changes nothing, either, but ends with its communicator.
    const bool waits = transfer.call != 0 && transfer.steps != std::array<int, 3>{};
    if (now - transfer.changed < kAbandoned || waits) return;
    const EventHandle of_call = transfer.call;
    transfers_.Release(key);
    if (Call* const call = Find(calls_, Kind::kCall, of_call)) --call->open;
  });
  ReleaseOrphans();
  others_.ForEach([&](uint64_t key, const Other& other) {
    if (other.has_stopped || now - other.changed >= kAbandoned) others_.Release(key);
  });
}

std::optional<Nanoseconds> Tracker::QuietSince(const Transfer& transfer) {
  if (transfer.direction != Direction::kReceive || transfer.steps[0] == 0) return std::nullopt;
  const Comm* const comm = Find(comms_, Kind::kCommunicator, transfer.comm);
  if (comm == nullptr) return std::nullopt;
  Nanoseconds since = transfer.quiet;
  const auto peer = static_cast<size_t>(transfer.peer);
  if (transfer.peer >= 0 && peer < comm->came.size()) since = std::max(since, comm->came[peer]);
  // NCCL posts receives before this rank's GPU is there.
  const Call* const call = Find(calls_, Kind::kCall, transfer.call);
  if (call != nullptr && call->name.sends_first && call->sends) {
    if (call->ready == kNever) return std::nullopt;
    since = std::max(since, call->ready);
  }
  return since;
}

Tracker::Changes Tracker::CheckSilence(Nanoseconds now) {
  std::map<PeerKey, Nanoseconds> quiet;  // since when
  transfers_.ForEach([&](uint64_t /*key*/, Transfer& transfer) {
    Account(transfer, now);
    const std::optional<Nanoseconds> since = QuietSince(transfer);
    if (!since.has_value() || now - *since < kSilence) return;
    Nanoseconds& first = quiet.try_emplace({transfer.comm, transfer.peer}, *since).first->second;
    first = std::min(first, *since);
  });
  Changes changes;
  const auto name = [this](const PeerKey& key) {
    const Comm* const comm = Find(comms_, Kind::kCommunicator, key.first);
    return comm == nullptr ? std::string() : comm->facts.id;
  };
  for (const auto& [key, since] : quiet) {
    if (!silent_.contains(key)) changes.silent.push_back({name(key), key.second, now - since});
  }
  for (const auto& [key, since] : silent_) {
    if (!quiet.contains(key)) changes.resumed.push_back({name(key), key.second, now - since});
  }
  silent_ = std::move(quiet);
  return changes;
}

void Tracker::Report(Nanoseconds now, metrics::Snapshot& snapshot) {
  Sweep(now);
  for (const auto& [key, classes] : counts_) {
    const auto& [label, call, algorithm] = key;
    snapshot.collectives.push_back(
        {kCallNames[call], kAlgorithmNames[algorithm], labels_[label], classes});
  }
  metrics::ProfilerSnapshot& profiler = snapshot.profiler;
  for (size_t call = 0; call < kCallNames.size(); ++call) {
    if (untimed_[call] > 0) profiler.untimed.push_back({kCallNames[call], untimed_[call]});
  }
  for (size_t cell = 0; cell < waits_.size(); ++cell) {
    for (size_t stage = 0; stage < kStages; ++stage) {
      if (waits_[cell][stage] == 0) continue;
      profiler.waits.push_back({kCallNames[cell / metrics::kSizeClasses.size()],
                                cell % metrics::kSizeClasses.size(),
                                stage < kStagesOfTransfer ? "send" : "receive", kCauses[stage],
                                static_cast<double>(waits_[cell][stage]) * 1e-9});
    }
  }
  for (const auto& [kind, name] : {std::pair(Kind::kCall, "call"),
                                   {Kind::kTransfer, "proxy_op"},
                                   {Kind::kStep, "proxy_step"},
                                   {Kind::kKernel, "kernel"}}) {
    profiler.events.push_back({name, CountsOf(kind).started, CountsOf(kind).stopped});
  }
  profiler.dropped = dropped_;
  profiler.silent_peers = silent_.size();
  for (const auto& [key, since] : silent_) {
    if (profiler.silent.size() == kMostSilent) break;
    const Comm* const comm = Find(comms_, Kind::kCommunicator, key.first);
    if (comm == nullptr) continue;
    profiler.silent.push_back(
        {comm->facts.name, key.second, static_cast<double>(now - since) * 1e-9});
  }
}

}  // namespace railhead::nccl
