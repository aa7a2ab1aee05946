// Callgrind's client requests as functions that Python can call.

#include <valgrind/callgrind.h>

extern "C" {
int running() { return RUNNING_ON_VALGRIND; }
void begin() { CALLGRIND_START_INSTRUMENTATION; }
void toggle() { CALLGRIND_TOGGLE_COLLECT; }
void dump(const char* label) { CALLGRIND_DUMP_STATS_AT(label); }
}
