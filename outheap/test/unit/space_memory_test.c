/* SPDX-License-Identifier: MIT */
/* Memory of spaces: where it grows, when free memory is purged, what is found when the system refuses more. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "os.h"
#include "address_space.h"
#include "settings.h"
#include "space.h"
#include "space_memory.h"
#include "start.h"
#include "try_page.h"
#include <fcntl.h>
#include <sched.h>

/* Growth continues where the space ends, and counts what is free there. */
static void contiguous(void)
{
  struct oh_space_counters c;
  oh_start();
  if (!oh_zone_usable()) return;
  char *p = oh_space_alloc(OH_SPACE_YOUNG, OH_CHUNK / 2, false, NULL),
       *q = oh_space_alloc(OH_SPACE_YOUNG, OH_CHUNK + OH_CHUNK / 2, false, NULL);
  oh_space_count(OH_SPACE_YOUNG, &c);
  EXPECT(p != NULL && q == p + OH_CHUNK / 2 && c.reserved == 2 * OH_CHUNK && c.reservations == 2, "%p %p %zx",
         (void *)p, (void *)q, c.reserved);
  oh_space_free(OH_SPACE_YOUNG, p, OH_CHUNK / 2);
  oh_space_free(OH_SPACE_YOUNG, q, OH_CHUNK + OH_CHUNK / 2);
}

static size_t dirty_pages(void)
{
  struct oh_space_counters c;
  oh_space_count(OH_SPACE_MARKED, &c);
  return c.dirty / OH_PAGE;
}
static size_t discards(void)
{
  struct oh_space_counters c;
  oh_space_count(OH_SPACE_MARKED, &c);
  return c.purges;
}
static void take_pages(char **p, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    EXPECT((p[i] = oh_space_alloc(OH_SPACE_MARKED, OH_PAGE, true, NULL)) != NULL, "take");
    stamp(p[i], 1);
  }
}
static void give_pages(char **p, size_t n)
{
  for (size_t i = 0; i < n; i++) oh_space_free(OH_SPACE_MARKED, p[i], OH_PAGE);
}

/* Free memory grows up to what is in use, or the allowance if that is more, and falls to three quarters of it, the
   highest addresses first. */
static void fall(struct oh_settings_free kept, size_t least_cuts)
{
  size_t keep = kept.keep / OH_PAGE, n = 6 * oh_settings.small.keep / OH_PAGE;
  char *p[400];
  EXPECT(n <= 400, "%zu pages", n);
  oh_space_trim(OH_SPACE_MARKED);
  take_pages(p, n);
  size_t expected = 0, cuts = 0;
  for (size_t i = 0; i < n; i++) {
    oh_space_free(OH_SPACE_MARKED, p[i], OH_PAGE);
    size_t most = (n - i - 1) * OH_PAGE / 100 * kept.slack;
    if (most < kept.keep) most = kept.keep;
    if (++expected * OH_PAGE > most) {
      expected -= (expected * OH_PAGE - (most - most / 4) + OH_PAGE - 1) / OH_PAGE;
      EXPECT(p[i] < p[0] || is_zero(p[i]), "lower addresses first");
      cuts++;
    }
    EXPECT(dirty_pages() == expected, "%zu pages given: %zu dirty, expected %zu", i + 1, dirty_pages(), expected);
  }
  EXPECT(cuts >= least_cuts && expected <= keep, "%zu cuts", cuts);
}
static void hysteresis(void) { fall(oh_settings.small, 3); }

/* Where there are huge pages, less is kept. */
static void huge(void)
{
  struct oh_space_state *s = &oh_space_states[OH_SPACE_MARKED];
  bool before = s->granted;
  struct oh_settings_free old = oh_settings.huge;
  EXPECT(old.keep == 4 << 20 || old.keep == oh_settings.small.keep, "%zu", old.keep);
  s->granted = true;
  oh_settings.huge = (struct oh_settings_free){ oh_settings.small.keep / 4, 5, 10 };
  fall(oh_settings.huge, 10);
  oh_settings.huge = old;
  s->granted = before;
}

static size_t split_pages(void) { return oh_space_split(OH_SPACE_MARKED) / OH_PAGE; }

static void unite_all(struct oh_space_state *s)
{
  pthread_mutex_lock(&s->lock);
  for (struct oh_space_state_piece *p = s->pieces; p != NULL; p = p->next)
    oh_space_memory_unite(s, p->piece.base, p->piece.base + p->piece.bytes, true);
  pthread_mutex_unlock(&s->lock);
}

