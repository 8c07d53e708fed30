/* SPDX-License-Identifier: MIT */
/* Another library ("the witness") that uses the runtime's hooks as ours does, and a look at who is in them. */
#define CAML_INTERNALS
#include "check.h"

#include <caml/minor_gc.h>
#include <caml/roots.h>
#if OCAML5
#include <caml/domain.h>
#include <stdatomic.h>
#define put(hook, f) atomic_store(&(hook), (f))
#define see(hook) atomic_load(&(hook))
#else
#define put(hook, f) ((hook) = (f))
#define see(hook) (hook)
CAMLextern void (*caml_enter_blocking_section_hook)(void);
CAMLextern void (*caml_leave_blocking_section_hook)(void);
#endif

typedef void (*function)(void);
enum { HOOKS = 6, SNAPSHOTS = 4 };
static function snapshot[SNAPSHOTS][HOOKS];

static void take(function f[HOOKS])
{
  f[0] = (function)see(caml_scan_roots_hook);
  f[1] = (function)see(caml_minor_gc_begin_hook);
  f[2] = (function)see(caml_minor_gc_end_hook);
#if OCAML5
  f[3] = (function)see(caml_domain_terminated_hook);
  f[4] = (function)see(caml_major_slice_begin_hook);
  f[5] = (function)see(caml_major_slice_end_hook);
#else
  f[3] = caml_enter_blocking_section_hook;
  f[4] = caml_leave_blocking_section_hook;
  f[5] = NULL;
#endif
}

value h_take(value i) { take(snapshot[Int_val(i)]); return Val_unit; }

/* How many hooks differ from those of snapshot i. */
value h_changed(value i)
{
  function now[HOOKS];
  int n = 0;
  take(now);
  for (int k = 0; k < HOOKS; k++) n += now[k] != snapshot[Int_val(i)][k];
  return Val_int(n);
}

/* --- the witness -------------------------------------------------------------------------------------------------- */

static long scans, begins, ends, ended_domains;
static caml_timing_hook before_begin, before_end;

static void on_begin(void) { __atomic_fetch_add(&begins, 1, __ATOMIC_RELAXED); if (before_begin) before_begin(); }
static void on_end(void) { __atomic_fetch_add(&ends, 1, __ATOMIC_RELAXED); if (before_end) before_end(); }

#if OCAML5
static scan_roots_hook before_scan;
static void on_scan(scanning_action a, scanning_action_flags f, void *d, caml_domain_state *s)
{
  __atomic_fetch_add(&scans, 1, __ATOMIC_RELAXED);
  if (before_scan) before_scan(a, f, d, s);
}
static caml_timing_hook before_domain;
static void on_domain(void)
{
  __atomic_fetch_add(&ended_domains, 1, __ATOMIC_RELAXED);
  if (before_domain) before_domain();
}
#else
static void (*before_scan)(scanning_action);
static void on_scan(scanning_action a) { scans++; if (before_scan) before_scan(a); }
static void (*before_enter)(void), (*before_leave)(void);
static void on_enter(void) { before_enter(); }
static void on_leave(void) { before_leave(); }
#endif

value h_witness_in(value unit)
{
  (void)unit;
  before_scan = see(caml_scan_roots_hook);
  before_begin = see(caml_minor_gc_begin_hook);
  before_end = see(caml_minor_gc_end_hook);
  put(caml_scan_roots_hook, on_scan);
  put(caml_minor_gc_begin_hook, on_begin);
  put(caml_minor_gc_end_hook, on_end);
#if OCAML5
  before_domain = see(caml_domain_terminated_hook);
  put(caml_domain_terminated_hook, on_domain);
#else
  before_enter = caml_enter_blocking_section_hook;
  before_leave = caml_leave_blocking_section_hook;
  caml_enter_blocking_section_hook = on_enter;
  caml_leave_blocking_section_hook = on_leave;
#endif
  return Val_unit;
}

