// SPDX-License-Identifier: Apache-2.0
//
// Two peers that send each other messages while a test harms what is between them.
#ifndef RAILHEAD_RUNTIME_TESTING_EXCHANGE_H_
#define RAILHEAD_RUNTIME_TESTING_EXCHANGE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "runtime/collectives/messenger.h"
#include "runtime/rails/peer.h"
#include "runtime/reduce/reduce.h"

namespace railhead::testing {

// Messages of random sizes and values both ways, sent and received in their order, at most so many
// of them posted and not done, as the collectives do. Received values are added to known ones, so
// that what arrives twice shows. A sender's memory is overwritten as soon as it may be.
class Exchange {
 public:
  Exchange(std::mt19937& random, rails::Peer& a, rails::Peer& b, size_t messages) {
    sides_[0].peer = &a;
    sides_[1].peer = &b;
    for (const size_t side : {0, 1}) {
      for (size_t m = 0; m < messages; ++m) {
        // Up to 4096 values are copied.
        const size_t count = 1 + random() % (random() % 2 == 0 ? 50 : 30000);
        std::vector<float> values(count);
        std::vector<float> own(count);
        std::vector<float> sum(count);
        for (size_t i = 0; i < count; ++i) {
          values[i] = static_cast<float>(random() % 1000);
          own[i] = static_cast<float>(random() % 1000);
          sum[i] = values[i] + own[i];
        }
        sides_[side].sent.push_back(std::move(values));
        sides_[1 - side].own.push_back(std::move(own));
        sides_[1 - side].got.emplace_back(count);
        sides_[1 - side].expected.push_back(std::move(sum));
      }
    }
  }

  size_t messages() const { return sides_[0].sent.size(); }
  // What a side sends; it stays there.
  absl::Span<const std::byte> Sent(size_t side, size_t message) const {
    const std::vector<float>& values = sides_[side].sent[message];
    return {reinterpret_cast<const std::byte*>(values.data()), 4 * values.size()};
  }

  // Takes note of what is done, and posts what may be.
  void Step(size_t side, size_t ahead, bool may_post_receives) {
    sides_[side].Step(ahead, may_post_receives);
  }
  bool Done() const { return sides_[0].Done() && sides_[1].Done(); }
  // How many messages arrived otherwise than they were sent.
  size_t Wrong() const { return sides_[0].Wrong() + sides_[1].Wrong(); }

 private:
  struct Side {
    rails::Peer* peer = nullptr;
    std::vector<std::vector<float>> sent;
    std::vector<std::vector<float>> got;
    std::vector<std::vector<float>> own;
    std::vector<std::vector<float>> expected;
    reduce::Reduction sum;
    size_t sends_posted = 0;
    size_t sends_done = 0;
    size_t receives_posted = 0;
    size_t receives_done = 0;

    void Step(size_t ahead, bool may_post_receives) {
      while (sends_done < sends_posted && peer->SendDone(sends_done)) {
        std::fill(sent[sends_done].begin(), sent[sends_done].end(), -1e9F);
        ++sends_done;
      }
      while (receives_done < receives_posted && peer->ReceiveDone(receives_done)) ++receives_done;
      while (sends_posted < sent.size() && sends_posted - sends_done < ahead) {
        const std::vector<float>& values = sent[sends_posted++];
        peer->PostSend({reinterpret_cast<const std::byte*>(values.data()), 4 * values.size()});
      }
      while (may_post_receives && receives_posted < got.size() &&
             receives_posted - receives_done < ahead) {
        collectives::ReceiveBuffer buffer;
        buffer.data = reinterpret_cast<std::byte*>(got[receives_posted].data());
        buffer.size = 4 * got[receives_posted].size();
        buffer.operand = reinterpret_cast<const std::byte*>(own[receives_posted].data());
        buffer.reduction = &sum;
        peer->PostReceive(buffer);
        ++receives_posted;
      }
    }
    bool Done() const {
      return sends_done == sent.size() && receives_done == got.size() && peer->Acknowledged();
    }
    size_t Wrong() const {
      size_t wrong = 0;
      for (size_t m = 0; m < got.size(); ++m) wrong += got[m] != expected[m] ? 1 : 0;
      return wrong;
    }
  };

  std::array<Side, 2> sides_;
};

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_EXCHANGE_H_
