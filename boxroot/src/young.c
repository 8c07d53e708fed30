/* SPDX-License-Identifier: MIT */
#include "young.h"

#if BOXROOT_CONSERVATIVE
static inline bool is_young(uintptr_t w, bxr_minor_range range) { return bxr_runtime_in_minor_range(range, w); }
#else
/* A word w holds a young block iff it is even and w - start < size. With o = (w - start) | (w - start) << 63 this is
   one signed comparison and a sign: an odd word gets the top bit (minor heaps start at even addresses), so 0 <= o <
   size says it all. */
static inline bool is_young(uintptr_t w, bxr_minor_range range)
{
  uintptr_t t = w - range.start;
  return (t | t << 63) < range.size;
}
#endif

static void scan_slots(uintptr_t *slots, uint32_t n, bxr_minor_range range, bxr_visitor const *visitor)
{
  for (uint32_t i = 0; i < n; i++)
    if (BXR_UNLIKELY(is_young(slots[i], range))) bxr_runtime_visit_young(visitor, (value)slots[i], &slots[i]);
}

#if defined(__x86_64__) && !BOXROOT_CONSERVATIVE
#include <immintrin.h>

__attribute__((target("avx2")))
static void scan_slots_avx2(uintptr_t *slots, uint32_t n, bxr_minor_range range, bxr_visitor const *visitor)
{
  __m256i start = _mm256_set1_epi64x((long long)range.start), size = _mm256_set1_epi64x((long long)range.size);
  uint32_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m256i a = _mm256_sub_epi64(_mm256_loadu_si256((__m256i const *)&slots[i]), start);
    __m256i b = _mm256_sub_epi64(_mm256_loadu_si256((__m256i const *)&slots[i + 4]), start);
    a = _mm256_or_si256(a, _mm256_slli_epi64(a, 63));
    b = _mm256_or_si256(b, _mm256_slli_epi64(b, 63));
    a = _mm256_andnot_si256(a, _mm256_cmpgt_epi64(size, a)); /* top bit: o < size and not o < 0 */
    b = _mm256_andnot_si256(b, _mm256_cmpgt_epi64(size, b));
    unsigned hits = (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(a)) |
                    (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(b)) << 4;
    for (; hits != 0; hits &= hits - 1) {
      uintptr_t *slot = &slots[i + __builtin_ctz(hits)];
      bxr_runtime_visit_young(visitor, (value)*slot, slot);
    }
  }
  scan_slots(slots + i, n - i, range, visitor);
}

void bxr_young_scan(uintptr_t *slots, uint32_t n, bxr_minor_range range, bxr_visitor const *visitor)
{
  if (__builtin_cpu_supports("avx2")) scan_slots_avx2(slots, n, range, visitor);
  else scan_slots(slots, n, range, visitor);
}
#else
void bxr_young_scan(uintptr_t *slots, uint32_t n, bxr_minor_range range, bxr_visitor const *visitor)
{
  scan_slots(slots, n, range, visitor);
}
#endif
