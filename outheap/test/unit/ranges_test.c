/* SPDX-License-Identifier: MIT */
/* The fine table: random operations against an array of bytes, readers beside a writer, failures; declared values. */
#include "base.h"
#include "os.h"
#include "outheap.h"
#include "ranges.h"
#include "settings.h"
#include "table.h"
#include "start.h"
#include "pointer.h"
#include "space.h"
#include "try.h"

#define SIZE ((size_t)3000) /* bytes under test; across the border of two chunks */
static uintptr_t window;
enum { NOTHING, VALUES, STATIC_VALUES, CODE, STATIC_CODE }; /* contents and how they were added */
static uint8_t model[SIZE];

static unsigned contents_of(uint8_t m)
{
  return m == NOTHING ? 0 : m <= STATIC_VALUES ? OH_RANGES_VALUES : OH_RANGES_CODE;
}

/* A border of chunks where nothing is mapped that is ours. */
static uintptr_t place(void) { return ((uintptr_t)OH_TABLE_ENTRIES / 8 * 7 << OH_CHUNK_LOG) - SIZE / 2; }

static void compare(size_t from, size_t to, uint8_t added)
{
  for (size_t i = 0; i < SIZE; i++) {
    unsigned is = oh_ranges_at(window + i);
    if (is == contents_of(model[i])) continue;
    /* Only a gap beside what was added may be covered too. */
    bool near = (i < from && from - i <= 64) || (i >= to && i - to < 64);
    EXPECT(model[i] == NOTHING && (added == STATIC_VALUES || added == STATIC_CODE) && near && is == contents_of(added),
           "at %zu: %u for %u; added %zu %zu", i, is, model[i], from, to);
    model[i] = added;
  }
  EXPECT(oh_ranges_at(window - 1) == 0 && oh_ranges_at(window + SIZE) == 0, "outside");
}

static void random_operations(void)
{
  uint64_t random = try_seed;
  for (int step = 0; step < (TRY_SANITIZED ? 3000 : 20000); step++) {
    size_t from = 8 * try_below(&random, SIZE / 8),
           length = 8 * (1 + try_below(&random, try_below(&random, 4) ? 10 : 100));
    size_t to = from + length > SIZE ? SIZE : from + length;
    bool code = try_below(&random, 4) == 0, strict = try_below(&random, 2), free = true, mine = true, exactly = true;
    uint8_t what = code ? strict ? CODE : STATIC_CODE : strict ? VALUES : STATIC_VALUES;
    for (size_t i = from; i < to; i++) {
      free = free && model[i] == NOTHING;
      mine = mine && (model[i] == NOTHING || contents_of(model[i]) == contents_of(what));
      exactly = exactly && model[i] == (code ? CODE : VALUES);
    }
    enum oh_ranges_contents contents = code ? OH_RANGES_CODE : OH_RANGES_VALUES;
    if (try_below(&random, 5) < 3) {
      int error = oh_ranges_add(window + from, window + to, contents, strict);
      EXPECT(error == ((strict ? free : mine) ? 0 : EINVAL), "add %zu %zu %d: %d", from, to, what, error);
      for (size_t i = from; i < to && error == 0; i++)
        if (model[i] == NOTHING) model[i] = what;
      compare(from, to, error == 0 ? what : NOTHING);
    } else {
      int error = oh_ranges_remove(window + from, window + to, contents, strict);
      EXPECT(error == (!strict || exactly ? 0 : EINVAL), "remove %zu %zu %d: %d", from, to, what, error);
      for (size_t i = from; i < to && error == 0; i++)
        if (contents_of(model[i]) == (unsigned)contents) model[i] = NOTHING;
      compare(0, 0, NOTHING);
    }
    if (step % 100 == 0) oh_ranges_validate();
  }
  EXPECT(oh_ranges_remove(window, window + SIZE, OH_RANGES_VALUES, false) == 0 &&
           oh_ranges_remove(window, window + SIZE, OH_RANGES_CODE, false) == 0,
         "remove all");
  EXPECT(oh_ranges_count() == 0, "%zu left", oh_ranges_count());
  EXPECT(oh_table_kind(window) == OH_KIND_MIXED && oh_table_kind(window + SIZE - 1) == OH_KIND_MIXED, "mixed");
}

