// A small thread pool: parallel_for over numbered tasks.
//
// Each thread has its share of the numbers and helps the others when it is done, so a task must
// write only to places of its own or combine by exact (integer) arithmetic: then the result does
// not depend on the threads. The pool is made on first use and forgotten in a forked child. When it
// is busy with another call the caller does all the work itself. The first exception of a task
// reaches the caller.
//
// The core has no thread_local variables: where memory is short, the C library aborts the process
// when a thread first touches one.
#pragma once

#include <cstdint>
#include <functional>

namespace sglb {

// Cores this process may use: the least of affinity and OMP_NUM_THREADS, both as they are at the
// call, and of the cgroup's CPU quota, as it was within the last second. A forked child starts with
// what its parent read last.
int available_threads();

// Called by the calling thread every tenth of a second of work; it may throw to stop the call.
void set_interrupt_check(void (*check)());

void parallel_for(int64_t n_tasks, int n_threads, const std::function<void(int64_t)>& task);

// Rows are handled in blocks; work on one or two of them is not worth waking a thread for.
inline constexpr int64_t block_rows = 1024;

// task(begin, end) over blocks of rows.
template <class Task>
void parallel_rows(int64_t n_rows, int n_threads, Task&& task) {
    const int64_t n_blocks = (n_rows + block_rows - 1) / block_rows;
    parallel_for(n_blocks, n_blocks > 2 ? n_threads : 1, [&](int64_t block) {
        const int64_t begin = block * block_rows;
        const int64_t end = begin + block_rows < n_rows ? begin + block_rows : n_rows;
        task(begin, end);
    });
}

}  // namespace sglb