/* The witness takes itself out in the way all such libraries do: by putting back what it found. */
value h_witness_out(value unit)
{
  (void)unit;
  put(caml_scan_roots_hook, before_scan);
  put(caml_minor_gc_begin_hook, before_begin);
  put(caml_minor_gc_end_hook, before_end);
#if OCAML5
  put(caml_domain_terminated_hook, before_domain);
#else
  caml_enter_blocking_section_hook = before_enter;
  caml_leave_blocking_section_hook = before_leave;
#endif
  return Val_unit;
}

/* (scans, minor begins, minor ends, ended domains) since the last call. */
value h_witness_saw(value unit)
{
  (void)unit;
  value t = caml_alloc_small(4, 0);
  Field(t, 0) = Val_long(scans);
  Field(t, 1) = Val_long(begins);
  Field(t, 2) = Val_long(ends);
  Field(t, 3) = Val_long(ended_domains);
  scans = begins = ends = ended_domains = 0;
  return t;
}

/* OCaml 4.14: a library that replaces the blocking-section hooks by those of snapshot i, without a thought of anybody
   else. */
value h_replace_blocking(value i)
{
#if OCAML5
  (void)i;
#else
  caml_enter_blocking_section_hook = snapshot[Int_val(i)][3];
  caml_leave_blocking_section_hook = snapshot[Int_val(i)][4];
#endif
  return Val_unit;
}

/* --- deletions between two cycles (OCaml 5) ----------------------------------------------------------------------- */

#if OCAML5
#include <caml/major_gc.h>
#include <caml/startup_aux.h>

static boxroot *doomed;
static int doomed_n;
static scan_roots_hook after_deletion;

static void *delete_doomed(void *unused)
{
  (void)unused;
  for (int i = 0; i < doomed_n; i++) boxroot_delete(doomed[i]);
  doomed_n = 0;
  return NULL;
}

/* The collector visits all roots, but not to mark them: the marks of the last cycle are void, the next one has not
   begun. */
static void delete_before_scan(scanning_action a, scanning_action_flags f, void *d, caml_domain_state *s)
{
  if (doomed_n != 0 && (f & SCANNING_ONLY_YOUNG_VALUES) == 0 && a != &caml_darken) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, delete_doomed, NULL) == 0, "thread");
    CHECK(pthread_join(thread, NULL) == 0, "join");
  }
  if (after_deletion != NULL) after_deletion(a, f, d, s);
}
#endif

/* From now on the heap is verified, or no longer, after each cycle. */
value h_verify_heap(value on)
{
#if OCAML5
  ((struct caml_params *)caml_params)->verify_heap = Bool_val(on);
#endif
  return on;
}

/* Has a thread of C delete the roots at the next scan between two cycles. */
value h_delete_between_cycles(value roots)
{
#if OCAML5
  doomed_n = (int)Wosize_val(roots);
  doomed = realloc(doomed, (size_t)doomed_n * sizeof *doomed);
  CHECK(doomed != NULL, "realloc");
  for (int i = 0; i < doomed_n; i++) doomed[i] = root_of_val(Field(roots, i));
  after_deletion = see(caml_scan_roots_hook);
  put(caml_scan_roots_hook, delete_before_scan);
#endif
  return roots;
}

/* How many of them are left. Takes the hook out. */
value h_undeleted(value unit)
{
  (void)unit;
#if OCAML5
  put(caml_scan_roots_hook, after_deletion);
  return Val_int(doomed_n);
#else
  return Val_int(0);
#endif
}

/* --- hooks that are called while the library installs and removes its own (OCaml 5) ------------------------------- */

#if OCAML5
static long turn; /* (atomic) the other library's hook of this turn is before_us[turn % 2]; -1: no more turns */
static long called[2];
static void even(scanning_action a, scanning_action_flags f, void *d, caml_domain_state *s)
{
  (void)a;
  (void)f;
  (void)d;
  (void)s;
  called[0]++;
}
static void odd(scanning_action a, scanning_action_flags f, void *d, caml_domain_state *s)
{
  (void)a;
  (void)f;
  (void)d;
  (void)s;
  called[1]++;
}
static scan_roots_hook const before_us[2] = { even, odd };
static void no_action(void *data, value v, value volatile *slot) { (void)data; (void)v; (void)slot; }

static long judged; /* (atomic) calls of our hook, while it was over the hook of the turn */

