// SPDX-License-Identifier: Apache-2.0
//
// What RAILHEAD_AUTH costs one TCP rail: messages from one process of this machine to another, by
// rails with each of its values, by a bare socket, and by TLS of OpenSSL. Rounds take turns.
//
// usage: railhead_auth_bench        a table in Markdown
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/net/fd.h"
#include "runtime/testing/bench.h"
#include "runtime/testing/ranks.h"
#include "runtime/testing/streams.h"

namespace railhead {
namespace {

using testing::AnsweredSocket;
using testing::BareSocket;
using testing::Die;
using testing::Median;
using testing::MedianRatio;
using testing::Now;
using testing::Rail;
using testing::Stream;

constexpr int kRounds = 11;
constexpr size_t kRoundBytes = size_t{256} << 20;
constexpr size_t kSizes[] = {size_t{1} << 20, size_t{16} << 20};
constexpr double kGoal = 0.97;

// TLS 1.3 with AES-256-GCM, both sides in this program. A message is answered, as a rail's is.
class Tls : public Stream {
 public:
  Tls(net::Fd socket, bool accepts)
      : socket_(std::move(socket)),
        context_(SSL_CTX_new(TLS_method()), SSL_CTX_free),
        ssl_(nullptr, SSL_free) {
    // Each record is a write of its own, and would wait for the last one's acknowledgement.
    const int on = 1;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_3_VERSION);
    SSL_CTX_set_ciphersuites(context_.get(), "TLS_AES_256_GCM_SHA384");
    if (accepts) Certify();
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), socket_.get());
    if ((accepts ? SSL_accept(ssl_.get()) : SSL_connect(ssl_.get())) != 1) Die("TLS handshake");
  }
  void Send(std::byte* data, size_t size) override {
    SendAll(data, size);
    AwaitAnswer();
  }
  void Receive(std::byte* data, size_t size) override {
    ReceiveAll(data, size);
    Answer();
  }
  void Answer() override { SendAll(&word_, 1); }
  void AwaitAnswer() override { ReceiveAll(&word_, 1); }

 private:
  // With a certificate that nobody checks.
  void Certify() {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                  EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    X509_set_pubkey(certificate.get(), key.get());
    if (X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0 ||
        SSL_CTX_use_certificate(context_.get(), certificate.get()) != 1 ||
        SSL_CTX_use_PrivateKey(context_.get(), key.get()) != 1) {
      Die("TLS certificate");
    }
  }
  void SendAll(std::byte* data, size_t size) {
    size_t sent = 0;
    for (; size > 0; data += sent, size -= sent) {
      if (SSL_write_ex(ssl_.get(), data, size, &sent) != 1) Die("TLS write");
    }
  }
  void ReceiveAll(std::byte* data, size_t size) {
    size_t received = 0;
    for (; size > 0; data += received, size -= received) {
      if (SSL_read_ex(ssl_.get(), data, size, &received) != 1) Die("TLS read");
    }
  }

  net::Fd socket_;
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  std::byte word_{};
};

double CpuSeconds() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

std::unique_ptr<Rail> RailWith(const char* auth, int port, int rank) {
  ::setenv("RAILHEAD_AUTH", auth, 1);
  ::setenv("MASTER_PORT", absl::StrCat(port).c_str(), 1);
  return std::make_unique<Rail>(rank);
}

constexpr std::array<const char*, 5> kNames = {"bare socket", "TLS 1.3 of OpenSSL, AES-256-GCM",
                                               "handshake", "frames", "encrypt"};
constexpr size_t kTls = 1;
constexpr size_t kHandshake = 2;
constexpr size_t kFrames = 3;

struct Measured {
  std::vector<double> rates;  // GB/s
  std::vector<double> cpu;    // seconds of both ranks for a GB
};

void PrintTable(size_t size, const std::array<Measured, kNames.size()>& all) {
  for (size_t i = 0; i < all.size(); ++i) {
    const std::vector<double>& rates = all[i].rates;
    std::printf("| %zu MiB | %s | %.2f GB/s | %.2f s |", size >> 20U, kNames[i], Median(rates),
                Median(all[i].cpu));
    const double ratio = MedianRatio(rates, all[kHandshake].rates);
    std::printf(" %.1f %% | %.1f %% |", 100 * ratio, 100 * MedianRatio(rates, all[kTls].rates));
    if (i == kFrames) {
      std::printf(" >= %.0f %% of handshake | %s |\n", 100 * kGoal, ratio >= kGoal ? "yes" : "no");
    } else {
      std::printf(" | |\n");
    }
  }
}