/* Pages that are purged in part are split, a limited number of them, until they are united or allocated again. */
static void split(void)
{
  enum { N = 40 };
  struct oh_space_state *s = &oh_space_states[OH_SPACE_MARKED];
  bool before = s->granted, huge = s->huge;
  size_t most = OH_SPACE_MEMORY_SPLIT_MOST / OH_PAGE, wanted = most < N ? most : N, half = OH_PAGE / 2;
  char *p[N];
  s->granted = s->huge = true;
  take_pages(p, N);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < N; i++) memset(p[i], 1, OH_PAGE);
    oh_space_purge(OH_SPACE_MARKED, p[0], OH_PAGE);
    EXPECT(split_pages() == 0, "the whole of a page");
    for (int i = 0; i < N; i++)
      for (int k = 0; k < 2; k++) oh_space_purge(OH_SPACE_MARKED, p[i] + half, OH_PAGE / 4);
    oh_space_validate();
    if (split_pages() == 0) break; /* the system does not know it */
    EXPECT(split_pages() == wanted, "%zu", split_pages());
    for (int i = 1; i < N; i++) EXPECT(p[i][0] == 1 && p[i][half - 1] == 1 && p[i][half] == 0, "page %d", i);
    if (round == 0)
      for (int i = 0; i < N; i++) oh_space_unite(OH_SPACE_MARKED, p[i], OH_PAGE);
    else {
      give_pages(p, N);
      EXPECT(split_pages() == wanted, "%zu", split_pages());
      if (round == 2) oh_space_trim(OH_SPACE_MARKED);
      take_pages(p, N);
      for (int i = 0; i < N; i++) EXPECT((oh_page_bits((uintptr_t)p[i]) & OH_PAGE_SPLIT) == 0, "page %d", i);
      unite_all(s); /* others, perhaps */
    }
    oh_space_validate();
    EXPECT(split_pages() == 0, "%zu", split_pages());
  }
  give_pages(p, N);
  s->granted = before;
  s->huge = huge;
}

/* What turns over stays; what has not been needed for an epoch goes back, but for the allowance. */
static void epochs(void)
{
  size_t keep = oh_settings.small.keep / OH_PAGE, base = 8 * keep, turn = 3 * keep;
  char *p[200], *q[100];
  EXPECT(base <= 200 && turn <= 100, "%zu pages", base);
  oh_space_trim(OH_SPACE_MARKED);
  take_pages(p, base);
  take_pages(q, turn);
  for (size_t round = 0, before = 0; round < 20; round++) {
    give_pages(q, turn);
    if (round == 0) before = discards();
    take_pages(q, turn);
    EXPECT(discards() == before && dirty_pages() == 0, "round %zu: given back and taken again", round);
  }
  give_pages(q, turn);
  EXPECT(dirty_pages() == turn, "%zu", dirty_pages());
  /* Two epochs at most, one page at a time: the first may have begun before. */
  for (size_t i = 0; i < 2 * (base + 1); i++) {
    take_pages(q, 1);
    give_pages(q, 1);
  }
  EXPECT(dirty_pages() <= keep + 1, "%zu pages are kept that nobody needed", dirty_pages());
  give_pages(p, base);
}

/* While memory is given back by oh_space_trim other threads allocate and free. */
static int trims_beside;
static void *take_and_give(void *unused)
{
  char *p[4];
  take_pages(p, 4);
  for (int i = 0; i < 4; i++) EXPECT(has(p[i], 1), "contents");
  give_pages(p, 4);
  oh_space_validate();
  return unused;
}
static void beside(void)
{
  pthread_t t;
  oh_os_purging = NULL;
  EXPECT(pthread_create(&t, NULL, take_and_give, NULL) == 0, "thread");
  EXPECT(pthread_join(t, NULL) == 0, "thread"); /* it would wait for ever for a lock that is held */
  oh_os_purging = ++trims_beside < 3 ? beside : NULL;
}
static void trim_beside_others(void)
{
  enum { COUNT = 100 };
  char *p[COUNT];
  size_t keep = oh_settings.small.keep;
  oh_settings.small.keep = COUNT * OH_PAGE;
  take_pages(p, COUNT);
  for (size_t i = 0; i < COUNT; i++)
    if (i % 10 != 0) oh_space_free(OH_SPACE_MARKED, p[i], OH_PAGE);
  EXPECT(dirty_pages() >= 90, "%zu", dirty_pages());
  oh_os_purging = beside;
  size_t bytes = oh_space_trim(OH_SPACE_MARKED);
  oh_os_purging = NULL;
  EXPECT(trims_beside == 3 && bytes >= 90 * OH_PAGE - 4 * OH_PAGE, "%d, %zu pages", trims_beside, bytes / OH_PAGE);
  oh_space_validate();
  for (size_t i = 0; i < COUNT; i += 10) {
    EXPECT(has(p[i], 1), "contents");
    oh_space_free(OH_SPACE_MARKED, p[i], OH_PAGE);
  }
  oh_space_trim(OH_SPACE_MARKED);
  EXPECT(dirty_pages() == 0, "%zu", dirty_pages());
  oh_settings.small.keep = keep;
}