/* Calls whatever is in the scanning hook, on behalf of a domain that has no roots. */
static void *keep_calling(void *unused)
{
  static caml_domain_state nobody;
  nobody.id = 4095;
  for (long before; (before = __atomic_load_n(&turn, __ATOMIC_SEQ_CST)) >= 0;) {
    scan_roots_hook hook = see(caml_scan_roots_hook);
    called[0] = called[1] = 0;
    hook(no_action, SCANNING_ONLY_YOUNG_VALUES, NULL, &nobody);
    /* not ours, or not the same turn */
    if (hook == even || hook == odd || __atomic_load_n(&turn, __ATOMIC_SEQ_CST) != before) continue;
    __atomic_fetch_add(&judged, 1, __ATOMIC_RELAXED);
    CHECK(called[before % 2] == 1 && called[1 - before % 2] == 0,
          "turn %ld: the hook that was there before ours was called %ld times, one of the past %ld times", before,
          called[before % 2], called[1 - before % 2]);
  }
  return unused;
}
#endif

/* Tears the library down and sets it up again, each time over another hook, while another thread calls what is in
   front, until n calls have met our hook. */
value h_call_while_attaching(value n)
{
#if OCAML5
  pthread_t thread;
  boxroot_teardown();
  put(caml_scan_roots_hook, even);
  CHECK(pthread_create(&thread, NULL, keep_calling, NULL) == 0, "thread");
  for (long i = 0; __atomic_load_n(&judged, __ATOMIC_RELAXED) < Long_val(n); i++) {
    __atomic_store_n(&turn, i, __ATOMIC_SEQ_CST);
    put(caml_scan_roots_hook, before_us[i % 2]);
    CHECK(boxroot_setup(), "setup");
    for (int volatile k = 0; k < 300; k++) {} /* the other thread finds our hook */
    boxroot_teardown();
    CHECK(see(caml_scan_roots_hook) == before_us[i % 2], "the hook is not the one that was there before");
  }
  __atomic_store_n(&turn, -1, __ATOMIC_SEQ_CST);
  CHECK(pthread_join(thread, NULL) == 0, "join");
#endif
  return n;
}

/* --- collectors that are not known (OCaml 5, the library compiled with BOXROOT_CONSERVATIVE) ---------------------- */

/* A minor collection that leaves young values where they are. */
value h_scan_that_promotes_nothing(value unit)
{
#if OCAML5
  see(caml_scan_roots_hook)(no_action, SCANNING_ONLY_YOUNG_VALUES, NULL, Caml_state);
#endif
  return unit;
}

#if OCAML5
enum { READ_MOST = 5000 };
static boxroot to_be_read[READ_MOST];
static value was_read[READ_MOST];
static int readers_n, read_n;
static scan_roots_hook after_reading;

/* Other domains run already while this one still has to show its roots to the collector, as with OCaml 5.5: they take
   the values out of the roots, and delete these. */
static void read_before_scan(scanning_action a, scanning_action_flags f, void *d, caml_domain_state *s)
{
  if (readers_n != 0 && a == &caml_darken) {
    pthread_t thread;
    for (read_n = 0; read_n < readers_n; read_n++) was_read[read_n] = boxroot_get(to_be_read[read_n]);
    doomed = to_be_read;
    doomed_n = readers_n;
    readers_n = 0;
    CHECK(pthread_create(&thread, NULL, delete_doomed, NULL) == 0, "thread");
    CHECK(pthread_join(thread, NULL) == 0, "join");
  }
  if (after_reading != NULL) after_reading(a, f, d, s);
}
#endif

/* At the start of marking, the values of the roots, which are all in the major heap, are read and the roots deleted. */
value h_read_beside_the_scan(value roots)
{
#if OCAML5
  CHECK(Wosize_val(roots) <= READ_MOST, "too many");
  for (mlsize_t i = 0; i < Wosize_val(roots); i++) to_be_read[i] = root_of_val(Field(roots, i));
  readers_n = (int)Wosize_val(roots);
  after_reading = see(caml_scan_roots_hook);
  put(caml_scan_roots_hook, read_before_scan);
#endif
  return roots;
}

/* New roots for the values that were read, in place of those in the array; false as long as none were. */
value h_were_read(value roots)
{
#if OCAML5
  if (read_n == 0) return Val_false;
  for (int i = 0; i < read_n; i++) {
    boxroot r = boxroot_create(was_read[i]);
    CHECK(r != NULL, "create");
    Field(roots, i) = val_of_root(r);
  }
  read_n = 0;
  put(caml_scan_roots_hook, after_reading);
#endif
  return Val_true;
}

/* --- a domain that ends while another one has still to show its roots (OCaml 5.5) --------------------------------- */

#if OCAML5
#define IDLE 0
#define ARMED 1      /* marking has been asked for */
#define WAITING 2    /* domain 0 is where it will be asked for its roots; another one runs OCaml code already */
#define ENDED 3      /* that one has ended, for the library */
static int other_end = IDLE; /* (atomic) */
static scan_roots_hook after_waiting;
static caml_timing_hook before_other_end;

/* The collector is about to mark the roots of domain 0, in front of the library. */
static void wait_before_scan(scanning_action a, scanning_action_flags f, void *d, caml_domain_state *s)
{
  int armed = ARMED;
  if (a == &caml_darken && s->id == 0 &&
      __atomic_compare_exchange_n(&other_end, &armed, WAITING, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    struct timespec pause = { 0, 1000000 };
    while (__atomic_load_n(&other_end, __ATOMIC_SEQ_CST) == WAITING) nanosleep(&pause, NULL);
  }
  if (after_waiting != NULL) after_waiting(a, f, d, s);
}

/* A domain ends: the library is told first. */
static void on_other_end(void)
{
  int waiting = WAITING;
  if (before_other_end != NULL) before_other_end();
  __atomic_compare_exchange_n(&other_end, &waiting, ENDED, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

extern uintnat mark_phase_requested __asm__("caml_gc_mark_phase_requested") __attribute__((weak));
#endif

/* The next minor collection begins to mark, and domain 0 shows its roots only when another domain has ended. To be
   called on domain 0, at the beginning of a cycle. */
value h_mark_after_an_end(value unit)
{
#if OCAML5
  CHECK(&mark_phase_requested != NULL, "marking begins with the cycle");
  after_waiting = see(caml_scan_roots_hook);
  before_other_end = see(caml_domain_terminated_hook);
  __atomic_store_n(&other_end, ARMED, __ATOMIC_SEQ_CST);
  put(caml_scan_roots_hook, wait_before_scan);
  put(caml_domain_terminated_hook, on_other_end);
  __atomic_store_n(&mark_phase_requested, 1, __ATOMIC_RELEASE);
#endif
  return unit;
}

/* Whether domain 0 waits for that end: asked by the domain that is to end. */
value h_end_is_awaited(value unit)
{
  (void)unit;
#if OCAML5
  return Val_bool(__atomic_load_n(&other_end, __ATOMIC_SEQ_CST) == WAITING);
#else
  return Val_false;
#endif
}

/* Whether a domain ended meanwhile. Takes the hooks out. */
value h_ended_meanwhile(value unit)
{
  (void)unit;
#if OCAML5
  put(caml_scan_roots_hook, after_waiting);
  put(caml_domain_terminated_hook, before_other_end);
  return Val_bool(__atomic_exchange_n(&other_end, IDLE, __ATOMIC_SEQ_CST) == ENDED);
#else
  return Val_false;
#endif
}

/* --- deliberate changes of domain (OCaml 5, programs without systhreads) ------------------------------------------ */

/* Which of the runtime's domain records the current domain has; unlike Domain.self, records are used again. */
value h_domain_slot(value unit)
{
  (void)unit;
#if OCAML5
  return Val_int(Caml_state->id);
#else
  return Val_int(0);
#endif
}

#if OCAML5
/* Has this C thread, which holds no lock, take or leave the lock of a domain whose own thread is in a blocking
   section. */
void h_enter_domain(int id)
{
  caml_init_domain_self(id);
  caml_leave_blocking_section();
}
void h_leave_domain(void) { caml_enter_blocking_section_no_pending(); }
#endif
