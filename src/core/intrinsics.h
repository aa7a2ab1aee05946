// AVX-512 by hand, where the compiler finds it and the processor may have it: SGLB_REGISTERS.
#pragma once

#include "elementary.h"

#ifdef SGLB_CLONES
#define SGLB_REGISTERS
// The compiler's own header makes undefined vectors in a way that the compiler then warns about.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

// A function that may use it, to be called where has_avx512().
#define SGLB_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

namespace sglb {

inline bool has_avx512() {
    static const bool has =
        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    return has;
}

}  // namespace sglb
#endif
