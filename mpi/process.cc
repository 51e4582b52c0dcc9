// SPDX-License-Identifier: Apache-2.0
#include "mpi/process.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "mpi/launcher_variables.h"
#include "mpi/predefined.h"
#include "railhead/railhead.h"

namespace railhead::mpi {
namespace {

// Returns true if the environment has variables of a launcher or of Railhead's operator.
bool IsStartedByALauncher() {
  return std::any_of(kLauncherVariables.begin(), kLauncherVariables.end(),
                     [](const char* name) { return std::getenv(name) != nullptr; });
}

Outcome GroupOfOne(std::shared_ptr<Group>* group) {
  rhUniqueId id;
  rhComm_t comm = nullptr;
  rhResult_t result = rhGetUniqueId(&id);
  if (result == rhSuccess) result = rhCommInitRank(&comm, 1, id, 0);
  if (result != rhSuccess) return OutcomeOf(result, nullptr);
  return Group::Of(comm, group);
}

}  // namespace

Process& Process::Instance() {
  // It is never destroyed: a program may call MPI_Finalize when it exits.
  static Process* const process = new Process;
  return *process;
}

Outcome Process::Initialize() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (state_ == State::kRunning) return {};
  if (state_ == State::kAfter) return {kErrorOther, "MPI_Init after MPI_Finalize: MPI starts once"};
  Outcome outcome;
  if (IsStartedByALauncher()) {
    rhComm_t comm = nullptr;
    outcome = OutcomeOf(rhCommInitFromEnv(&comm), nullptr);
    if (outcome.ok()) outcome = Group::Of(comm, &world_);
  } else {
    outcome = GroupOfOne(&world_);
  }
  if (outcome.ok()) {
    state_ = State::kRunning;
    running_world_.store(world_.get(), std::memory_order_release);
  }
  return outcome;
}

Outcome Process::Finalize() {
  std::shared_ptr<Group> self;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (state_ != State::kRunning) {
      return {kErrorOther, "MPI_Finalize without MPI_Init, or for a second time"};
    }
    self = self_;
  }
  // As MPI_Comm_free of MPI_COMM_SELF: the program's functions may use MPI.
  if (self != nullptr) {
    Outcome outcome = self->attributes().DeleteAll(CommSelf());
    if (!outcome.ok()) return outcome;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  state_ = State::kAfter;
  running_world_.store(nullptr, std::memory_order_release);
  others_.clear();
  self_ = nullptr;
  world_ = nullptr;
  return {};
}

Process::State Process::state() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return state_;
}

std::shared_ptr<Group> Process::SelfGroup() {
  if (self_ == nullptr && GroupOfOne(&self_).ok()) {
    self_->errors_return = world_->errors_return;
    // The group has one rank: this waits for no other, and does not fail.
    self_->FindMembers(world_->rank());
  }
  return self_;
}

std::shared_ptr<Group> Process::Find(Communicator* handle) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (state_ != State::kRunning) return nullptr;
  if (handle == CommWorld()) return world_;
  if (handle == CommSelf()) return SelfGroup();
  const auto found = others_.find(handle);
  return found == others_.end() ? nullptr : found->second;
}

Outcome Process::Adopt(const Group& parent, rhComm_t comm, Communicator** handle) {
  *handle = CommNull();
  if (comm == nullptr) return {};
  std::shared_ptr<Group> group;
  Outcome outcome = Group::Of(comm, &group);
  if (outcome.ok()) {
    outcome = group->FindMembers(parent.members()[static_cast<size_t>(parent.rank())]);
  }
  if (!outcome.ok()) return outcome;
  group->errors_return = parent.errors_return;
  auto made = std::make_unique<Communicator>();
  const std::lock_guard<std::mutex> lock(mutex_);
  *handle = made.release();
  others_[*handle] = std::move(group);
  return {};
}

Outcome Process::Free(Communicator* handle) {
  std::shared_ptr<Group> group;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = others_.find(handle);
    if (found == others_.end()) {
      return {kErrorComm, "the communicator is none that the program has made"};
    }
    group = found->second;
  }
  // The program's functions get the handle, and may use it.
  Outcome outcome = group->attributes().DeleteAll(handle);
  if (!outcome.ok()) return outcome;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    others_.erase(handle);
  }
  delete handle;
  return {};
}

}  // namespace railhead::mpi
