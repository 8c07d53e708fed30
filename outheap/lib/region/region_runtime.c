/* SPDX-License-Identifier: MIT */
#include "region_runtime.h"
#include "region_addresses.h"
#include <caml/domain.h>
#include <caml/domain_state.h>
#include <caml/major_gc.h>
#include <caml/memory.h>
#include <caml/minor_gc.h>
#include <errno.h>
#include <fcntl.h>
#include <outheap.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- settings ----------------------------------------------------------------------------------------------------- */

#pragma weak outheap_setting

bool outheap_region_runtime_is_set(char const *name, char const *value)
{
  size_t length = 0, named = strlen(name);
  char const *found = NULL;
  if (outheap_setting != NULL) found = outheap_setting(name, &length);
#ifdef __linux__
  else if (getauxval(AT_SECURE) != 0) return false;
#endif
  else
    for (char const *list = getenv("OUTHEAP"); list != NULL && *list != 0; list += *list == ',') {
      size_t n = strcspn(list, ",");
      if (n > named && list[named] == '=' && memcmp(list, name, named) == 0)
        found = list + named + 1, length = n - named - 1;
      list += n;
    }
  return found != NULL && length == strlen(value) && memcmp(found, value, length) == 0;
}

/* --- the marker --------------------------------------------------------------------------------------------------- */

#pragma weak outheap_classify
#pragma weak outheap_declare_values
#pragma weak outheap_withdraw_values
#pragma weak outheap_marker_can_tell
#pragma weak outheap_marker_claim
#pragma weak outheap_marker_revoke
#pragma weak outheap_marker_met
#pragma weak outheap_marker_clear
#pragma weak outheap_marker_meet
#pragma weak outheap_marker_watch
#pragma weak outheap_marker_on_cycle
#pragma weak outheap_marker_can_track
#pragma weak outheap_marker_track
#pragma weak outheap_marker_keep
#pragma weak outheap_marker_tracked
#pragma weak outheap_marker_forget
#pragma weak outheap_marker_hasten
#pragma weak outheap_marker_untrack

#if !OUTHEAP_REGION_OCAML5
/* The page table of OCaml 4.14, where it has one. Its values of `kind`: caml/address_class.h. */
extern int caml_page_table_add(int kind, void *start, void *end) __attribute__((weak));
extern int caml_page_table_remove(int kind, void *start, void *end) __attribute__((weak));
extern int caml_page_table_lookup(void *address) __attribute__((weak));
#define STATIC_DATA 4
/* The native compiler writes this array into each program; it ends with an entry of zeroes. */
extern struct { char *begin, *end; } caml_data_segments[] __attribute__((weak));
#endif

bool outheap_region_marker_can_tell(void)
{
  return OUTHEAP_REGION_OCAML5 && outheap_marker_can_tell != NULL && outheap_marker_can_tell();
}

void outheap_region_marker_start(void (*stopped)(void), void (*running)(void))
{
  static struct outheap_marker_cycle c;
  c.cycle = stopped, c.cycled = running;
  if (outheap_region_marker_can_tell()) (void)outheap_marker_on_cycle(&c);
}

bool outheap_region_marker_declare(char *base, size_t bytes)
{
  if (OUTHEAP_REGION_OCAML5) return outheap_marker_claim == NULL || outheap_marker_claim(base, bytes);
  if (outheap_declare_values != NULL) return outheap_declare_values(base, base + bytes) == 0;
#if !OUTHEAP_REGION_OCAML5
  if (caml_page_table_add != NULL) return caml_page_table_add(STATIC_DATA, base, base + bytes) == 0;
#endif
  return true;
}

void outheap_region_marker_withdraw(char *base, size_t bytes)
{
  if (OUTHEAP_REGION_OCAML5) return; /* there a claim is for the rest of the process */
  if (outheap_withdraw_values != NULL) {
    (void)outheap_withdraw_values(base, base + bytes);
    return;
  }
#if !OUTHEAP_REGION_OCAML5
  if (caml_page_table_remove != NULL) (void)caml_page_table_remove(STATIC_DATA, base, base + bytes);
#endif
}

void outheap_region_marker_revoke(char *base, size_t bytes)
{
  if (outheap_region_marker_can_tell()) outheap_marker_revoke(base, bytes);
}

