/* SPDX-License-Identifier: MIT */
/* OCaml 5: the hooks, which domain this is, and the threads of domains that end. docs/reference/versions.md lists what
   is relied upon, in which version. */
#include "../runtime.h"
#if BXR_OCAML5
#include "../os.h"
#include "ocaml5_marker.h"
#include <caml/misc.h>
#include <caml/roots.h>
#include <pthread.h>
#include <signal.h>
#if !BOXROOT_CONSERVATIVE
#include <caml/major_gc.h>
#include <caml/minor_gc.h>
#endif

#if defined(Max_domains_max)
_Static_assert(Max_domains_max <= BXR_MAX_DOMAINS, "a record for each identity of a domain");
#elif defined(Max_domains)
_Static_assert(Max_domains <= BXR_MAX_DOMAINS, "a record for each identity of a domain");
#else
#error "This version of OCaml does not tell how many domains there can be"
#endif

unsigned bxr_runtime_domain(void) { return (unsigned)bxr_runtime_state()->id; }
uint64_t bxr_runtime_domain_number(void) { return (uint64_t)bxr_runtime_state()->unique_id + 1; }
bool bxr_runtime_is_only_domain(void) { return caml_domain_alone(); }
bool bxr_runtime_is_terminating(void) { return caml_domain_is_terminating() && !caml_domain_alone(); }
void bxr_runtime_check_lock(void) {}
bool bxr_runtime_may_end_unseen(void) { return false; }

void bxr_runtime_visit(bxr_visitor const *visitor, value v, uintptr_t *slot)
{
  ((scanning_action)visitor->action)(visitor->data, v, (volatile value *)slot);
}

/* --- the version of the runtime ----------------------------------------------------------------------------------- */

/* The runtime does not say its version. A release brought each of these names, in files that every program links. */
#define RUNTIME_NAME(name) __asm__(BXR_STRING(__USER_LABEL_PREFIX__) name) __attribute__((weak))
extern int since_5_3 RUNTIME_NAME("caml_enter_global_barrier"); /* 5.1 has it not; of 5.2 it is not known */
extern int since_5_4 RUNTIME_NAME("caml_stat_memdup");
extern int since_5_5 RUNTIME_NAME("caml_stat_calloc");

/* `there` says whether the runtime has a name that versions up to `without` have not, and those from `with` on have. */
static bool fits(bool there, int without, int with) { return there ? OCAML_VERSION > without : OCAML_VERSION < with; }

bool bxr_runtime_is_ours(void)
{
  return OCAML_VERSION >= 50600 || (fits(&since_5_3 != NULL, 50199, 50300) && fits(&since_5_4 != NULL, 50399, 50400) &&
                                    fits(&since_5_5 != NULL, 50499, 50500));
}

/* --- the thread of a domain that ends ----------------------------------------------------------------------------- */

/* The runtime releases the domain lock at the end of a domain, but leaves
   Caml_state set on its thread: destructors of thread-local data would run with the state of no domain, or of the next
   domain that gets the same record. So this thread resets it before other destructors run.

   The hook that arranges this is in place before OCaml starts, if the library is in the program then. A library that
   is loaded later puts it in place at its first use; a domain that ended before leaves a *stray*: a thread that takes
   itself for one of the domain that has its record now. Slow paths recognise a stray by what the runtime takes away
   from its threads at their end; a thread that came after the hook is none. They leave its pointer alone: another
   library may have taken the same from a thread that holds the lock. Inline paths cannot ask, so a domain whose record
   was used before keeps its pools closed for them while there may be strays (bxr_runtime_strays_here). */

/* With glibc, destructors registered by __cxa_thread_atexit_impl (as those of C++ and Rust are) run before those of
   POSIX keys, and the last registered first. Elsewhere a POSIX key is used, whose destructor usually runs before those
   of keys that are made later; and slow paths find out by themselves (bxr_runtime_self). */
extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));
static pthread_key_t end_of_thread;
static bool have_key;
BXR_INTERNAL_DATA_HERE BXR_THREAD_LOCAL bool bxr_runtime_terminating BXR_TLS_MODEL;
static BXR_THREAD_LOCAL int terminating_id BXR_TLS_MODEL; /* unique_id of the domain that this thread ends */

