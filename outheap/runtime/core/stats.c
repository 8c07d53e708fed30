/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "stats.h"
#include "address_space.h"
#include "block.h"
#include "clock.h"
#include "pace.h"
#include "helper.h"
#include "limit.h"
#include "minor.h"
#include "os.h"
#include "pointer.h"
#include "pool.h"
#include "proc.h"
#include "ranges.h"
#include "service.h"
#include "settings.h"
#include "space.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- counters of the marking loop --------------------------------------------------------------------------------- */

struct oh_mark_counters oh_mark_counters;

#if OH_COUNT
static void count(size_t *counter) { (void)oh_fetch_add_relaxed(counter, 1); }

void oh_mark_counters_count_word(uintptr_t v)
{
  count(&oh_mark_counters.words_seen);
  if (v & 1) count(&oh_mark_counters.words_immediate);
}

void oh_mark_counters_count_other(uintptr_t v)
{
  static _Thread_local uintptr_t recent[4096];
  if (oh_table_kind(v) == OH_KIND_YOUNG) {
    count(&oh_mark_counters.words_young);
    return;
  }
  uintptr_t line = (v - sizeof(uintptr_t)) >> 6;
  if (recent[line & 4095] != line) {
    recent[line & 4095] = line;
    count(&oh_mark_counters.lines_saved);
  }
  count(oh_pointer_is_value(v) ? &oh_mark_counters.words_static : &oh_mark_counters.words_foreign);
}
#endif

/* --- resident memory ---------------------------------------------------------------------------------------------- */

/* `Rss:    1234 kB` */
static bool has_kilobytes(char const *line, char const *name, size_t *bytes)
{
  size_t n = strlen(name);
  if (strncmp(line, name, n) != 0) return false;
  *bytes = (size_t)strtoull(line + n, NULL, 10) << 10;
  return true;
}

/* A line of smaps: the beginning of a mapping (`7f00-7f80 rw-p …`), or a property of the mapping before. */
struct count { struct oh_usage *all, *here; };
static void count_line(char *line, void *data)
{
  struct count *c = data;
  size_t bytes;
  if (has_kilobytes(line, "Rss:", &bytes)) c->here->resident += bytes;
  else if (has_kilobytes(line, "AnonHugePages:", &bytes)) c->here->huge += bytes;
  else if ((*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f')) {
    uintptr_t begin = (uintptr_t)strtoull(line, NULL, 16);
    unsigned owner = OH_IS_BEYOND(begin) ? 0 : oh_page_bits(begin) & OH_PAGE_OWNER;
    c->here = &c->all[owner == 0 ? OH_SPACES : (int)owner - 1];
  }
}

bool oh_usage_get(struct oh_usage result[OH_SPACES + 1])
{
  memset(result, 0, (OH_SPACES + 1) * sizeof *result);
  return oh_proc_mappings(count_line, &(struct count){ result, &result[OH_SPACES] });
}

/* --- all counters ------------------------------------------------------------------------------------------------- */

void oh_stats_get(struct outheap_statistics *s)
{
  struct oh_reserve_counters reserve;
  struct oh_pool_counters pool;
  struct oh_block_counters block;
  oh_reserve_count(OH_SPACES, &reserve);
  oh_pool_count(&pool);
  oh_block_count(&block);
  *s = (struct outheap_statistics){
    .chunks = reserve.chunks,
    .chunks_tainted = reserve.tainted,
    .reserved = reserve.reserved,
    .reserved_ahead = reserve.ahead,
    .resident_free = pool.resident_free + block.resident_free,
    .pools = pool.pools,
    .pool_pages = pool.pages,
    .blocks = block.blocks,
    .block_bytes = block.bytes,
    .ranges = oh_ranges_count(),
    .reservations = reserve.reservations,
    .met_unknown = oh_pointer_unknown_found(),
    .minor_grown = oh_load_relaxed(&oh_minor_counters.grown),
    .minor_shrunk = oh_load_relaxed(&oh_minor_counters.shrunk),
    .minor_refused = oh_load_relaxed(&oh_minor_counters.refused),
#define MARKING(name) .name = oh_load_relaxed(&oh_mark_counters.name)
    MARKING(words_seen),
    MARKING(words_immediate),
    MARKING(words_young),
    MARKING(words_static),
    MARKING(words_foreign),
    MARKING(lines_saved),
#undef MARKING
    .refused_zone = oh_notice_count(OH_NOTICE_ZONE),
    .refused_memory = oh_notice_count(OH_NOTICE_MEMORY),
    .refused_huge = oh_notice_count(OH_NOTICE_HUGE) + oh_notice_count(OH_NOTICE_HUGETLB),
  };
  for (int i = 0; i < OH_SPACES; i++) {
    struct oh_space_counters c;
    oh_space_count(i, &c);
    s->committed += c.committed;
    s->resident_free += c.dirty;
    s->commits += c.commits;
    s->purges += c.purges;
    s->advises += c.advises;
    if (i == OH_SPACE_YOUNG) s->young = c.committed - c.dirty;
  }
}

static size_t add(char *text, size_t used, size_t room, char const *format, ...)
{
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text + used, room - used, format, args);
  va_end(args);
  return n < 0 ? used : (size_t)n < room - used ? used + (size_t)n : room - 1;
}