unsigned outheap_region_marker_reached(char *base, size_t bytes)
{
  return outheap_region_marker_can_tell() ? outheap_marker_met(base, bytes) : OUTHEAP_MARKER_BY_ROOT;
}

void outheap_region_marker_clear_reached(char *base, size_t bytes)
{
  if (outheap_region_marker_can_tell()) outheap_marker_clear(base, bytes);
}

void outheap_region_marker_set_reached(char *pointer)
{
  if (outheap_region_marker_can_tell()) outheap_marker_meet(pointer);
}

size_t outheap_region_marker_count_pointers(char *base, size_t bytes)
{
  return outheap_region_marker_can_tell() ? outheap_marker_watch(base, bytes) : 0;
}

bool outheap_region_marker_can_track(void)
{
  return OUTHEAP_REGION_OCAML5 && outheap_marker_can_track != NULL && outheap_marker_can_track();
}

bool outheap_region_marker_track(char *base, size_t bytes)
{
  return outheap_region_marker_can_track() && outheap_marker_track(base, bytes);
}

void outheap_region_marker_set_root(char *base, bool is_root)
{
  if (outheap_region_marker_can_track()) outheap_marker_keep(base, is_root);
}

size_t outheap_region_marker_tracked(char *base)
{
  return outheap_region_marker_can_track() ? outheap_marker_tracked(base) : 0;
}

void outheap_region_marker_forget(char *base, size_t bytes)
{
  if (outheap_region_marker_can_track()) outheap_marker_forget(base, bytes);
}

bool outheap_region_marker_hasten(char *base)
{
  return outheap_region_marker_can_track() && outheap_marker_hasten(base);
}

void outheap_region_marker_untrack(char *base)
{
  if (outheap_region_marker_can_track()) outheap_marker_untrack(base);
}

bool outheap_region_marker_is_value(uintptr_t pointer)
{
  if (outheap_classify == NULL) return true;
  enum outheap_kind k = outheap_classify((void const *)pointer);
  return k == OUTHEAP_MAJOR || k == OUTHEAP_YOUNG || k == OUTHEAP_VALUES;
}

/* A bit for each page; few are touched. */
static uint8_t cells[OUTHEAP_REGION_ADDRESSES / OUTHEAP_REGION_CELLS / 8];

/* Relaxed, both: other pages of the same byte may be noted at the same time; and whoever has an address of a cell has
   it from somebody who came to it after this. */
bool outheap_region_marker_note_cells(void const *page)
{
  uintptr_t n = (uintptr_t)page / OUTHEAP_REGION_CELLS;
  if ((uintptr_t)page >= OUTHEAP_REGION_ADDRESSES) return false;
  __atomic_fetch_or(&cells[n / 8], (uint8_t)(1u << n % 8), __ATOMIC_RELAXED);
  return true;
}

bool outheap_region_marker_has_cells(uintptr_t address)
{
  uintptr_t n = address / OUTHEAP_REGION_CELLS;
  return address < OUTHEAP_REGION_ADDRESSES && (__atomic_load_n(&cells[n / 8], __ATOMIC_RELAXED) >> n % 8 & 1) != 0;
}

/* The colour alone does not tell: blocks of regions and owned cells are black as well, and on OCaml 4.14 so are marked
   ones. */
bool outheap_region_marker_is_static(uintptr_t block, header_t h)
{
  if (!outheap_region_block_is_black(h) || outheap_region_addresses_has(block)) return false;
  if (outheap_region_marker_has_cells(block)) return false;
#if OUTHEAP_REGION_OCAML5
  return true;
#else
  if (outheap_classify != NULL) return outheap_classify((void const *)block) == OUTHEAP_VALUES;
  if (caml_page_table_lookup != NULL) return (caml_page_table_lookup((void *)block) & STATIC_DATA) != 0;
  if (caml_data_segments != NULL)
    for (size_t i = 0; caml_data_segments[i].begin != NULL; i++)
      if ((char *)block >= caml_data_segments[i].begin && (char *)block <= caml_data_segments[i].end) return true;
  return false;
#endif
}

/* --- the world stopped -------------------------------------------------------------------------------------------- */

#if OUTHEAP_REGION_OCAML5

/* The domain that asked may leave first, so this record belongs to all of them: the last one frees it. */
struct request { /* to run a function alone */
  void (*f)(void *), (*each)(void *);
  void *data;
  uint64_t *waited;
  bool done;
  int called; /* domains that have called `each` */
  int left;   /* domains that have left */
};