/* A watch begins when the hook is put in place and ends when it is removed. Watches are numbered from 1. */
static unsigned watch, watches; /* the present watch, or 0 (atomic); how many there were */
enum { MOST_OLD = 4096 };
static long old_threads[MOST_OLD]; /* the threads that there were when it began (atomic), */
static unsigned old_thread_count;  /* and how many; more than MOST_OLD: all may be (atomic) */
static bool strays = true; /* a thread may be running, for all we know, whose domain ended outside a watch (atomic) */
static BXR_THREAD_LOCAL unsigned seen BXR_TLS_MODEL; /* the watch in which this thread was found with a domain */

static void reset_caml_state(void *unused)
{
  (void)unused;
#if defined(HAS_FULL_THREAD_VARIABLES)
  caml_state = NULL;
#endif
}

/* reset_caml_state as soon as the library is used; NULL until then: see when_loaded (atomic). */
static void (*volatile reset_if_used)(void *);

static void leave_domain(void *unused)
{
  void (*reset)(void *) = bxr_load_relaxed(&reset_if_used);
  if (reset != NULL) reset(unused);
}

static void forget_domain_at_exit(void)
{
  if (__cxa_thread_atexit_impl != NULL && __cxa_thread_atexit_impl(leave_domain, NULL, &__dso_handle) == 0) return;
  if (have_key) (void)pthread_setspecific(end_of_thread, &bxr_runtime_terminating);
}

/* The thread still has the lock as long as `self` is the same domain, and has not ended. */
static __attribute__((noinline)) void *self_if_current(void *self)
{
  if (((caml_domain_state *)self)->unique_id == terminating_id && caml_domain_is_terminating()) return self;
  reset_caml_state(NULL);
  return NULL;
}

/* The runtime's backup thread acts for a domain that waits outside OCaml, and can run finalisers. It is the one that
   gets no signals, not even those of its own faults; but up to OCaml 5.2 the threads of ended domains may get none
   either. Then such a thread counts as one without the lock. */
#define BACKUP_IS_KNOWN (OCAML_VERSION >= 50300)
static bool is_backup_thread(void)
{
  sigset_t blocked;
  return pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && sigismember(&blocked, SIGSEGV) == 1 &&
         sigismember(&blocked, SIGINT) == 1 && sigismember(&blocked, SIGTERM) == 1;
}

/* Whether OCaml code has called this thread's C code in the current domain. */
static bool has_frames(caml_domain_state *state)
{
#if BOXROOT_CONSERVATIVE
  (void)state;
  return false;
#else
  return state->c_stack != NULL && bxr_thread_stack_has(state->c_stack) == BXR_THREAD_YES;
#endif
}

/* True unless this thread began after the present watch. */
static bool is_old_thread(void)
{
  unsigned n = bxr_load_acquire(&watch) == 0 ? MOST_OLD + 1 : bxr_load_relaxed(&old_thread_count);
  if (n > MOST_OLD) return true;
  long id = bxr_thread_id();
  for (unsigned i = 0; i < n; i++)
    if (bxr_load_relaxed(&old_threads[i]) == id) return true;
  return false;
}

/* A domain's own thread has an alternate stack for signals, which the runtime takes away when the domain has ended; so
   have the other threads of OCaml, unless another library takes it away. An old thread without it can be that of an
   ended domain. Domain 0 does not end. */
static bool may_have_left(caml_domain_state *state)
{
  stack_t s;
  return state->id != 0 && sigaltstack(NULL, &s) == 0 && (s.ss_flags & SS_DISABLE) != 0 && !has_frames(state) &&
         is_old_thread();
}

/* A domain that is about to end may have passed the point where it would have called the hook, so its thread is asked
   each time. */
static __attribute__((noinline)) void *self_unless_stray(void *self)
{
  unsigned now = bxr_load_relaxed(&watch);
  if (now != 0 && seen == now) return self;
  if (may_have_left(self) && (!BACKUP_IS_KNOWN || !is_backup_thread())) return NULL;
  if (now != 0 && !caml_domain_is_terminating()) seen = now;
  return self;
}

void *bxr_runtime_self(void)
{
  void *self = bxr_self();
  if (self == NULL) return NULL;
  if (BXR_UNLIKELY(bxr_runtime_end_reached())) {
    reset_caml_state(NULL);
#if BOXROOT_THREAD_UNSAFE
    bxr_only_domain = NULL;
#endif
    return NULL;
  }
  if (BXR_UNLIKELY(bxr_load_relaxed(&strays)) && !bxr_runtime_terminating) return self_unless_stray(self);
  return BXR_LIKELY(!bxr_runtime_terminating) ? self : self_if_current(self);
}

