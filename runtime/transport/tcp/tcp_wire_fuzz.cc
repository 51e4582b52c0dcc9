// SPDX-License-Identifier: Apache-2.0
//
// Any bytes over a rail's TCP connection. Without signatures they may be frames, whose sizes and
// places are checked. With signatures, bytes of a stranger are not a frame, and frames of the peer
// arrive as they were sent, or end the connection.
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/transport/tcp/frame_seal.h"
#include "runtime/transport/tcp/tcp_wire.h"

namespace railhead::transport {
namespace {

constexpr size_t kLongestInput = size_t{16} << 10;  // fits into the kernel's buffer
constexpr size_t kPlacedSize = 9000;                // more than what always passes through a buffer

void MustHold(bool condition) {
  if (!condition) std::abort();
}

LineKeys Keys(char send, char receive) { return {std::string(32, send), std::string(32, receive)}; }

// One end of a connection, and the bytes at the other.
class Wired {
 public:
  explicit Wired(std::optional<FrameSeals> seals) {
    int ends[2];
    MustHold(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    far_ = net::Fd(ends[1]);
    wire_ = std::make_unique<TcpWire>(net::Fd(ends[0]), "fuzz", WireOwner{nullptr, &stats_}, seals);
  }

  TcpWire& wire() { return *wire_; }

  // Returns what the wire has sent since the last call.
  std::string Drain() {
    std::string bytes;
    static std::vector<char> some(size_t{64} << 10);
    for (ssize_t got = 0; (got = ::recv(far_.get(), some.data(), some.size(), 0)) > 0;) {
      bytes.append(some.data(), static_cast<size_t>(got));
    }
    return bytes;
  }

  // Lets bytes arrive in pieces, and polls after each. Bits of `plan`: the size of pieces, whether
  // frames are deferred once, and whether they are placed.
  void Feed(absl::string_view bytes, uint8_t plan) {
    const size_t piece = size_t{1} << (4 + (plan & 0xf));
    bool open = true;
    while (open && !bytes.empty()) {
      const absl::string_view now = bytes.substr(0, piece);
      MustHold(::send(far_.get(), now.data(), now.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(now.size()));
      bytes.remove_prefix(now.size());
      open = PollUntilQuiet(plan);
      Drain();
    }
  }

  size_t places() const { return places_.size(); }
  const std::vector<std::string>& received() const { return received_; }

 private:
  bool PollUntilQuiet(uint8_t plan) {
    for (int quiet = 0; quiet < 2;) {
      const auto take = [&](const FrameHeader&, absl::Span<const std::byte> payload) {
        MustHold(payload.size() <= TcpWire::kMaxPayload);
        deferred_ = (plan & 0x10) != 0 && !deferred_;
        if (deferred_) return false;
        received_.emplace_back(reinterpret_cast<const char*>(payload.data()), payload.size());
        return true;
      };
      // As large as it is said to be, so that the sanitizer sees what is written beyond.
      const auto place = [&](const FrameHeader&, size_t size) -> std::byte* {
        MustHold(size <= TcpWire::kMaxPayload);
        if ((plan & 0x20) == 0) return nullptr;
        places_.push_back(std::make_unique<std::byte[]>(size));
        return places_.back().get();
      };
      const absl::StatusOr<bool> moved = wire_->Poll(FrameSink(take, place)).moved;
      if (!moved.ok()) return false;
      quiet = *moved ? 0 : quiet + 1;
      if ((plan & 0x40) != 0) wire_->StopPlacing();
    }
    return true;
  }

  LinkStats stats_;
  net::Fd far_;
  std::unique_ptr<TcpWire> wire_;
  std::vector<std::unique_ptr<std::byte[]>> places_;
  std::vector<std::string> received_;
  bool deferred_ = false;
};

void Strangers(absl::string_view bytes, uint8_t plan) {
  Wired(std::nullopt).Feed(bytes, plan);
  for (const FrameProtection protection :
       {FrameProtection::kSigned, FrameProtection::kChaCha20Poly1305}) {
    Wired wired(FrameSeals(Keys('a', 'b'), protection));
    wired.Feed(bytes, plan);
    MustHold(wired.received().empty() && wired.places() == 0);
  }
}

// Three frames of a peer, of which one byte is changed on its way.
void Changed(absl::string_view bytes, uint8_t plan) {
  if (bytes.size() < 3) return;
  const auto at = [&bytes](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const FrameProtection protection =
      (plan & 0x80) != 0 ? FrameProtection::kSigned : FrameProtection::kChaCha20Poly1305;
  Wired peer(FrameSeals(Keys('b', 'a'), protection));
  std::vector<std::string> sent = {std::string(bytes.substr(3)), std::string(kPlacedSize, 'p'), ""};
  for (const std::string& payload : sent) {
    const auto* const begin = reinterpret_cast<const std::byte*>(payload.data());
    MustHold(*peer.wire().TrySend({1, 0}, absl::MakeConstSpan(begin, payload.size())));
  }
  MustHold(peer.wire().Push().ok());
  std::string stream = peer.Drain();
  char& changed = stream[(static_cast<size_t>(at(0)) * 256 + at(1)) % stream.size()];
  changed = static_cast<char>(changed ^ static_cast<char>(at(2)));

  Wired wired(FrameSeals(Keys('a', 'b'), protection));
  wired.Feed(stream, static_cast<uint8_t>(plan & ~0x40));
  const std::vector<std::string>& received = wired.received();
  MustHold(received.size() <= sent.size() && (received.size() == sent.size()) == (at(2) == 0));
  for (size_t i = 0; i < received.size(); ++i) MustHold(received[i] == sent[i]);
}

}  // namespace
}  // namespace railhead::transport

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > railhead::transport::kLongestInput) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  railhead::transport::Strangers(bytes, data[0]);
  railhead::transport::Changed(bytes, data[0]);
  return 0;
}
