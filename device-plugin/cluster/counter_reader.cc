// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/counter_reader.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fabric/port_counters.h"

namespace railhead::device_plugin {
namespace {

// Ports that one thread reads.
struct Job {
  std::deque<Port> left;
  std::map<Port, fabric::PortCounters> read;
  bool abandoned = false;
};

}  // namespace

// Outlives the reader if a NIC hangs.
struct CounterReader::Shared {
  ReadPort read;
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::string> hanging;  // HCAs

  // Reads the ports of a job until it is abandoned.
  void Run(Job& job) {
    std::unique_lock<std::mutex> lock(mutex);
    while (!job.left.empty()) {
      const Port port = job.left.front();
      lock.unlock();
      const fabric::PortCounters counters = read(port);
      lock.lock();
      if (job.abandoned) {
        hanging.erase(port.first);
        return;
      }
      job.read[port] = counters;
      job.left.pop_front();
      changed.notify_all();
    }
  }
};

CounterReader::CounterReader(ReadPort read, std::chrono::milliseconds patience)
    : patience_(patience), shared_(std::make_shared<Shared>()) {
  shared_->read = std::move(read);
}

std::map<Port, fabric::PortCounters> CounterReader::Read(std::vector<Port> ports) {
  std::map<Port, fabric::PortCounters> result;
  std::unique_lock<std::mutex> lock(shared_->mutex);
  const auto omit_hanging = [this](auto& from) {
    std::erase_if(from, [this](const Port& port) { return shared_->hanging.contains(port.first); });
  };
  while (true) {
    omit_hanging(ports);
    if (ports.empty()) break;
    const auto job = std::make_shared<Job>();
    job->left.assign(ports.begin(), ports.end());
    std::thread([shared = shared_, job] { shared->Run(*job); }).detach();
    while (!job->left.empty()) {
      const size_t before = job->left.size();
      const bool moved =
          shared_->changed.wait_for(lock, patience_, [&] { return job->left.size() != before; });
      if (!moved) break;
    }
    result.merge(job->read);
    if (job->left.empty()) break;
    job->abandoned = true;
    shared_->hanging.insert(job->left.front().first);
    ports.assign(job->left.begin(), job->left.end());
  }
  // All ports of an HCA, or none.
  std::erase_if(result,
                [this](const auto& entry) { return shared_->hanging.contains(entry.first.first); });
  return result;
}

}  // namespace railhead::device_plugin