/* Where they are lost, that is said once. Nothing is said of a descriptor that the program has closed: the standard
   error output may be the program's own file by then. */
static void put(int descriptor, char const *text, size_t length)
{
  static bool said;
  int why = oh_log_write(descriptor, text, length);
  if (why == 0 || why == EBADF || __atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) return;
  oh_log("OUTHEAP: statistics are lost: %s", strerror(why));
}

static size_t add_usage(char *text, size_t used, size_t room)
{
#define NAME(name, kind, thp) [OH_SPACE_##name] = #name,
  static char const *const names[OH_SPACES + 1] = { OH_SPACES_LIST(NAME)[OH_SPACES] = "REST" };
#undef NAME
  struct oh_usage usage[OH_SPACES + 1];
  if (!oh_usage_get(usage)) return used;
  for (int i = 0; i <= OH_SPACES; i++) {
    char name[16];
    size_t n = 0;
    for (; names[i][n] != 0; n++) name[n] = (char)(names[i][n] | 32); /* small letters */
    name[n] = 0;
    used = add(text, used, room, "outheap: resident.%s %zu\n", name, usage[i].resident);
    used = add(text, used, room, "outheap: huge.%s %zu\n", name, usage[i].huge);
  }
  return used;
}

void oh_stats_print(int descriptor, char const *title)
{
  char text[6000]; /* written at once, so that it stays together */
  size_t used = 0;
  struct outheap_statistics s;
  oh_stats_get(&s);
  if (title != NULL) used = add(text, used, sizeof text, "outheap: %s\n", title);
#define PRINT(name, meaning) used = add(text, used, sizeof text, "outheap: " #name " %zu\n", s.name);
  OUTHEAP_STATISTICS(PRINT)
#undef PRINT
  if (oh_settings.helper != OH_SETTINGS_HELPER_OFF) {
#define HELPER(name) \
  used = add(text, used, sizeof text, "outheap: helper." #name " %zu\n", oh_load_relaxed(&oh_helper_counters.name))
    HELPER(cycles);
    HELPER(words);
    HELPER(blocks);
    HELPER(pools);
    HELPER(swept);
    HELPER(given);
    HELPER(deferred);
    HELPER(frugal);
    HELPER(backed_off);
    HELPER(overflowed);
    HELPER(paused);
    HELPER(spans);
    HELPER(microseconds);
#undef HELPER
  }
  if (oh_settings.reclaim) {
#define MEMORY(name) \
  used = add(text, used, sizeof text, "outheap: memory." #name " %zu\n", oh_load_relaxed(&oh_pace_counters.name))
    MEMORY(cycles);
    MEMORY(compactions);
    MEMORY(refused);
    MEMORY(longest);
    MEMORY(idle);
    MEMORY(asked);
    MEMORY(purged);
#undef MEMORY
    used = add(text, used, sizeof text, "outheap: memory.live %zu\n", oh_load_relaxed(&oh_pace_heap.live));
  }
  if (oh_limit_bytes != 0) {
#define LIMIT(name) \
  used = add(text, used, sizeof text, "outheap: limit." #name " %zu\n", oh_load_relaxed(&oh_limit_counters.name))
    LIMIT(hurried);
    LIMIT(held);
    LIMIT(compacted);
    LIMIT(exceeded);
#undef LIMIT
  }
  used = add_usage(text, used, sizeof text);
  put(descriptor, text, used);
}

static size_t since(size_t const *counter, size_t *last)
{
  size_t now = oh_load_relaxed(counter), before = oh_load_relaxed(last);
  oh_store_relaxed(last, now);
  return now - before;
}

void oh_stats_slice(int descriptor)
{
  static struct oh_mark_counters last;
  size_t seen = since(&oh_mark_counters.words_seen, &last.words_seen),
         values = since(&oh_mark_counters.words_static, &last.words_static),
         foreign = since(&oh_mark_counters.words_foreign, &last.words_foreign),
         lines = since(&oh_mark_counters.lines_saved, &last.lines_saved);
  char text[128];
  if (seen == 0) return;
  put(descriptor, text, add(text, 0, sizeof text, "outheap: slice %zu %zu %zu %zu\n", seen, values, foreign, lines));
}

/* --- statistics while the program runs ---------------------------------------------------------------------------- */

static bool watching;
static bool ends; /* atomic */
static sem_t wanted;
static struct oh_clock_sleeper sleeper = { .posted = &wanted };
static uint64_t began;

static void on_signal(int number)
{
  int error = errno;
  (void)number;
  sem_post(&wanted);
  errno = error;
}

/* True: it was asked for; false: the interval is over. */
static bool wait_for_request(void)
{
  size_t every = oh_settings.stats_every;
  if (!oh_clock_sleep(&sleeper, every != 0 ? oh_clock_now() + every * 1000000000 : OH_CLOCK_NEVER)) return false;
  while (sem_trywait(&wanted) == 0) {} /* several signals, one answer */
  return true;
}

static void watch(void)
{
  for (;;) {
    char title[100];
    char const *why = wait_for_request() ? "on a signal" : "at an interval";
    if (oh_load_acquire(&ends)) break;
    snprintf(title, sizeof title, "statistics %s: process %ld, %.1f s", why, (long)getpid(),
             (double)(oh_clock_now() - began) / 1e9);
    oh_stats_print(oh_watch_output(), title);
  }
  oh_clock_leave(&sleeper);
}

static struct oh_service service = OH_SERVICE("outheap-stats", watch);

static void start_thread(void)
{
  bool done = sem_init(&wanted, 0, 0) == 0;
  oh_clock_enter(&sleeper);
  if (done && oh_service_start(&service)) return;
  oh_clock_leave(&sleeper);
  oh_log("OUTHEAP: no thread for statistics");
}

static void ask_to_end(void)
{
  if (!watching) return;
  watching = false;
  oh_store_release(&ends, true);
  sem_post(&wanted);
}

void oh_watch_stop(void) { oh_service_end(&service, ask_to_end); }

/* Where statistics go. A program may close all descriptors, as daemons do, and get the same number for a file of its
   own: so it is told by its file, too. `opens` is set by the thread that opens the file again; a child that is made
   meanwhile finds at worst a number that is not of that file. */
static struct {
  int descriptor;
  bool known; /* the next two are set */
  dev_t device;
  ino_t number;
  char name[PATH_MAX + sizeof oh_settings.stats_to]; /* of the file, from the root on; empty: it has none */
} output = { .descriptor = STDERR_FILENO };
static bool opens;

static bool is_output(int descriptor)
{
  struct stat s;
  return fstat(descriptor, &s) == 0 && s.st_dev == output.device && s.st_ino == output.number;
}

static bool set_output(int descriptor)
{
  struct stat s;
  if (fstat(descriptor, &s) != 0) return false;
  output.device = s.st_dev;
  output.number = s.st_ino;
  output.known = true;
  oh_store_relaxed(&output.descriptor, descriptor);
  return true;
}

/* Nobody waits for a reader of a pipe. The number is none of the standard ones, which the program may have closed: what
   is written there by anyone is not for this file. */
static bool open_file(char const *name)
{
  int file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  if (file < 0) return false;
#ifdef F_DUPFD_CLOEXEC
  if (file <= STDERR_FILENO) {
    int other = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(file);
    file = other;
  }
#endif
  if (file >= 0 && fcntl(file, F_SETFL, O_APPEND) != -1 && set_output(file)) return true;
  int error = errno;
  if (file >= 0) close(file);
  errno = error;
  return false;
}

/* A relative name is of the folder in which the program starts. */
static void keep_name(char const *name)
{
  size_t length = 0;
  if (*name != '/') {
    if (getcwd(output.name, PATH_MAX) == NULL) {
      output.name[0] = 0;
      return;
    }
    length = strlen(output.name);
    output.name[length++] = '/';
  }
  strcpy(output.name + length, name);
}

static void open_output(char const *name)
{
  if (strncmp(name, "fd:", 3) == 0) {
    char *end;
    long n = strtol(name + 3, &end, 10);
    bool good = name[3] >= '0' && name[3] <= '9' && *end == 0 && n <= INT_MAX && set_output((int)n);
    if (!good) oh_log("OUTHEAP: no descriptor for statistics: %s", name);
    return;
  }
  if (open_file(name)) keep_name(name);
  else oh_log("OUTHEAP: %s cannot be written: %s", name, errno == ENXIO ? "nobody reads it" : strerror(errno));
}

void oh_watch_start(void)
{
  began = oh_clock_now();
  if (oh_settings.stats_to[0] != 0) open_output(oh_settings.stats_to);
  watching = oh_settings.stats_signal != 0 || oh_settings.stats_every != 0;
  if (!watching) return;
  start_thread();
  if (oh_settings.stats_signal != 0) {
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK };
    sigemptyset(&action.sa_mask);
    if (sigaction(oh_settings.stats_signal, &action, NULL) != 0)
      oh_log("OUTHEAP: signal %d cannot be used for statistics", oh_settings.stats_signal);
  }
}

/* The descriptor that is not ours any more is left as it is. One thread opens the file again; what others have to say
   meanwhile is lost. */
int oh_watch_output(void)
{
  int descriptor = oh_load_relaxed(&output.descriptor), error = errno;
  if (!output.known || is_output(descriptor)) {
    errno = error;
    return descriptor;
  }
  if (output.name[0] == 0 || __atomic_exchange_n(&opens, true, __ATOMIC_ACQUIRE)) descriptor = -1;
  else {
    descriptor = open_file(output.name) ? output.descriptor : -1;
    __atomic_store_n(&opens, false, __ATOMIC_RELEASE);
  }
  errno = error;
  return descriptor;
}

void oh_watch_forked(void)
{
  __atomic_store_n(&opens, false, __ATOMIC_RELAXED);
  (void)oh_service_forget(&service);
  if (watching) start_thread();
}
