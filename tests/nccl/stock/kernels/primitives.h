// SPDX-License-Identifier: Apache-2.0
//
// The primitives of which collectives are made: receive chunks from peers, reduce them with own
// elements, send and store the result; in one of NCCL's three protocols.
//
//   Primitives ring(kernel, function, channel.peers, {previous}, {next}, ...);
//   ring.Run({.send = true, .source = input, .elements = n});
#ifndef RAILHEAD_TESTS_NCCL_STOCK_KERNELS_PRIMITIVES_H_
#define RAILHEAD_TESTS_NCCL_STOCK_KERNELS_PRIMITIVES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/nccl/stock/kernels/functions.h"
#include "tests/nccl/stock/kernels/layout.h"

namespace railhead::stock {

// One end of a connection. The step goes back to the connection when the work ends.
struct End {
  Connection* connection;
  uint64_t step;
};

struct Step {
  bool receive = false, send = false;
  const char* source = nullptr;  // own elements; null: none
  char* target = nullptr;        // where the result is stored; null: nowhere
  size_t elements = 0;
  bool last = false;  // the result is complete
};

// How chunks are divided over slots.
struct Slicing {
  size_t slices = 1, steps_per_slice = 1;
  int slot_bytes = 0;     // 0: as the communicator has them
  size_t connection = 0;  // index of the connection of a peer
};

class Primitives {
 public:
  // `from` and `to` are ranks; -1 stands for none.
  Primitives(const Version& version, const Communicator& communicator, const Function& function,
             uint64_t argument, Peer** peers, const std::vector<int>& from,
             const std::vector<int>& to, const Slicing& slicing);
  ~Primitives();
  Primitives(const Primitives&) = delete;
  Primitives& operator=(const Primitives&) = delete;

  // Returns early if the communicator is aborted.
  void Run(const Step& step);

 private:
  void Simple(const Step& step);  // simple.cc
  template <class Line>
  void Lines(const Step& step);  // lines.cc

  // sum = source op each of `received`. The result is not finished unless it is the last.
  void Combine(char* sum, const char* source, const std::vector<const char*>& received,
               size_t elements, bool last) const;
  // Waits for `steps` free slots, or filled ones.
  bool WaitForRoom(const End& end, uint64_t steps) const;
  bool WaitForData(const End& end, uint64_t steps) const;
  size_t element_bytes() const { return BytesOf(function_.type); }

  const Version& version_;
  const Communicator& communicator_;
  const Function function_;
  const uint64_t argument_;
  const Slicing slicing_;
  std::vector<End> receive_, send_;
};

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_KERNELS_PRIMITIVES_H_
