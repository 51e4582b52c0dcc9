// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/kubelet/registration.h"

#include <algorithm>

namespace railhead::device_plugin {

Decision Registration::Wait(TimePoint until, TimePoint now) const {
  return Decision{Action::kWait, std::min(until, now + timing_.poll)};
}

void Registration::Enter(Phase phase, TimePoint now) {
  phase_ = phase;
  since_ = now;
}

// The current attempt has failed: retry after a delay that doubles.
void Registration::Retry(TimePoint now) {
  pause_ = std::clamp(pause_ * 2, timing_.first_retry, timing_.last_retry);
  retry_at_ = now + pause_;
  Enter(Phase::kIdle, now);
}

void Registration::Settle(const Observation& seen, TimePoint now) {
  opened_before_ = seen.streams_opened;
  Enter(Phase::kSettling, now);
}

Decision Registration::Serve(TimePoint now) {
  serve_at_ = now + timing_.first_retry;  // prevents a busy loop if the socket is deleted at once
  Enter(Phase::kIdle, now);
  return Decision{Action::kServe, now};
}

void Registration::RegisterFinished(bool ok, TimePoint now) {
  if (phase_ != Phase::kRegistering) return;  // the result of an abandoned attempt
  if (ok) {
    Enter(Phase::kAwaitingStream, now);
  } else {
    Retry(now);
  }
}

void Registration::ServeFailed(TimePoint now) {
  Retry(now);
  serve_at_ = retry_at_;
}

Decision Registration::Decide(const Observation& seen, TimePoint now) {
  if (!seen.has_devices) return Wait(TimePoint::max(), now);

  if (!seen.own_socket) {
    if (now < serve_at_) return Wait(serve_at_, now);
    return Serve(now);
  }

  // Kubelet is down: its streams end by themselves, and its next start counts as a new kubelet.
  if (!seen.kubelet.has_value()) {
    Enter(Phase::kIdle, now);
    kubelet_.reset();
    return Wait(TimePoint::max(), now);
  }
  if (seen.kubelet != kubelet_) {
    // A new kubelet gets an immediate attempt, regardless of earlier failures.
    kubelet_ = seen.kubelet;
    pause_ = Duration::zero();
    retry_at_ = now;
    Enter(Phase::kIdle, now);
  }

  if (phase_ == Phase::kServing) {
    if (seen.open_streams > 0) {
      if (now - since_ >= timing_.stable) pause_ = Duration::zero();
      return Wait(TimePoint::max(), now);
    }
    Retry(now);
  }
  if (phase_ == Phase::kAwaitingStream) {
    if (seen.open_streams > 0) {
      Enter(Phase::kServing, now);
      return Wait(TimePoint::max(), now);
    }
    const bool came_and_went = seen.streams_opened != opened_before_;
    if (!came_and_went && now - since_ < timing_.await_stream) {
      return Wait(since_ + timing_.await_stream, now);
    }
    Retry(now);
  }
  if (phase_ == Phase::kRegistering) {
    if (now - since_ < timing_.register_call) return Wait(since_ + timing_.register_call, now);
    Retry(now);
  }
  if (phase_ == Phase::kIdle) {
    if (now < retry_at_) return Wait(retry_at_, now);
    if (seen.open_streams > 0) {
      Enter(Phase::kEnding, now);
      return Decision{Action::kEndStreams, now};
    }
    Settle(seen, now);
  }
  if (phase_ == Phase::kEnding) {
    if (seen.open_streams > 0) {
      if (now - since_ < timing_.end_streams) return Wait(since_ + timing_.end_streams, now);
      return Serve(now);  // a stream that does not end is closed with its server
    }
    Settle(seen, now);
  }
  // The remaining phase is kSettling.
  if (seen.open_streams > 0) {
    Enter(Phase::kIdle, now);
    return Decision{Action::kWait, now};
  }
  if (seen.streams_opened != opened_before_) Settle(seen, now);  // one was opened and closed since
  if (now - since_ < timing_.settle) return Wait(since_ + timing_.settle, now);
  Enter(Phase::kRegistering, now);
  return Decision{Action::kRegister, now};
}

}  // namespace railhead::device_plugin