static void wait_a_little(int i)
{
  struct timespec little = { 0, 20000 };
  if (i < 200) sched_yield();
  else nanosleep(&little, NULL);
}

static void run_request(caml_domain_state *domain, void *data, int participating, caml_domain_state **domains)
{
  struct request *r = data;
  if (domains[0] == domain) {
    uint64_t from = outheap_region_now();
    r->f(r->data);
    *r->waited = outheap_region_now() - from;
    __atomic_store_n(&r->done, true, __ATOMIC_RELEASE); /* pairs with the acquire below: what f wrote is seen */
  }
  else
    for (int i = 0; !__atomic_load_n(&r->done, __ATOMIC_ACQUIRE); i++) wait_a_little(i);
  if (r->each != NULL) { /* `data` is the caller's, who waits too */
    r->each(r->data);
    __atomic_add_fetch(&r->called, 1, __ATOMIC_ACQ_REL);
    for (int i = 0; __atomic_load_n(&r->called, __ATOMIC_ACQUIRE) != participating; i++) wait_a_little(i);
  }
  if (__atomic_add_fetch(&r->left, 1, __ATOMIC_ACQ_REL) == participating) free(r);
}

bool outheap_region_run_alone(void (*f)(void *), void (*each)(void *), void *data, uint64_t *waited)
{
  struct request *r = calloc(1, sizeof *r);
  if (r == NULL) return false;
  *r = (struct request){ f, each, data, waited, false, 0, 0 };
  /* It fails if a collection, or somebody else's request, comes first. */
  while (!caml_try_run_on_all_domains(&run_request, r, NULL)) {}
  return true;
}

#else

bool outheap_region_run_alone(void (*f)(void *), void (*each)(void *), void *data, uint64_t *waited)
{
  uint64_t from = outheap_region_now(); /* whoever runs OCaml code holds the lock that we hold */
  f(data);
  if (each != NULL) each(data);
  *waited = outheap_region_now() - from;
  return true;
}

#endif

/* --- custom blocks ------------------------------------------------------------------------------------------------ */

/* The runtime's own types. It may have several sets of functions for one of them, so they are told by name. */
static char const *const plain[] = { "_i", "_j", "_n" };
static char const *const bigarrays[] = { "_bigarr02", "_bigarray" /* of Unix.map_file */ };

struct entry { struct entry *next; struct custom_operations const *operations; }; /* of a registered type */
static struct entry *registered; /* grows only; read without a lock */

