// AVX-512 by hand, where the compiler finds it and the processor may have it: SGLB_REGISTERS.
#pragma once

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(SGLB_BASELINE)
#define SGLB_REGISTERS
// The compiler's own header makes undefined vectors in a way that the compiler then warns about.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif
