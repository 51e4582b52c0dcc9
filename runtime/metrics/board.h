// SPDX-License-Identifier: Apache-2.0
//
// The one page of a process, however many communicators it has: those of one rank are summed, and
// what a communicator has counted stays when it is gone. Counters must not go back.
#ifndef RAILHEAD_RUNTIME_METRICS_BOARD_H_
#define RAILHEAD_RUNTIME_METRICS_BOARD_H_

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/metrics/page.h"
#include "runtime/metrics/snapshot.h"

namespace railhead::metrics {

// Thread-safe.
class Board : public std::enable_shared_from_this<Board> {
 public:
  using Read = std::function<Snapshot()>;

  // This process's board at `port` (0: any free one, and a board of its own): opened by who asks
  // first, closed when all its notices are gone. Unavailable when another process has the port.
  static absl::StatusOr<std::shared_ptr<Board>> At(int port);

  // Shows what `read` gives, called from the page's threads, for as long as the notice lives.
  class Notice {
   public:
    ~Notice();
    Notice(const Notice&) = delete;
    Notice& operator=(const Notice&) = delete;
    int port() const { return board_->server_->port(); }

   private:
    friend class Board;
    Notice(std::shared_ptr<Board> board, std::list<Read>::iterator place)
        : board_(std::move(board)), place_(place) {}
    const std::shared_ptr<Board> board_;
    const std::list<Read>::iterator place_;
  };
  std::unique_ptr<Notice> Pin(Read read);

 private:
  Board() = default;
  std::vector<Snapshot> Sums() const;

  mutable std::mutex mutex_;
  std::list<Read> reads_;
  std::vector<Snapshot> gone_;  // of notices that are no more, by job and rank
  std::unique_ptr<Server> server_;
};

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_BOARD_H_