bool outheap_region_register_custom(struct custom_operations const *operations)
{
  for (struct entry *e = __atomic_load_n(&registered, __ATOMIC_ACQUIRE); e != NULL; e = e->next)
    if (e->operations == operations) return true;
  struct entry *e = malloc(sizeof *e);
  if (e == NULL) return false;
  e->operations = operations;
  e->next = __atomic_load_n(&registered, __ATOMIC_ACQUIRE);
  while (!__atomic_compare_exchange_n(&registered, &e->next, e, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {}
  return true;
}

enum outheap_region_custom_kind outheap_region_custom_kind(struct custom_operations const *o)
{
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    if (strcmp(o->identifier, plain[i]) == 0) return OUTHEAP_REGION_CUSTOM_PLAIN;
  for (size_t i = 0; i < sizeof bigarrays / sizeof *bigarrays; i++)
    if (strcmp(o->identifier, bigarrays[i]) == 0) return OUTHEAP_REGION_CUSTOM_BIGARRAY;
  for (struct entry *e = __atomic_load_n(&registered, __ATOMIC_ACQUIRE); e != NULL; e = e->next)
    if (e->operations == o) return OUTHEAP_REGION_CUSTOM_PLAIN;
  return OUTHEAP_REGION_CUSTOM_NONE;
}

struct custom_operations const *outheap_region_custom_find(char const *identifier)
{
  for (struct entry *e = __atomic_load_n(&registered, __ATOMIC_ACQUIRE); e != NULL; e = e->next)
    if (strcmp(e->operations->identifier, identifier) == 0) return e->operations;
  struct custom_operations const *o = caml_find_custom_operations((char *)identifier);
  return o != NULL && outheap_region_custom_kind(o) != OUTHEAP_REGION_CUSTOM_NONE ? o : NULL;
}

/* --- the pace of the collector ------------------------------------------------------------------------------------ */

#if OCAML_VERSION >= 50500
/* From OCaml 5.5 on a cycle first sweeps, and then waits until the program has allocated some hundred thousand words in
   its heap; marking begins in a minor collection after that. What caml_adjust_gc_speed declares counts in proportion to
   the heap, so that a small one would wait for long, and a program that allocates nothing there for ever. So when half
   of what a cycle is run for was made since marking ran, it is asked to begin. */
#define WHOLE ((uint64_t)1 << 20)
static void begin_to_mark(size_t made, size_t most)
{
  static uint64_t since;
  if (caml_marking_started()) {
    __atomic_store_n(&since, 0, __ATOMIC_RELAXED);
    return;
  }
  uint64_t part = made >= most ? WHOLE : (uint64_t)((double)made / (double)most * (double)WHOLE) + 1;
  if (__atomic_add_fetch(&since, part, __ATOMIC_RELAXED) < WHOLE / 2) return;
  __atomic_store_n(&since, 0, __ATOMIC_RELAXED);
  atomic_store_release(&caml_gc_mark_phase_requested, 1);
  caml_request_minor_gc();
}
#endif

void outheap_region_pace(size_t made, size_t most)
{
  caml_adjust_gc_speed(made, most);
#if OCAML_VERSION >= 50500
  begin_to_mark(made, most);
#endif
}

/* --- a second process --------------------------------------------------------------------------------------------- */

#if defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#if !defined SANITIZED && (defined __x86_64__ || defined __aarch64__) /* where clone's arguments are those below */
#define OFFERED 1
#else
#define OFFERED 0
#endif

#define SHARED_BYTES OUTHEAP_REGION_SECOND_SHARED
/* The last byte of the shared page says that f returned. */
static bool *done_of(void *shared) { return (bool *)shared + SHARED_BYTES - 1; }

bool outheap_region_second_helps(void)
{
  struct stat s;
  if (!OFFERED) return false;
  /* a folder for each thread, and "." and ".."; where there is no /proc we do not know */
  return stat("/proc/self/task", &s) != 0 || s.st_nlink != 3;
}

/* In the second process, which needs the memory that the first one writes to meanwhile once more: it is the first to be
   killed, and leaves nothing for others to read. */
static void become_second(void)
{
  int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file >= 0) {
    if (write(file, "1000", 4) != 4) {}
    (void)close(file);
  }
  (void)prctl(PR_SET_NAME, (unsigned long)"outheap-copy", 0ul, 0ul, 0ul);
  (void)prctl(PR_SET_DUMPABLE, 0ul, 0ul, 0ul, 0ul); /* after that, what is in /proc/self belongs to root */
}

bool outheap_region_second_start(struct outheap_region_second *s, void (*f)(void *), void *data)
{
  sigset_t all, before;
  s->process = 0;
  s->shared = MAP_FAILED;
  if (OFFERED)
    s->shared = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (s->shared == MAP_FAILED) {
    s->shared = NULL;
    return false;
  }
  s->first = getpid();
  /* A handler may be the program's, and must not run twice. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  /* No signal at the end: neither SIGCHLD, nor a child for those who wait without __WCLONE. */
  long process = syscall(SYS_clone, (unsigned long)CLONE_FILES, 0ul, 0ul, 0ul, 0ul);
  if (process == 0) {
    become_second();
    f(data);
    __atomic_store_n(done_of(s->shared), true, __ATOMIC_RELEASE); /* pairs with the acquire in `wait` */
    _exit(0);
  }
  int e = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (process < 0) {
    outheap_region_second_end(s);
    errno = e;
    return false;
  }
  s->process = (pid_t)process;
  return true;
}

bool outheap_region_second_is_orphan(struct outheap_region_second const *s) { return getppid() != s->first; }

bool outheap_region_second_wait(struct outheap_region_second *s)
{
  int status;
  while (waitpid(s->process, &status, __WCLONE) < 0 && errno == EINTR) {}
  /* A program that waits for everything (__WALL) may have been told instead. */
  return __atomic_load_n(done_of(s->shared), __ATOMIC_ACQUIRE);
}

void outheap_region_second_end(struct outheap_region_second *s)
{
  if (s->shared != NULL) (void)munmap(s->shared, SHARED_BYTES);
  s->shared = NULL;
}

