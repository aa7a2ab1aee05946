#include "parallel.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <limits>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace sglb {
namespace {

using Clock = std::chrono::steady_clock;
std::atomic<void (*)()> interrupt_check{nullptr};

// Numbers of tasks that one thread takes first; those of a thread that is late go to the others.
struct alignas(64) Queue {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
};

// One call of parallel_for. The threads divide the tasks between them the same way each time, so
// that what a thread has in its cache from one call is there in the next.
struct Job {
    static constexpr int most_queues = 16;
    const std::function<void(int64_t)>& task;
    int n_threads, n_queues;
    Queue queues[most_queues];
    std::mutex failure_lock;
    std::exception_ptr failure;

    Job(const std::function<void(int64_t)>& work, int64_t n_tasks, int threads)
        : task(work), n_threads(threads), n_queues(std::min(threads, most_queues)) {
        for (int q = 0; q < n_queues; ++q) {
            queues[q].next.store(n_tasks * q / n_queues, std::memory_order_relaxed);
            queues[q].end = n_tasks * (q + 1) / n_queues;
        }
    }

    // The next task for a thread, or -1 when all are taken.
    int64_t take(int thread) {
        for (int k = 0; k < n_queues; ++k) {
            Queue& queue = queues[(thread + k) % n_queues];
            if (queue.next.load(std::memory_order_relaxed) >= queue.end) continue;
            const int64_t number = queue.next.fetch_add(1, std::memory_order_relaxed);
            if (number < queue.end) return number;
        }
        return -1;
    }

    void fail() {
        for (int q = 0; q < n_queues; ++q) queues[q].next.store(queues[q].end);
        const std::lock_guard guard(failure_lock);
        if (!failure) failure = std::current_exception();
    }

    void work(int thread) noexcept {
        try {
            for (int64_t i; (i = take(thread)) >= 0;) task(i);
        } catch (...) {
            fail();
        }
    }

    // The caller's share, thread 0: as work(), but looks up now and then whether the user wants to
    // stop.
    void work_and_listen() noexcept {
        Clock::time_point last;
        bool has_begun = false;  // most jobs are over before a look at the clock is worth its time
        try {
            for (int64_t i; (i = take(0)) >= 0;) {
                task(i);
                const auto check = interrupt_check.load(std::memory_order_relaxed);
                if (!check) continue;
                const auto now = Clock::now();
                if (!has_begun) last = now;
                has_begun = true;
                if (now - last <= std::chrono::milliseconds(100)) continue;
                last = now;
                check();
            }
        } catch (...) {
            fail();
        }
    }
};

// Workers look at a counter of jobs, first in a loop and then asleep. A worker says that it is here
// before it looks for the job, and the caller takes the job away before it asks who is here: so
// either the worker sees no job, or the caller sees the worker and waits. Sleepers and the counter
// are played the same way. All of it rests on one order of these operations for all threads, which
// the atomics' default gives.
class Pool {
  public:
    // Runs the job on its number of threads at most, the caller being one of them. A worker that
    // wakes after the caller has run out of tasks finds no job.
    void run(Job& job) {
        grow(job.n_threads - 1);
        job_.store(&job);
        n_jobs_.fetch_add(1);
        if (n_asleep_.load() > 0) {
            {
                const std::lock_guard guard(lock_);
            }
            wake_.notify_all();
        }
        job.work_and_listen();
        job_.store(nullptr);
        for (int spins = 0; n_here_.load() > 0; ++spins)
            if (spins < spin_limit)
                rest();
            else
                std::this_thread::yield();
    }

    std::mutex in_use;

  private:
    // A step's kernels follow each other within microseconds: spin this often before sleeping.
    static constexpr int spin_limit = 4000;

    // What a thread does that waits for a word in memory.
    static void rest() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }

    // Where the system gives no more threads, those that are there do all the work.
    void grow(int n_workers) {
        try {
            while (static_cast<int>(workers_.size()) < n_workers) {
                const int index = static_cast<int>(workers_.size());
                const uint64_t seen = n_jobs_.load();
                workers_.emplace_back([this, index, seen] { serve(index, seen); });
                workers_.back().detach();
            }
        } catch (const std::system_error&) {
        }
    }

