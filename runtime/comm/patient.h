// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_COMM_PATIENT_H_
#define RAILHEAD_RUNTIME_COMM_PATIENT_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/collectives/messenger.h"
#include "runtime/rails/mesh.h"

namespace railhead::comm {

// Messages of a mesh, whose patience begins anew where `go_on` says so when it has ended.
class Patient final : public collectives::Messenger {
 public:
  // Both outlive this.
  Patient(rails::Mesh& mesh, const std::function<bool()>& go_on) : mesh_(mesh), go_on_(go_on) {}

  void Begin(absl::Duration patience) {
    patience_ = patience;
    mesh_.Begin(patience);
  }
  absl::Status Finish() {
    absl::Status status = mesh_.Finish();
    while (GoesOn(status)) status = mesh_.Finish();
    return status;
  }

  void Expect(collectives::Call call) override { mesh_.Expect(call); }
  Ticket PostSend(int peer, absl::Span<const std::byte> data) override {
    return mesh_.PostSend(peer, data);
  }
  Ticket PostReceive(int peer, const collectives::ReceiveBuffer& buffer) override {
    return mesh_.PostReceive(peer, buffer);
  }
  bool SendDone(int peer, Ticket ticket) const override { return mesh_.SendDone(peer, ticket); }
  bool ReceiveDone(int peer, Ticket ticket) const override {
    return mesh_.ReceiveDone(peer, ticket);
  }
  absl::Status Progress() override {
    absl::Status status = mesh_.Progress();
    return GoesOn(status) ? absl::OkStatus() : status;
  }

 private:
  bool GoesOn(const absl::Status& status) {
    if (!absl::IsDeadlineExceeded(status) || !go_on_()) return false;
    mesh_.Begin(patience_);
    return true;
  }

  rails::Mesh& mesh_;
  const std::function<bool()>& go_on_;
  absl::Duration patience_ = absl::InfiniteDuration();
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_PATIENT_H_
