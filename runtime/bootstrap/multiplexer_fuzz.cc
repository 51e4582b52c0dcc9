// SPDX-License-Identifier: Apache-2.0
//
// Whatever processes at the other ends of trees' connections send: the multiplexer goes on, only
// connections that violate the protocol end, and what it says fits what it has.
//
// The input: for each event a byte that says what happens and to which connection; for a frame also
// a byte for its kind, one for the size of the payload, and the payload; and where it comes many
// times, or many are sent, a byte for their number.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/multiplexer.h"
#include "runtime/testing/fuzz_input.h"

namespace railhead::bootstrap {
namespace {

using testing::Input;
using testing::Require;

constexpr int kConnections = 6;
// A byte stands for up to some thousands of frames: more than a side that moves may send.
constexpr int kMany = 16;
static_assert(size_t{kMany} * 255 > 3 * Multiplexer::kCredit);

void RunMultiplexer(absl::string_view bytes) {
  Input input(bytes);
  int names = 0;
  // Names that an input can contain.
  Multiplexer multiplexer(std::string(Multiplexer::kNameSize, 'm'), [&names] {
    return std::string(Multiplexer::kNameSize, static_cast<char>('a' + names++ % 8));
  });
  std::map<int, Multiplexer::Channel> channels;  // by the connection that each was opened with
  std::map<int, bool> open;                      // connections
  while (!input.empty()) {
    const uint8_t what = input.Byte();
    const int connection = what % kConnections;
    switch (what / kConnections % 8) {
      case 0:
        if (!open[connection] && !channels.contains(connection)) {
          channels[connection] = multiplexer.Open(connection);
          open[connection] = true;
        }
        break;
      case 1:
        if (channels.contains(connection)) multiplexer.Close(channels.extract(connection).mapped());
        break;
      case 2:
        multiplexer.Lost(connection);
        open[connection] = false;
        break;
      case 3:
        if (channels.contains(connection)) {
          multiplexer.Send(channels[connection], FrameKind::kReport, "text");
        }
        break;
      case 4:
        for (int i = kMany * input.Byte(); i > 0 && channels.contains(connection); --i) {
          multiplexer.Send(channels[connection], FrameKind::kReport, "");
        }
        break;
      case 5: {
        Frame frame;
        frame.kind = static_cast<FrameKind>(1 + input.Byte() % static_cast<int>(kLastFrameKind));
        frame.payload = input.Text(input.Byte());
        for (int i = kMany * input.Byte(); i > 0; --i) multiplexer.Receive(connection, frame);
        break;
      }
      default: {
        Frame frame;
        frame.kind = static_cast<FrameKind>(1 + input.Byte() % static_cast<int>(kLastFrameKind));
        frame.payload = input.Text(input.Byte());
        multiplexer.Receive(connection, std::move(frame));
      }
    }
    for (const Multiplexer::Outgoing& message : multiplexer.TakeOutgoing()) {
      Require(message.to >= 0 && message.to < kConnections);
    }
    for (const int unused : multiplexer.TakeUnused()) open[unused] = false;
    for (const Multiplexer::Channel stirred : multiplexer.TakeStirred()) {
      for (const Frame& frame : multiplexer.Take(stirred)) {
        Require(frame.kind != FrameKind::kChannel && frame.kind != FrameKind::kEnd);
      }
    }
    for (const auto& [with, channel] : channels) {
      Require(multiplexer.Ended(channel) == multiplexer.ConnectionsOf(channel).empty());
    }
  }
}

}  // namespace
}  // namespace railhead::bootstrap

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::bootstrap::RunMultiplexer({reinterpret_cast<const char*>(data), size});
  return 0;
}