    void serve(int index, uint64_t seen) {
        for (;;) {
            for (int spins = 0; n_jobs_.load() == seen; ++spins)
                if (spins < spin_limit)
                    rest();
                else
                    sleep(seen);
            seen = n_jobs_.load();
            n_here_.fetch_add(1);
            if (Job* const job = job_.load(); job && index + 1 < job->n_threads)
                job->work(index + 1);
            n_here_.fetch_sub(1);
        }
    }

    void sleep(uint64_t seen) {
        std::unique_lock guard(lock_);
        n_asleep_.fetch_add(1);
        wake_.wait(guard, [&] { return n_jobs_.load() != seen; });
        n_asleep_.fetch_sub(1);
    }

    // Words that several threads write stand on lines of their own.
    alignas(64) std::atomic<Job*> job_{nullptr};
    std::atomic<uint64_t> n_jobs_{0};
    std::atomic<int> n_asleep_{0};
    alignas(64) std::atomic<int> n_here_{0};
    alignas(64) std::mutex lock_;
    std::condition_variable wake_;
    std::vector<std::thread> workers_;
};

// The pool is never destroyed: workers may outlive static destructors. A forked child has none of
// its parent's threads, so it drops the pool without touching it and makes its own on first use.
std::atomic<Pool*> the_pool{nullptr};

Pool& pool() {
    static std::mutex making;
    Pool* pool = the_pool.load(std::memory_order_acquire);
    if (pool) return *pool;
    const std::lock_guard guard(making);
    if (!the_pool.load()) {
        static const int registered =
            pthread_atfork(nullptr, nullptr, [] { the_pool.store(nullptr); });
        static_cast<void>(registered);
        the_pool.store(new Pool, std::memory_order_release);
    }
    return *the_pool.load();
}

// Cores granted by a cgroup's CPU quota; without one, more than there are.
int read_quota() {
    std::ifstream unified("/sys/fs/cgroup/cpu.max");
    std::string quota;
    double period = 0.0;
    if (unified >> quota >> period && quota != "max" && period > 0.0)
        return std::max(1, static_cast<int>(std::stod(quota) / period + 0.5));
    std::ifstream old_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    std::ifstream old_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    double granted = -1.0;
    if (old_quota >> granted && old_period >> period && granted > 0.0 && period > 0.0)
        return std::max(1, static_cast<int>(granted / period + 0.5));
    return std::numeric_limits<int>::max();
}

// The quota as it was within the last second: to read it takes three times as long as to predict a
// row, and quotas change seldom. Threads that find it outdated at once all read it.
int quota_threads() {
    static std::atomic<int> quota{0};
    static std::atomic<Clock::rep> valid_until{0};
    const Clock::rep now = Clock::now().time_since_epoch().count();
    if (quota.load(std::memory_order_relaxed) == 0 ||
        now >= valid_until.load(std::memory_order_relaxed)) {
        quota.store(read_quota(), std::memory_order_relaxed);
        valid_until.store(now + Clock::duration(std::chrono::seconds(1)).count(),
                          std::memory_order_relaxed);
    }
    return quota.load(std::memory_order_relaxed);
}

}  // namespace

int available_threads() {
    cpu_set_t set;
    // hardware_concurrency() reads a file.
    int n = sched_getaffinity(0, sizeof set, &set) == 0
                ? CPU_COUNT(&set)
                : static_cast<int>(std::thread::hardware_concurrency());
    n = std::min(std::max(n, 1), quota_threads());
    if (const char* limit = std::getenv("OMP_NUM_THREADS")) {
        const int value = std::atoi(limit);
        if (value > 0) n = std::min(n, value);
    }
    return n;
}

void set_interrupt_check(void (*check)()) { interrupt_check.store(check); }

void parallel_for(int64_t n_tasks, int n_threads, const std::function<void(int64_t)>& task) {
    if (n_tasks <= 0) return;
    if (n_tasks == 1) return task(0);
    const int useful = std::max(1, static_cast<int>(std::min<int64_t>(n_tasks, n_threads)));
    Job job(task, n_tasks, useful);
    if (useful > 1) {
        Pool& shared = pool();
        std::unique_lock guard(shared.in_use, std::try_to_lock);
        if (guard.owns_lock()) {
            shared.run(job);
        } else {
            job.work_and_listen();
        }
    } else {
        job.work_and_listen();
    }
    if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace sglb
