// SPDX-License-Identifier: Apache-2.0
//
// Plays one rank's part of a program (tests/rails/program): makes its calls and compares every
// element of every result with what must come of it. A rank is a process or a thread.
//
// It writes what happened, a line each:
//
//   ready                                 the first communicator exists
//   error comm=C step=S seconds=T text    a call failed, T seconds after its begin; TEXT in one
//   line wrong step=S text                     a result, a guard or a return value is wrong slow
//   seconds=T command                a command took some seconds, which may be right digest step=S
//   value                   of a result that may be rounded differently, but alike on all ranks
//   left text                             threads or descriptors that are left at the end
//   end checked=N                         done; N bytes of results were compared
#ifndef RAILHEAD_TESTS_RAILS_PLAYER_PLAYER_H_
#define RAILHEAD_TESTS_RAILS_PLAYER_PLAYER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "railhead/railhead.h"
#include "tests/rails/player/command.h"
#include "tests/rails/player/content.h"
#include "tests/rails/player/memory.h"

namespace railhead::player {

class Player {
 public:
  // `folder`: for ids that ranks pass to each other. `progress` is set to the number of the line
  // that is being played. `join` replaces rhCommInitFromEnv if it is set.
  Player(std::string folder, std::FILE* out, std::atomic<int32_t>* progress,
         std::function<rhResult_t(rhComm_t*)> join)
      : folder_(std::move(folder)), out_(out), progress_(progress), join_(std::move(join)) {}
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  void Play(const std::vector<std::string>& lines);

 private:
  struct Comm {
    rhComm_t handle = nullptr;
    int rank = 0;
    int ranks = 0;
    bool failed = false;
  };
  struct Window {
    bool shared = true;  // of rhMemAlloc
    void* memory = nullptr;
    size_t bytes = 0;
    rhWindow_t window = nullptr;
    void* registration = nullptr;
    int comm = 0;
    std::unique_ptr<Arena> arena;
    bool fenced = false;  // filled with a pattern after its communicator has failed
  };
  // A call whose result is not there yet.
  struct Pending {
    int comm = 0;
    long step = 0;
    std::function<void()> check;
  };
  struct Transfer {
    rhRequest_t request = nullptr;
    int comm = 0;
    long step = 0;
    bool sends = false;
    size_t element = 1;
    std::unique_ptr<Buffer> buffer;
    rhRequestInfo_t info{};
    bool done = false;
  };
  // A message that will come: the n-th of its source and tag in a communicator.
  struct Message {
    long step;
    size_t bytes;
  };
  struct Call;

  void Do(const Command& command);
  void Init(const Command& command);
  void Make(const Command& command);
  void Collective(const Command& command);
  void PointToPoint(const Command& command);
  void Begin(const Command& command);
  void Finish(const Command& command);
  void OpenWindow(const Command& command);
  void CloseWindow(const Command& command);
  void Leave(const Command& command);
  void Fail(const Command& command);
  void CompareMessages();
  void FreeWindows();
  void CheckFence(int number, const Window& window);

  bool Record(rhResult_t result, int comm, long step, double begin);
  void WriteError(rhResult_t result, int comm, long step, double begin, const char* text);
  // The same for a call of several communicators, which does not say which of them have failed.
  void RecordFailed(const std::vector<Pending>& pending, rhResult_t result, double begin);
  void Wrong(long step, const std::string& text);
  void AddComm(int number, rhComm_t handle, const Command& command);
  rhResult_t Await(rhComm_t handle, rhResult_t result);
  rhStream_t StreamOf(const Command& command);
  void Settle(std::vector<Pending>& pending, bool good);
  void After(const Command& command, int comm, long step, rhResult_t result, double begin,
             std::function<void()> check);
  std::shared_ptr<Buffer> NewBuffer(const Command& command, size_t bytes, size_t shift);
  rhUniqueId ReadId(const std::string& name) const;
  void WriteId(const std::string& name, const rhUniqueId& id) const;
  rhRedOp_t OperatorOf(const Command& command, const Comm& comm, rhDataType_t type);
  void Compare(long step, const Buffer& buffer, size_t at, const Content& content, size_t bytes);
  void CompareReduced(long step, const Buffer& buffer, size_t at, const Reduced& content,
                      size_t first, size_t count, size_t element);
  void Digest(long step, const std::byte* data, size_t bytes);

  const std::string folder_;
  std::FILE* const out_;
  std::atomic<int32_t>* const progress_;
  const std::function<rhResult_t(rhComm_t*)> join_;
  std::map<int, Comm> comms_;
  std::map<int, Window> windows_;
  std::map<long, Transfer> transfers_;
  std::vector<long> receives_;  // in the order of posting
  std::map<std::string, std::vector<Message>> expected_;
  std::map<int, rhStream_t> streams_;
  std::map<int, std::vector<Pending>> queued_;  // by stream
  std::vector<Pending> grouped_;
  bool in_group_ = false;
  std::map<std::string, rhRedOp_t> operators_;
  uint64_t checked_ = 0;
};

}  // namespace railhead::player

#endif  // RAILHEAD_TESTS_RAILS_PLAYER_PLAYER_H_
