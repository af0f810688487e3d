//===- WorkerPool.h - a few threads for work that takes a while -------------===//
#ifndef LLMRT_SERVER_WORKERPOOL_H
#define LLMRT_SERVER_WORKERPOOL_H

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace llmrt::server {

/// Runs actions in the order in which they come. Who posts them bounds their number.
class WorkerPool {
public:
  explicit WorkerPool(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i)
      threads_.emplace_back([this] { run(); });
  }
  ~WorkerPool() { join(); }

  void post(std::function<void()> action) {
    {
      std::lock_guard lock(mutex_);
      actions_.push_back(std::move(action));
    }
    wake_.notify_one();
  }
  /// Runs what was posted, then ends the threads.
  void join() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread &thread : threads_)
      thread.join();
    threads_.clear();
  }

private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stop_ || !actions_.empty(); });
      if (actions_.empty())
        return;
      std::function<void()> action = std::move(actions_.front());
      actions_.pop_front();
      lock.unlock();
      action();
      action = nullptr; // what it holds may end here, outside the lock
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> actions_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_WORKERPOOL_H
