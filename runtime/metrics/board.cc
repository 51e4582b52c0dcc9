// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/board.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/metrics/page.h"

namespace railhead::metrics {
namespace {

void AddTo(std::vector<Snapshot>& sums, Snapshot snapshot) {
  const auto same = std::find_if(sums.begin(), sums.end(), [&](const Snapshot& sum) {
    return sum.job == snapshot.job && sum.rank == snapshot.rank;
  });
  if (same == sums.end()) {
    sums.push_back(std::move(snapshot));
  } else {
    Add(snapshot, *same);
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<Board>> Board::At(int port, const std::string& pod) {
  static std::mutex mutex;
  static std::map<std::pair<int, std::string>, std::weak_ptr<Board>> boards;
  const std::lock_guard<std::mutex> lock(mutex);
  if (port != 0) {
    if (std::shared_ptr<Board> board = boards[{port, pod}].lock()) return board;
  }
  std::shared_ptr<Board> board(new Board());
  absl::StatusOr<std::unique_ptr<PodPage>> page =
      PodPage::Open(port, pod, [raw = board.get()] { return ToFamilies(raw->Sums()); });
  if (!page.ok()) return page.status();
  board->page_ = *std::move(page);
  if (port != 0) boards[{port, pod}] = board;
  return board;
}

std::unique_ptr<Board::Notice> Board::Pin(Read read) {
  const std::lock_guard<std::mutex> lock(mutex_);
  reads_.push_back(std::move(read));
  return std::unique_ptr<Notice>(new Notice(shared_from_this(), std::prev(reads_.end())));
}

Board::Notice::~Notice() {
  const std::lock_guard<std::mutex> lock(board_->mutex_);
  Snapshot last = (*place_)();
  last.degraded_reason.clear();
  last.start.reset();
  // What it has counted stays; how its rails are says nothing any more.
  last.gpu_direct.clear();
  for (rails::RailTotals& rail : last.rails) {
    rail.up = true;
    rail.weight = 1;
    rail.peers = rail.lost_peers = 0;
  }
  AddTo(board_->gone_, std::move(last));
  board_->reads_.erase(place_);
}

std::vector<Snapshot> Board::Sums() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Snapshot> sums = gone_;
  for (const Read& read : reads_) AddTo(sums, read());
  return sums;
}

}  // namespace railhead::metrics