/* To be called before the first use of what follows. */
static void prepare_for_ends(void)
{
  if (!have_key) have_key = pthread_key_create(&end_of_thread, leave_domain) == 0;
}

/* The library is being unloaded. */
static void forget_ends(void)
{
  if (have_key && bxr_object_is_unloading()) (void)pthread_key_delete(end_of_thread);
}

/* Each domain that runs has two threads, its own and the runtime's "backup" thread, but for domain 0 until it starts
   another. So has a domain that ran OCaml code; one that is being started may be without the second for a moment, but
   where this is the only domain, or the only one beside domain 0, there is none of these. */
static bool there_may_be_strays(void)
{
#if BOXROOT_CONSERVATIVE
  unsigned long running = bxr_runtime_is_only_domain() ? 1 : 0; /* 0: not known */
#else
  unsigned long running = (unsigned long)caml_num_domains_running;
#endif
  unsigned long threads = bxr_thread_count();
  bool settled = running == 1 || (running == 2 && bxr_runtime_state()->id != 0);
  return !settled || threads == 0 || threads > 2 * running;
}

/* The hook for the end of a domain was put in place. `strays_now` says whether there may be strays: there are none when
   OCaml has not started; later, a thread with a domain lock calls this. */
static void begin_watch(bool strays_now)
{
  if (__cxa_thread_atexit_impl == NULL) prepare_for_ends();
  bxr_store_relaxed(&old_thread_count, strays_now ? bxr_thread_list(old_threads, MOST_OLD) : 0);
  bxr_store_release(&watch, ++watches);
  bxr_store_relaxed(&strays, strays_now);
}

/* The hook is not there any more. */
static void end_watch(void)
{
  bxr_store_relaxed(&watch, 0u);
  bxr_store_relaxed(&strays, true);
}

/* A thread whose domain ended before the first use of the library keeps its pointer, for want of reset_if_used, and is
   a stray for the rest of its life: usually some microseconds, which the next domain with its record waits for. The
   names of these threads, in the order of their ends; a name is taken out when its thread is gone. The next domain
   sees the name, since the runtime's lock orders the end of one before the start of the other. */
enum { UNUSED_ENDS = 16 };
static long unused_ends[UNUSED_ENDS]; /* 0, or a thread (atomic) */

