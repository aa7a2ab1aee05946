// The interpreter's lock, safe for daemon threads at the end of the process.
//
// Once the interpreter is ending, Python before 3.14 ends every other thread that asks for the
// lock: it unwinds the thread's stack by pthread_exit, and a stack with C++ in it that catches
// everything, or must not throw, aborts the process. As in Python 3.14 such a thread waits for the
// process to end instead.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

namespace sglb::bindings {

// Its destructor runs while the stack is unwound, and lets no frame further up be reached.
struct EndOfThread {
    bool comes = true;
    ~EndOfThread() {
        while (comes) pause();
    }
};

// Asks Python for the lock by a function of its own. Not inlined: the callers must not throw.
template <class Ask>
[[gnu::noinline]] auto take_lock(Ask&& ask) {
    EndOfThread end;
    const auto state = ask();
    end.comes = false;
    return state;
}

// Others may run Python while this object lives.
class LockRelease {
  public:
    LockRelease() : state_(PyEval_SaveThread()) {}
    LockRelease(const LockRelease&) = delete;
    LockRelease& operator=(const LockRelease&) = delete;
    ~LockRelease() {
        take_lock([this] { return PyEval_RestoreThread(state_), true; });
    }

  private:
    PyThreadState* state_;
};

// This thread may run Python while this object lives.
class LockHold {
  public:
    LockHold() : state_(take_lock([] { return PyGILState_Ensure(); })) {}
    LockHold(const LockHold&) = delete;
    LockHold& operator=(const LockHold&) = delete;
    ~LockHold() { PyGILState_Release(state_); }

  private:
    PyGILState_STATE state_;
};

}  // namespace sglb::bindings