/* What oh_space_trim holds just now is waited for, when there is nothing else. */
static pthread_t waiting;
static int state = -1; /* the file that says what that thread does; -1: it has not begun. Atomic */
static void *take_one(void *unused)
{
  (void)unused;
  int fd = open("/proc/thread-self/stat", O_RDONLY | O_CLOEXEC);
  EXPECT(fd >= 0, "%d", errno);
  __atomic_store_n(&state, fd, __ATOMIC_SEQ_CST);
  return oh_space_alloc(OH_SPACE_MARKED, 8 * OH_PAGE, true, NULL);
}
static void start_waiting(void)
{
  oh_os_purging = NULL;
  oh_os_fail_after = -1;
  EXPECT(pthread_create(&waiting, NULL, take_one, NULL) == 0, "thread");
  /* By pread: stdio keeps what it has read once, also across rewind, so a thread that ran at the first look would run
     for ever. */
  for (char is = 0, text[64]; is != 'S'; sched_yield()) {
    int fd = __atomic_load_n(&state, __ATOMIC_SEQ_CST);
    if (fd < 0) continue;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    EXPECT(n > 0, "it did not wait");
    text[n] = '\0';
    EXPECT(sscanf(text, "%*d (%*[^)]) %c", &is) == 1, "%s", text);
  }
  close(state);
}
static void held_by_trim(void)
{
  oh_space_trim(OH_SPACE_MARKED);
  char *p = oh_space_alloc(OH_SPACE_MARKED, 8 * OH_PAGE, true, NULL);
  void *q;
  oh_space_free(OH_SPACE_MARKED, p, 8 * OH_PAGE);
  EXPECT(dirty_pages() == 8, "%zu", dirty_pages());
  oh_os_purging = start_waiting;
  oh_space_trim(OH_SPACE_MARKED);
  EXPECT(pthread_join(waiting, &q) == 0 && q != NULL, "not waited for");
  oh_os_fail_after = 0;
  oh_space_free(OH_SPACE_MARKED, q, 8 * OH_PAGE);
  oh_space_validate();
}

/* A fork that begins to wait during a step comes in after it, however many are left. Its child tells how many were
   done. */
static unsigned steps_done;
static int steps_before;
static void *fork_beside(void *unused)
{
  pid_t child = fork();
  if (child == 0) _exit((int)steps_done);
  EXPECT(child > 0 && waitpid(child, &steps_before, 0) == child && WIFEXITED(steps_before), "%x", steps_before);
  return unused;
}
static void wait_beside(void)
{
  if (steps_done++ != 0) return;
  EXPECT(pthread_create(&waiting, NULL, fork_beside, NULL) == 0, "thread");
  while (oh_load_relaxed(&oh_space_states[OH_SPACE_MARKED].waiting) == 0) sched_yield();
}
static bool ends;
static void end_it(void) { ends = true; }
static void steps_of_trim(void)
{
  enum { PAGES = 64 };
  size_t keep = oh_settings.small.keep;
  oh_settings.small.keep = PAGES * OH_PAGE;
  for (int i = 0; i < 2; i++) {
    char *p = oh_space_alloc(OH_SPACE_MARKED, PAGES * OH_PAGE, true, NULL);
    EXPECT(p != NULL, "take");
    oh_space_free(OH_SPACE_MARKED, p, PAGES * OH_PAGE);
    size_t dirty = dirty_pages();
    oh_os_purging = i == 0 ? wait_beside : end_it;
    if (i == 1) oh_space_ends = &ends;
    size_t bytes = oh_space_trim(OH_SPACE_MARKED);
    oh_os_purging = NULL;
    oh_space_ends = NULL;
    if (i == 0)
      EXPECT(pthread_join(waiting, NULL) == 0 && WEXITSTATUS(steps_before) == 1 && steps_done > 4, "%x of %u",
             steps_before, steps_done);
    if (i == 1) EXPECT(bytes != 0 && bytes < dirty * OH_PAGE / 4, "it ends after a step: %zu of %zu", bytes, dirty);
  }
  oh_space_trim(OH_SPACE_MARKED);
  EXPECT(dirty_pages() == 0, "the rest");
  oh_settings.small.keep = keep;
}