static void note_unused_end(void)
{
  long thread = bxr_thread_id();
  for (int i = 0; i < UNUSED_ENDS && thread != 0; i++) {
    long earlier = bxr_load_relaxed(&unused_ends[i]);
    if ((earlier == 0 || !bxr_thread_is_there(earlier)) &&
        __atomic_compare_exchange_n(&unused_ends[i], &earlier, thread, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      return;
  }
  bxr_store_relaxed(&strays, true);
}

static bool unused_ends_are_over(void)
{
  bool const not_noticed = false;
  for (int i = 0; i < UNUSED_ENDS; i++) {
    long thread = bxr_load_relaxed(&unused_ends[i]);
    if (thread == 0) continue;
    if (bxr_thread_is_there(thread)) bxr_thread_await_progress(thread, &not_noticed);
    if (bxr_thread_is_there(thread)) return false;
    (void)__atomic_compare_exchange_n(&unused_ends[i], &thread, 0L, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
  return true;
}

/* An identity is used for the first time when the domain's number is the same: numbers are given in a row, and the
   least free identity is taken. */
bxr_runtime_strays bxr_runtime_strays_here(void)
{
  caml_domain_state *state = bxr_runtime_state();
  if ((unsigned)state->unique_id == (unsigned)state->id) return BXR_RUNTIME_NO_STRAYS;
  if (!unused_ends_are_over()) return BXR_RUNTIME_STRAYS;
  if (!bxr_load_relaxed(&strays)) return BXR_RUNTIME_NO_STRAYS;
  if (there_may_be_strays()) return watches > 1 ? BXR_RUNTIME_OLD_STRAYS : BXR_RUNTIME_STRAYS;
  bxr_store_relaxed(&strays, false);
  return BXR_RUNTIME_NO_STRAYS;
}

extern value caml_ml_domain_id(value unit) __attribute__((weak)); /* Domain.self */

/* The domain of this thread has begun to terminate, while others go on. Reads nothing by the name of caml_state. In a
   runtime without such a primitive (all that are known have it) the thread counts from now on as one without a lock. */
static void begin_end(void)
{
  terminating_id = &caml_ml_domain_id != NULL ? (int)Long_val(caml_ml_domain_id(Val_unit)) : -1;
  bxr_runtime_terminating = true;
  forget_domain_at_exit();
  if (bxr_load_relaxed(&reset_if_used) == NULL) note_unused_end();
}

#if !BOXROOT_CONSERVATIVE
/* At the end of each of its last minor collections: ensures that destructors which finalisers registered meanwhile come
   after this one, too. */
static void continue_end(void)
{
  if (bxr_runtime_terminating) forget_domain_at_exit();
}
#endif

/* --- the hooks ---------------------------------------------------------------------------------------------------- */

static bxr_callbacks const *volatile callbacks; /* set once, before the hooks that use it; volatile: see when_loaded */
static scan_roots_hook earlier_scan;
static caml_timing_hook earlier_end;
#if !BOXROOT_CONSERVATIVE
static caml_timing_hook earlier_minor_end;
static bool minor_end_left;
#if BXR_RUNTIME_PACES_SLICES
static caml_timing_hook earlier_slice;
static bool slice_left;
#endif
#endif
static bool attached, scan_left; /* *_left: another library had wrapped the hook when we detached */
static bool end_in_place, end_from_the_start; /* whether the hook for the end of a domain is there; since before OCaml
                                                 started */

static void scan_hook(scanning_action action, scanning_action_flags flags, void *data, caml_domain_state *domain)
{
  scan_roots_hook earlier = bxr_load_relaxed(&earlier_scan);
  if (earlier != NULL) earlier(action, flags, data, domain);
  if (!bxr_load_acquire(&attached)) return;
  bxr_visitor visitor = { (void (*)(void))action, data };
  bxr_runtime_marker_scan(callbacks, (unsigned)domain->id, (flags & SCANNING_ONLY_YOUNG_VALUES) != 0, &visitor);
}

/* A relaxed load is enough: see end_hook. */
static void call_earlier(caml_timing_hook const *earlier)
{
  caml_timing_hook hook = bxr_load_relaxed(earlier);
  if (hook != NULL) hook();
}

static bool shut_down; /* (atomic) */
bool bxr_runtime_is_shutting_down(void) { return bxr_load_acquire(&shut_down); }
bool bxr_runtime_has_shut_down(void) { return bxr_load_acquire(&shut_down) || bxr_runtime_end_reached(); }

static void domain_ends(void)
{
  bool alone = caml_domain_alone();
  if (alone) bxr_store_release(&shut_down, true);
  call_earlier(&earlier_end);
  if (bxr_load_acquire(&attached)) callbacks->end_domain();
  if (!alone) begin_end();
}

#if !BOXROOT_CONSERVATIVE
static void minor_collection_ends(void)
{
  call_earlier(&earlier_minor_end);
  if (!bxr_load_acquire(&attached)) return;
  continue_end();
  if (BOXROOT_PACING) bxr_runtime_pace_minor(callbacks);
}

#if BXR_RUNTIME_PACES_SLICES
static void slice_begins(void)
{
  call_earlier(&earlier_slice);
  if (bxr_load_acquire(&attached)) bxr_runtime_pace_slice(callbacks);
}
#endif
#endif

/* The runtime reads the timing hooks with a relaxed load before it calls them. With the fence, what attach wrote before
   it published the hook is seen behind it. (The scanning hook is read by a sequentially consistent load.) */
static void end_hook(void)
{
  bxr_fence_acquire();
  domain_ends();
}
#if !BOXROOT_CONSERVATIVE
static void minor_end_hook(void)
{
  bxr_fence_acquire();
  minor_collection_ends();
}
#if BXR_RUNTIME_PACES_SLICES
static void slice_hook(void)
{
  bxr_fence_acquire();
  slice_begins();
}
#endif
#endif

/* Puts `ours` in a hook. A thread that finds it there finds *earlier set: it is written before, and the hook is
   published with release. While another library changes the hook at the same time, this is repeated. */
#define PUT_IN_FRONT(hook, ours, earlier, type) \
  do { \
    type before = bxr_hook_load_relaxed(hook); \
    do bxr_store_relaxed(earlier, before); \
    while (!bxr_hook_cas_release(hook, &before, ours)); \
  } while (0)

static void watch_ends_of_domains(bool from_the_start)
{
  PUT_IN_FRONT(&caml_domain_terminated_hook, end_hook, &earlier_end, caml_timing_hook);
  end_in_place = true;
  end_from_the_start = from_the_start;
}

/* What the constructor below reaches is in programs that are linked with the library and use nothing of it, which may
   be without OCaml (tests of Rust crates, where the linker drops the rest). So it does not lead to the rest by anything
   but pointers that are set later, and that are volatile, or else compilers know what they are. Nor to caml_state: the
   crate ocaml-sys names it, too, and not as weak, and then some linkers want it found. */
#pragma weak caml_domain_terminated_hook
#pragma weak caml_num_domains_running

/* If the library comes into the process before OCaml has started, no domain ends unseen. The runtime's hooks are static
   variables, and it does not set this one. Loaded later, the library waits for its first use: it may be unloaded
   unused, when another library has wrapped its hook, and nothing would tell. */
__attribute__((constructor)) static void when_loaded(void)
{
  if (&caml_domain_terminated_hook == NULL || !bxr_runtime_end_reached()) return;
  watch_ends_of_domains(true);
  begin_watch(false);
}

/* A hook in an object that is unloaded must not stay. In one that is still attached nothing can be done, and at the end
   of the process nothing need be. */
__attribute__((destructor(101))) static void when_hooks_unloaded(void)
{
  caml_timing_hook end = end_hook;
  forget_ends();
  if (end_from_the_start && !bxr_load_acquire(&attached))
    (void)bxr_hook_cas_release(&caml_domain_terminated_hook, &end, bxr_load_relaxed(&earlier_end));
}

void bxr_runtime_attach(bxr_callbacks const *c)
{
  callbacks = c;
  prepare_for_ends();
  bxr_store_relaxed(&reset_if_used, reset_caml_state);
  bxr_store_release(&attached, true);
  if (!scan_left) PUT_IN_FRONT(&caml_scan_roots_hook, scan_hook, &earlier_scan, scan_roots_hook);
  if (!end_in_place) {
    watch_ends_of_domains(false);
    begin_watch(there_may_be_strays());
  }
#if !BOXROOT_CONSERVATIVE
  if (!minor_end_left) PUT_IN_FRONT(&caml_minor_gc_end_hook, minor_end_hook, &earlier_minor_end, caml_timing_hook);
#if BXR_RUNTIME_PACES_SLICES
  if (!slice_left) PUT_IN_FRONT(&caml_major_slice_begin_hook, slice_hook, &earlier_slice, caml_timing_hook);
#endif
#endif
}

/* A hook that another library has wrapped stays, and goes on calling the earlier one, so the object that it is in must
   stay too. The earlier one is never changed while ours can be reached: not here, where a thread may be in our hook,
   nor when the library attaches again with the hook in its place. */
void bxr_runtime_detach(void)
{
  scan_roots_hook scan = scan_hook;
  caml_timing_hook end = end_hook;
  bxr_store_release(&attached, false);
  if (!end_from_the_start &&
      bxr_hook_cas_release(&caml_domain_terminated_hook, &end, bxr_load_relaxed(&earlier_end))) {
    end_in_place = false;
    end_watch();
  }
  scan_left = !bxr_hook_cas_release(&caml_scan_roots_hook, &scan, bxr_load_relaxed(&earlier_scan));
  bool left = scan_left || (end_in_place && bxr_hook_load_relaxed(&caml_domain_terminated_hook) != end_hook);
#if !BOXROOT_CONSERVATIVE
  caml_timing_hook minor_end = minor_end_hook;
  minor_end_left = !bxr_hook_cas_release(&caml_minor_gc_end_hook, &minor_end, bxr_load_relaxed(&earlier_minor_end));
  left |= minor_end_left;
#if BXR_RUNTIME_PACES_SLICES
  caml_timing_hook slice = slice_hook;
  slice_left = !bxr_hook_cas_release(&caml_major_slice_begin_hook, &slice, bxr_load_relaxed(&earlier_slice));
  left |= slice_left;
#endif
#endif
  if (left) bxr_object_pin();
}
#endif