/* Number of ranges, exactly. */
static void joining(void)
{
  uintptr_t b = window;
#define ADD(from, to, exclusive) EXPECT(oh_ranges_add(b + (from), b + (to), OH_RANGES_VALUES, exclusive) == 0, "add")
#define COUNT(n) EXPECT(oh_ranges_count() == (n), "%zu ranges", oh_ranges_count())
  ADD(0, 80, false); COUNT(1);
  ADD(144, 200, false); COUNT(1); /* a gap of 64 */
  ADD(272, 280, false); COUNT(2); /* 72 */
  ADD(344, 400, true); COUNT(3);
  ADD(408, 440, true); COUNT(4);
  ADD(400, 408, true); COUNT(3); /* touches both */
  ADD(440, 480, false); COUNT(4); /* of another sort */
  ADD(0, 480, false); COUNT(3);
  EXPECT(oh_ranges_remove(b + 100, b + 108, OH_RANGES_VALUES, false) == 0, "hole");
  COUNT(4);
  ADD(2000, 2008, false); COUNT(5); /* the hole stays */
  EXPECT(oh_ranges_at(b + 100) == 0 && oh_ranges_at(b + 99) == OH_RANGES_VALUES &&
           oh_ranges_at(b + 108) == OH_RANGES_VALUES,
         "hole");
  EXPECT(oh_ranges_remove(b, b + SIZE, OH_RANGES_VALUES, false) == 0, "all");
  COUNT(0);
}

/* The data of many compilation units, in the order of addresses: a step each. Copies of all ranges for each would take
   ten seconds and more. */
static void many(void)
{
  enum { UNITS = 60000 };
  struct timespec start, end;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
  for (uintptr_t i = 0; i < UNITS; i++)
    EXPECT(oh_ranges_add(window + i * 256, window + i * 256 + 128, OH_RANGES_VALUES, i % 2) == 0, "unit");
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
  EXPECT(seconds < (TRY_SANITIZED ? 5 : 1), "%g s", seconds);
  EXPECT(oh_ranges_count() == UNITS, "%zu ranges", oh_ranges_count());
  for (uintptr_t i = 0; i < UNITS; i += 7)
    EXPECT(oh_ranges_at(window + i * 256 + 127) == OH_RANGES_VALUES && oh_ranges_at(window + i * 256 + 128) == 0, "at");
  EXPECT(oh_ranges_remove(window, window + UNITS * 256, OH_RANGES_VALUES, false) == 0 && oh_ranges_count() == 0, "all");
}

static void bad(void)
{
  uintptr_t limit = OH_ADDRESS_LIMIT;
  EXPECT(oh_ranges_add(8, 8, OH_RANGES_CODE, true) == EINVAL && oh_ranges_add(16, 8, OH_RANGES_VALUES, true) == EINVAL,
         "empty");
  EXPECT(oh_ranges_add(0, 80, OH_RANGES_VALUES, true) == EINVAL, "nothing in front");
  EXPECT(oh_ranges_add(limit, limit + 4096, OH_RANGES_VALUES, true) == EINVAL, "beyond the table");
  EXPECT(oh_ranges_add(window, window + 8, (enum oh_ranges_contents)3, true) == EINVAL, "contents");
  EXPECT(oh_ranges_remove(window, window, OH_RANGES_VALUES, false) == EINVAL, "empty");
  EXPECT(oh_ranges_remove(window, window + 8, OH_RANGES_VALUES, true) == EINVAL, "not there");
  char *heap = oh_space_alloc(OH_SPACE_POOLS, OH_PAGE, false, NULL);
  EXPECT(heap != NULL && oh_ranges_add((uintptr_t)heap, (uintptr_t)heap + 80, OH_RANGES_VALUES, true) == EINVAL,
         "heap");
  EXPECT(outheap_declare_values(heap, heap + 80) == EINVAL && outheap_declare_values(NULL, heap) == EINVAL, "heap");
  EXPECT(outheap_declare_values((void *)8, (void *)(UINTPTR_MAX - 7)) == EINVAL &&
           outheap_declare_values((void *)window, NULL) == EINVAL,
         "everything");
  EXPECT(outheap_declare_values((void *)(window + 4), (void *)(window + 32)) == EINVAL &&
           outheap_declare_values((void *)window, (void *)(window + 33)) == EINVAL,
         "odd");
  EXPECT(oh_ranges_count() == 0, "nothing");
  oh_space_free(OH_SPACE_POOLS, heap, OH_PAGE);
}

