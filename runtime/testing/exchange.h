// SPDX-License-Identifier: Apache-2.0
//
// Two peers that send each other messages while a test harms what is between them.
#ifndef RAILHEAD_RUNTIME_TESTING_EXCHANGE_H_
#define RAILHEAD_RUNTIME_TESTING_EXCHANGE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
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
        const size_t count = 1 + random() % (random() % 2 == 0 ? 50 : kMostValues);
        const size_t from = random() % kMostValues;
        const size_t term = random() % kTerms;
        const Known& known = Known::Values();
        const auto part = [count](const std::vector<float>& all, size_t begin) {
          const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
          return std::vector<float>(first, first + static_cast<std::ptrdiff_t>(count));
        };
        sides_[side].sent.push_back(part(known.values, from));
        sides_[1 - side].own.push_back(part(known.terms[term], from));
        sides_[1 - side].got.emplace_back(count);
        sides_[1 - side].expected.push_back(part(known.sums[term], from));
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
  static constexpr size_t kMostValues = 30000;
  static constexpr size_t kTerms = 8;

  // Made once: most of a test's time would be spent on values, above all where every access to
  // memory is watched.
  struct Known {
    std::vector<float> values;
    std::array<std::vector<float>, kTerms> terms;
    std::array<std::vector<float>, kTerms> sums;
    std::vector<float> nonsense = std::vector<float>(kMostValues, -1e9F);

    static const Known& Values() {
      static const Known known = [] {
        Known made;
        std::mt19937 random(1);
        const auto next = [&random] { return static_cast<float>(random() % 1000); };
        for (size_t i = 0; i < 2 * kMostValues; ++i) {
          made.values.push_back(next());
          for (size_t term = 0; term < kTerms; ++term) {
            made.terms[term].push_back(next());
            made.sums[term].push_back(made.values[i] + made.terms[term][i]);
          }
        }
        return made;
      }();
      return known;
    }
  };

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
        std::vector<float>& values = sent[sends_done++];
        std::copy_n(Known::Values().nonsense.begin(), values.size(), values.begin());
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
      for (size_t m = 0; m < got.size(); ++m) {
        wrong += std::memcmp(got[m].data(), expected[m].data(), 4 * got[m].size()) != 0 ? 1 : 0;
      }
      return wrong;
    }
  };

  std::array<Side, 2> sides_;
};

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_EXCHANGE_H_