// `cpu` is shared by the ranks, an element each.
void RunRank(int rank, std::array<net::Fd, 2> listeners, const std::array<int, 3>& ports,
             double* cpu) {
  BareSocket bare(testing::Connect(std::move(listeners[0]), rank));
  AnsweredSocket answered(bare);
  Tls tls(testing::Connect(std::move(listeners[1]), rank), rank == 1);
  const std::unique_ptr<Rail> handshake = RailWith("handshake", ports[0], rank);
  const std::unique_ptr<Rail> frames = RailWith("frames", ports[1], rank);
  const std::unique_ptr<Rail> encrypt = RailWith("encrypt", ports[2], rank);
  Stream* const streams[] = {&answered, &tls, handshake.get(), frames.get(), encrypt.get()};
  static_assert(std::size(streams) == kNames.size());
  std::vector<std::byte> data(*std::max_element(std::begin(kSizes), std::end(kSizes)),
                              std::byte{7});
  if (rank == 0) {
    std::printf(
        "| size | | bandwidth | CPU of both ranks for a GB | of handshake | of TLS | goal | "
        "reached "
        "|\n|---|---|---|---|---|---|---|---|\n");
  }
  for (const size_t size : kSizes) {
    std::array<Measured, kNames.size()> all;
    for (int round = 0; round <= kRounds; ++round) {
      for (size_t i = 0; i < std::size(streams); ++i) {
        const double begin = Now();
        const double used = CpuSeconds();
        for (size_t done = 0; done < kRoundBytes; done += size) {
          rank == 0 ? streams[i]->Send(data.data(), size) : streams[i]->Receive(data.data(), size);
        }
        const double end = Now();
        cpu[rank] = CpuSeconds() - used;
        // When it comes, the other's time is there, too.
        rank == 0 ? streams[i]->AwaitAnswer() : streams[i]->Answer();
        // The first round warms up.
        if (round == 0 || rank != 0) continue;
        all[i].rates.push_back(kRoundBytes / (end - begin) / 1e9);
        all[i].cpu.push_back((cpu[0] + cpu[1]) / (kRoundBytes / 1e9));
      }
    }
    if (rank == 0) PrintTable(size, all);
  }
  std::fflush(stdout);
}

// A file that only this user reads.
std::string SecretFile() {
  std::string path = "/tmp/railhead-auth-bench-XXXXXX";
  const net::Fd file(::mkstemp(path.data()));
  constexpr char kSecret[] = "a secret of two ranks on one machine";
  if (!file.valid() || ::write(file.get(), kSecret, sizeof kSecret) < 0) Die("secret file");
  return path;
}

int Run() {
  const std::string secret = SecretFile();
  ::setenv("RAILHEAD_SECRET_FILE", secret.c_str(), 1);
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("WORLD_SIZE", "2", 1);
  ::setenv("RAILHEAD_TRANSPORT", "tcp", 1);
  ::setenv("RAILHEAD_SOCKET_IFNAME", "lo", 1);
  ::setenv("RAILHEAD_METRICS_PORT", "0", 1);
  const std::array<int, 3> ports = {testing::FreePort(), testing::FreePort(), testing::FreePort()};
  std::array<net::Fd, 2> listeners;
  for (net::Fd& listener : listeners) {
    // Blocking, unlike those of net::Listen.
    listener = net::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!listener.valid() || ::listen(listener.get(), 1) != 0) Die("listen");
  }
  void* const shared = ::mmap(nullptr, 2 * sizeof(double), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) Die("mmap");
  const pid_t child = ::fork();
  if (child < 0) Die("cannot fork");
  RunRank(child == 0 ? 1 : 0, std::move(listeners), ports, static_cast<double*>(shared));
  if (child == 0) return 0;
  int status = 0;
  const bool ended = ::waitpid(child, &status, 0) == child && status == 0;
  ::unlink(secret.c_str());
  if (!ended) Die("rank 1 has failed");
  return 0;
}

}  // namespace
}  // namespace railhead

int main() { return railhead::Run(); }