/* Blocks with headers, and an empty one at the very end. */
static void declared(void)
{
  size_t bytes = 3 * OH_PAGE;
  char *m = outheap_allocate(OUTHEAP_FOREIGN, bytes);
  EXPECT(m != NULL && outheap_classify(m) == OUTHEAP_FOREIGN, "foreign");
  EXPECT(outheap_declare_values(m + 16, m + 96) == 0 && outheap_declare_values(m + 96, m + 160) == 0, "touching");
  EXPECT(oh_ranges_count() == 1, "joined");
  EXPECT(outheap_declare_values(m + 152, m + 200) == EINVAL && outheap_declare_values(m, m + 24) == EINVAL, "overlap");
  for (ptrdiff_t i = 0; i < 200; i++) {
    EXPECT((outheap_classify(m + i) == OUTHEAP_VALUES) == (i >= 16 && i < 160), "classify %td", i);
    EXPECT(oh_pointer_is_value((uintptr_t)m + i) == (i % 8 == 0 && i >= 24 && i <= 160), "value %td", i);
    EXPECT(!oh_pointer_is_markable((uintptr_t)m + i), "marks");
  }
  EXPECT(outheap_withdraw_values(m + 8, m + 24) == EINVAL, "not all declared");
  EXPECT(outheap_withdraw_values(m + 48, m + 64) == 0 && oh_ranges_count() == 2, "cut in two");
  EXPECT(outheap_classify(m + 48) == OUTHEAP_FOREIGN && outheap_classify(m + 47) == OUTHEAP_VALUES &&
           outheap_classify(m + 64) == OUTHEAP_VALUES,
         "cut");
  EXPECT(outheap_declare_values(m + 48, m + 64) == 0 && oh_ranges_count() == 1, "whole again");
  EXPECT(outheap_withdraw_values(m + 16, m + 160) == 0 && oh_ranges_count() == 0, "all");
  EXPECT(outheap_declare_values(m, m + bytes) == 0 && outheap_withdraw_values(m, m + bytes) == 0, "all of it");
  EXPECT(outheap_declare_values(m + 64, m + bytes) == 0 && oh_ranges_count() == 1, "again");
  outheap_free(OUTHEAP_VALUES, m, bytes);
  EXPECT(oh_ranges_count() == 1, "not freed");
  outheap_free(OUTHEAP_FOREIGN, m, bytes);
  EXPECT(oh_ranges_count() == 0, "withdrawn");
}

static void failures(void)
{
  /* More ranges than the arrays have room for; a failure changes nothing. */
  size_t many = 3000, failed = 0;
  uintptr_t b = window + (1 << 20);
  for (size_t i = 0; i < many; i++) {
    oh_os_fail_after = i % 3 != 0;
    int error = oh_ranges_add(b + 160 * i, b + 160 * i + 80, OH_RANGES_VALUES, i % 2);
    oh_os_fail_after = 0;
    EXPECT(error == 0 || error == ENOMEM, "%d", error);
    failed += error != 0;
    EXPECT(oh_ranges_at(b + 160 * i + 40) == (error == 0 ? OH_RANGES_VALUES : 0u), "at %zu", i);
    EXPECT(i == 0 || error != 0 || oh_ranges_count() + failed == i + 1, "count");
  }
  EXPECT(failed != 0, "never failed");
  EXPECT(oh_ranges_remove(b, b + 160 * many, OH_RANGES_VALUES, false) == 0 && oh_ranges_count() == 0, "%zu",
         oh_ranges_count());
}

static bool stop;
static void *reader(void *arg)
{
  uint64_t random = try_seed + (uintptr_t)arg;
  uintptr_t always = window - 4096, never = window + 70000;
  size_t rounds = 0;
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED) || rounds < 1000) {
    rounds++;
    size_t i = try_below(&random, 80);
    EXPECT(oh_ranges_at(always + i) == OH_RANGES_VALUES, "always");
    EXPECT(oh_ranges_at(never + i) == 0, "never");
    size_t k = try_below(&random, 600);
    unsigned is = oh_ranges_at(window + 96 * k + try_below(&random, 80));
    EXPECT(is == 0 || is == (k % 2 ? OH_RANGES_VALUES : OH_RANGES_CODE), "sometimes");
    EXPECT(oh_ranges_at(window + 96 * k + 80 + try_below(&random, 16)) == 0, "between");
  }
  return NULL;
}

static void readers(void)
{
  pthread_t t[3];
  uint64_t random = try_seed;
  EXPECT(oh_ranges_add(window - 4096, window - 4016, OH_RANGES_VALUES, false) == 0, "always");
  for (uintptr_t i = 0; i < 3; i++) pthread_create(&t[i], NULL, reader, (void *)i);
  for (int step = 0; step < (TRY_SANITIZED ? 2000 : 20000); step++) {
    size_t k = try_below(&random, 600);
    enum oh_ranges_contents what = k % 2 ? OH_RANGES_VALUES : OH_RANGES_CODE;
    if (try_below(&random, 2)) oh_ranges_add(window + 96 * k, window + 96 * k + 80, what, true);
    else oh_ranges_remove(window + 96 * k, window + 96 * k + 80, what, false);
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
  EXPECT(oh_ranges_remove(window - 8192, window + 96 * 600, OH_RANGES_VALUES, false) == 0, "remove");
  EXPECT(oh_ranges_remove(window - 8192, window + 96 * 600, OH_RANGES_CODE, false) == 0 && oh_ranges_count() == 0,
         "remove");
}

int main(int argc, char **argv)
{
  try_start(argc, argv);
  window = place();
  EXPECT(oh_ranges_at(window) == 0 && oh_ranges_count() == 0, "before anything");
  TRY(failures);
  oh_start();
  TRY(random_operations);
  TRY(joining);
  TRY(many);
  TRY(bad);
  TRY(declared);
  TRY(readers);
  return try_end();
}
