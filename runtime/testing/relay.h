// SPDX-License-Identifier: Apache-2.0
//
// Somebody on the way between two acceptors, who hears and may change what is said.
#ifndef RAILHEAD_RUNTIME_TESTING_RELAY_H_
#define RAILHEAD_RUNTIME_TESTING_RELAY_H_

#include <sys/socket.h>

#include <functional>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/wire.h"
#include "runtime/net/address.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"
#include "runtime/transport/connect/acceptor.h"

namespace railhead::testing {

// The address of an acceptor whose connections somebody else takes, at another port of this
// machine.
inline std::string AddressAt(const transport::Acceptor& acceptor, uint16_t port) {
  WireWriter writer;
  writer.String(acceptor.own().ip.Bytes());
  writer.U16(port);
  writer.Raw(acceptor.own().token);
  return writer.Take();
}

// Stands in front of one acceptor, or of any listening socket. To be pumped by the test, which
// works at the links in the same thread.
class Relay {
 public:
  explicit Relay(const transport::Acceptor& behind)
      : Relay(net::SocketAddress{behind.own().ip, behind.own().port}) {
    acceptor_ = &behind;
  }
  explicit Relay(net::SocketAddress behind) : behind_(std::move(behind)) {
    const net::IpAddress loopback = *net::IpAddress::Parse("127.0.0.1");
    listener_ = *net::Listen(loopback, 0);
    port_ = net::LocalAddress(listener_.get())->port;
  }

  // What the acceptor's peers are to be told.
  std::string Address() const { return AddressAt(*acceptor_, port_); }
  // Where callers of a socket are to connect.
  uint16_t port() const { return port_; }

  // Changes what comes from who calls, or from the acceptor, before it goes on.
  std::function<void(bool from_caller, std::string& bytes)> change;

  // What was said over each connection: by who called, and by the acceptor.
  struct Heard {
    std::string caller;
    std::string acceptor;
  };
  const std::vector<Heard>& heard() const { return heard_; }

  void Cut() { lines_.clear(); }
  // Ends all connections as a network does that has forgotten them. Returns how many there were.
  size_t Reset() {
    const size_t count = lines_.size();
    for (CarriedLine& line : lines_) {
      net::CloseByReset(std::move(line.caller));
      net::CloseByReset(std::move(line.acceptor));
    }
    lines_.clear();
    return count;
  }

  void Pump() {
    while (true) {
      net::Fd caller = *net::Accept(listener_.get());
      if (!caller.valid()) break;
      net::Fd acceptor = *net::StartDial(behind_.address, behind_.port, std::nullopt);
      lines_.push_back({std::move(caller), std::move(acceptor), heard_.size(), "", ""});
      heard_.emplace_back();
    }
    for (auto line = lines_.begin(); line != lines_.end();) {
      const bool open = Carry(line->caller, line->acceptor, true, *line, line->to_acceptor) &&
                        Carry(line->acceptor, line->caller, false, *line, line->to_caller);
      line = open ? std::next(line) : lines_.erase(line);
    }
  }

 private:
  struct CarriedLine {
    net::Fd caller;
    net::Fd acceptor;
    size_t number;
    std::string to_acceptor;
    std::string to_caller;
  };

  bool Carry(const net::Fd& from, const net::Fd& to, bool from_caller, CarriedLine& line,
             std::string& waiting) {
    std::string bytes;
    const absl::StatusOr<bool> open = net::ReceiveSome(from.get(), 1 << 16, &bytes);
    (from_caller ? heard_[line.number].caller : heard_[line.number].acceptor) += bytes;
    if (change && !bytes.empty()) change(from_caller, bytes);
    waiting += bytes;
    const ssize_t sent = ::send(to.get(), waiting.data(), waiting.size(), MSG_NOSIGNAL);
    if (sent > 0) waiting.erase(0, static_cast<size_t>(sent));
    // A socket that connects still is not open, and not closed either.
    return (open.ok() && *open) || absl::IsUnknown(open.status());
  }

  net::SocketAddress behind_;
  const transport::Acceptor* acceptor_ = nullptr;
  net::Fd listener_;
  uint16_t port_ = 0;
  std::list<CarriedLine> lines_;
  std::vector<Heard> heard_;
};

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_RELAY_H_