/* Who waits while another thread forks is not in the child. */
static void nobody_waits_in_a_child(void)
{
  int status;
  oh_store_relaxed(&oh_space_states[OH_SPACE_MARKED].waiting, (size_t)1);
  pid_t child = fork();
  if (child == 0) _exit(oh_space_states[OH_SPACE_MARKED].waiting == 0 ? 0 : 1);
  oh_store_relaxed(&oh_space_states[OH_SPACE_MARKED].waiting, (size_t)0);
  EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "%x", status);
}

/* When nothing can be made accessible any more, what is accessible and free is found, though it is not the best fit. */
static void last_resort(void)
{
  size_t sizes[] = { 2, 1, 4, 1 };
  char *p[4];
  for (int i = 0; i < 4; i++)
    EXPECT((p[i] = oh_space_alloc(OH_SPACE_VALUES, sizes[i] * OH_PAGE, i != 0, NULL)) != NULL, "take");
  oh_space_free(OH_SPACE_VALUES, p[0], 2 * OH_PAGE);
  oh_space_free(OH_SPACE_VALUES, p[2], 4 * OH_PAGE);
  oh_os_fail_after = -1;
  char *q = oh_space_alloc(OH_SPACE_VALUES, 2 * OH_PAGE, true, NULL),
       *none = oh_space_alloc(OH_SPACE_VALUES, 3 * OH_CHUNK, true, NULL);
  oh_os_fail_after = 0;
  EXPECT(q == p[2] && none == NULL, "%p", (void *)q);
  oh_space_free(OH_SPACE_VALUES, q, 2 * OH_PAGE);
  oh_space_free(OH_SPACE_VALUES, p[1], OH_PAGE);
  oh_space_free(OH_SPACE_VALUES, p[3], OH_PAGE);
}

/* One after the other, every request to the system fails; then all. */
static bool scenario(void)
{
  bool complete = true;
  char *held[OH_SPACES][6] = { 0 };
  size_t pages[6] = { 1, 3, 2, OH_PAGES_PER_CHUNK, 1, 2 * OH_PAGES_PER_CHUNK + 1 };
  for (int id = 0; id < OH_SPACES; id++)
    for (int i = 0; i < 6; i++) {
      errno = 0;
      held[id][i] = oh_space_alloc(id, pages[i] * OH_PAGE, i != 3, NULL);
      EXPECT(held[id][i] != NULL || errno == ENOMEM, "%d", errno);
      complete = complete && held[id][i] != NULL;
      if (held[id][i] != NULL && i != 3) stamp(held[id][i], 7);
    }
  complete = oh_reserve_ahead(2 * OH_CHUNK) == 0 && complete;
  for (int id = 0; id < OH_SPACES; id++) {
    if (held[id][3] != NULL && oh_space_commit(id, held[id][3], 2 * OH_PAGE)) {
      stamp(held[id][3], 7);
      oh_space_purge(id, held[id][3], OH_PAGE);
      EXPECT(is_zero(held[id][3]), "purged");
      stamp(held[id][3], 7);
    } else complete = false;
    for (int i = 0; i < 6; i++) {
      if (held[id][i] == NULL) continue;
      EXPECT(i == 3 || has(held[id][i], 7), "contents");
      oh_space_free(id, held[id][i], pages[i] * OH_PAGE);
    }
    oh_space_trim(id);
  }
  return complete;
}

static void failures(void)
{
  long n = -1;
  for (;; n++) {
    if (n == 0) continue;
    pid_t child = fork(); /* so that also the very first requests fail */
    if (child == 0) {
      oh_os_fail_after = n;
      oh_start();
      bool complete = scenario(), reached = oh_os_fail_after <= 0;
      oh_os_fail_after = 0;
      oh_space_validate();
      EXPECT(scenario(), "not well again after %ld", n);
      oh_space_validate();
      if (!reached && !complete) _exit(3);
      _exit(reached ? 0 : 2);
    }
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
             (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2),
           "n = %ld: %x", n, status);
    if (WEXITSTATUS(status) == 2) break;
  }
  printf("    %ld requests\n", n);
}

#if OH_DEBUG
/* The lock is missing. */
static void age_unlocked(void) { (void)oh_space_memory_age(&oh_space_states[OH_SPACE_MARKED]); }
static void misuse(void) { EXPECT(try_aborts(age_unlocked), "not detected"); }
#endif

int main(int argc, char **argv)
{
  try_start(argc, argv);
  try_small_allowance();
  TRY(failures); /* first: nothing has begun yet */
  oh_start();
  TRY(contiguous);
  TRY(hysteresis);
  TRY(huge);
  TRY(split);
  TRY(epochs);
  TRY(trim_beside_others);
  TRY(held_by_trim);
  if (!OH_SBRK) TRY(steps_of_trim);
  TRY(nobody_waits_in_a_child);
  TRY(last_resort);
#if OH_DEBUG
  TRY(misuse);
#endif
  return try_end();
}
