/* SPDX-License-Identifier: MIT */
#include "region_record.h"
#include "region_runtime.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct outheap_region_record record;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct outheap_region_record_stats stats;
static record *deleting; /* the only one that is ASKED or ARMED and not revoked: one at a time is to be deleted */
static record *dead;     /* a list of those whose memory is to be returned */

/* What each cycle examines, apart from the records, of which it reads little: examined[r->index].r = r. */
#define MAX_REGIONS OUTHEAP_REGION_RECORD_MAX
#define PREFETCH_DISTANCE 16
static struct examined { char *base; size_t bytes; record *r; } examined[MAX_REGIONS];
static size_t examined_count;

/* Images that others can map or need, by their digest. */
#define IMAGE_BUCKETS 32768
static record *images[IMAGE_BUCKETS];

static void set_state(record *r, enum outheap_region_record_state s)
{
  __atomic_store_n(&r->state, s, __ATOMIC_RELEASE); /* outheap_region_record_use loads it without the lock */
}

static bool is_shared(record const *r) { return r->is_image && !r->tracked; }

static record **images_of(unsigned char const digest[16])
{
  return &images[(digest[0] | (size_t)digest[1] << 8) % IMAGE_BUCKETS];
}

/* The caller has the lock, here and below, but for functions that take it. */
static record *find_image(unsigned char const digest[16])
{
  record *r = *images_of(digest);
  while (r != NULL && memcmp(r->digest, digest, 16) != 0) r = r->same;
  return r;
}

/* The region is live no more. Those that it needs may end in the next cycle. */
static void end_life(record *r, enum outheap_region_record_state s)
{
  set_state(r, s);
  stats.live--, stats.bytes -= r->bytes;
  if (r->tracked) outheap_region_marker_untrack(r->base);
  for (size_t i = 0; i < r->need_count; i++) r->needs[i]->needed--, r->needs[i]->handles--;
  r->need_count = 0;
  if (!is_shared(r)) return;
  record **at = images_of(r->digest);
  while (*at != r) at = &(*at)->same;
  *at = r->same;
}

static void mark_dead(record *r)
{
  end_life(r, OUTHEAP_REGION_DEAD);
  stats.resting++;
  r->next = dead;
  __atomic_store_n(&dead, r, __ATOMIC_RELAXED); /* return_memory reads it without the lock, and then takes the lock */
}

static void add_examined(record *r)
{
  r->index = examined_count++;
  examined[r->index] = (struct examined){ r->base, r->bytes, r };
}

static void remove_examined(record *r)
{
  struct examined last = examined[--examined_count];
  last.r->index = r->index;
  examined[r->index] = last;
}

static void free_record(record *r)
{
  if (r->owns_proxy) free(r->proxy);
  free(r->needs);
  free(r);
}

/* --- between two cycles: the world is stopped --------------------------------------------------------------------- */

/* Are there bigarrays in the heap that are parts of one in the region? */
static bool has_parts(record const *r) { return outheap_region_custom_has_parts(r->proxy); }

static void decide_deletion(record *r, unsigned reached)
{
  if (r->deletion == OUTHEAP_REGION_ASKED) { /* the cycle that begins now is whole, and decides */
    r->deletion = OUTHEAP_REGION_ARMED;
    (void)outheap_region_marker_count_pointers(r->base, r->extent.bytes);
    return;
  }
  r->pointers = outheap_region_marker_count_pointers(NULL, 0);
  r->reached_by = reached;
  deleting = NULL;
  if (reached == 0 && r->needed == 0 && r->pins == 0 && !has_parts(r)) {
    r->deletion = OUTHEAP_REGION_DONE;
    stats.deleted++;
    mark_dead(r);
  }
  else {
    r->deletion = OUTHEAP_REGION_REFUSED_DELETION;
    if (r->needed != 0 || r->pins != 0) r->reached_by |= 4;
    if (has_parts(r)) r->reached_by |= OUTHEAP_MARKER_BY_BLOCK;
  }
}

static void decide_liveness(record *r, unsigned reached)
{
  if (r == deleting) decide_deletion(r, reached);
  else if (reached == 0 && r->handles == 0 && !has_parts(r)) {
    stats.unused++;
    mark_dead(r);
  }
  if (r->tracked) outheap_region_marker_set_root(r->base, r->handles != 0);
}

/* Makes the addresses of an EMPTY region free for others. */
static void free_addresses(record *r)
{
  outheap_region_addresses_set_owner(r->base, r->bytes, NULL);
  outheap_region_addresses_give(&r->extent);
  remove_examined(r);
  stats.resting--;
  r->over = true;
  if (r->handles == 0) free_record(r);
}

static void decide_all(void)
{
  pthread_mutex_lock(&mutex);
  for (size_t i = examined_count; i-- > 0;) { /* downwards: an image comes before those that it needs */
    record *r = examined[i].r;
    if (i >= PREFETCH_DISTANCE) __builtin_prefetch(examined[i - PREFETCH_DISTANCE].r);
    unsigned reached = outheap_region_marker_reached(examined[i].base, examined[i].bytes);
    if (r->state == OUTHEAP_REGION_LIVE) decide_liveness(r, reached);
    if (reached != 0) outheap_region_marker_clear_reached(examined[i].base, examined[i].bytes);
    else if (r->state == OUTHEAP_REGION_EMPTY) free_addresses(r); /* in its entry is now one that was examined */
  }
  pthread_mutex_unlock(&mutex);
}

/* --- domains run again -------------------------------------------------------------------------------------------- */

static void return_memory(void)
{
  while (__atomic_load_n(&dead, __ATOMIC_RELAXED) != NULL) {
    pthread_mutex_lock(&mutex);
    record *r = dead;
    if (r != NULL) { /* nobody else touches it while its memory is returned, which takes time */
      __atomic_store_n(&dead, r->next, __ATOMIC_RELAXED);
      set_state(r, OUTHEAP_REGION_EMPTY);
      r->handles++;
    }
    pthread_mutex_unlock(&mutex);
    if (r == NULL) break;
    outheap_region_addresses_unmap(r->base, r->bytes);
    outheap_region_record_release(r);
  }
}

/* --- fork --------------------------------------------------------------------------------------------------------- */

static void before_fork(void)
{
  pthread_mutex_lock(&mutex);
  outheap_region_addresses_lock();
}

static void after_fork(void)
{
  outheap_region_addresses_unlock();
  pthread_mutex_unlock(&mutex);
}

/* The thread that was deleting a region may be missing here. If it is not, it gets an error. */
static void after_fork_in_child(void)
{
  if (deleting != NULL) {
    deleting->deletion = OUTHEAP_REGION_NO_DELETION;
    deleting = NULL; /* the handle that the deletion has stays */
  }
  after_fork();
}

static void start(void)
{
  (void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
  outheap_region_marker_start(decide_all, return_memory);
}

/* --- records ------------------------------------------------------------------------------------------------------ */

record *outheap_region_record_add(record const *r, struct outheap_region_error *error)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start);
  record *new = malloc(sizeof *new);
  if (new == NULL) {
    outheap_region_error_is(error, OUTHEAP_REGION_NO_MEMORY, NULL);
    return NULL;
  }
  *new = *r;
  new->state = OUTHEAP_REGION_LIVE;
  new->deletion = OUTHEAP_REGION_NO_DELETION;
  new->handles = 1;
  new->needed = new->pins = 0;
  new->over = new->charged = false;
  /* It counts as reached in this cycle, so that only cycles that begin later decide on it. */
  outheap_region_marker_set_reached(new->base);
  pthread_mutex_lock(&mutex);
  record *there = is_shared(new) ? find_image(new->digest) : NULL;
  bool room = there == NULL && examined_count < MAX_REGIONS;
  if (there != NULL) there->handles++;
  if (room) {
    for (size_t i = 0; i < new->need_count; i++) new->needs[i]->needed++, new->needs[i]->handles++;
    stats.live++, stats.bytes += new->bytes;
    add_examined(new);
    if (is_shared(new)) {
      new->same = *images_of(new->digest);
      *images_of(new->digest) = new;
    }
    outheap_region_addresses_set_owner(new->base, new->bytes, new); /* from now on it is found by its addresses */
  }
  pthread_mutex_unlock(&mutex);
  if (room) return new;
  free(new);
  if (there != NULL) return there;
  outheap_region_error_is(error, OUTHEAP_REGION_TOO_MANY, NULL);
  return NULL;
}

void outheap_region_record_retain(record *r)
{
  pthread_mutex_lock(&mutex);
  r->handles++;
  pthread_mutex_unlock(&mutex);
}

void outheap_region_record_release(record *r)
{
  pthread_mutex_lock(&mutex);
  bool last = --r->handles == 0 && r->over;
  pthread_mutex_unlock(&mutex);
  if (last) free_record(r);
}

bool outheap_region_record_pin(record *r)
{
  pthread_mutex_lock(&mutex);
  bool live = r->state == OUTHEAP_REGION_LIVE;
  if (live) r->handles++, r->pins++;
  pthread_mutex_unlock(&mutex);
  return live;
}

void outheap_region_record_unpin(record *r)
{
  pthread_mutex_lock(&mutex);
  r->pins--;
  pthread_mutex_unlock(&mutex);
  outheap_region_record_release(r);
}

bool outheap_region_record_use(record *r)
{
  if (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) != OUTHEAP_REGION_LIVE) return false;
  outheap_region_marker_set_reached(r->base);
  return true;
}

static void in_use(record const *r, struct outheap_region_error *error)
{
  outheap_region_error_is(error, OUTHEAP_REGION_IN_USE, NULL);
  error->from = r->reached_by;
  error->number = r->pointers;
}

bool outheap_region_record_delete_begin(record *r, struct outheap_region_error *error)
{
  bool done = false;
  if (!outheap_region_marker_can_tell())
    return outheap_region_error_is(error, OUTHEAP_REGION_UNSUPPORTED,
                                   "this runtime cannot tell whether a region is in use: it lives until exit");
  error->kind = OUTHEAP_REGION_OK;
  pthread_mutex_lock(&mutex);
  if (r->state != OUTHEAP_REGION_LIVE) outheap_region_error_is(error, OUTHEAP_REGION_GONE, NULL);
  else if (r->deletion == OUTHEAP_REGION_REFUSED_DELETION) in_use(r, error); /* not yet read by its caller */
  else if (deleting == NULL) {
    deleting = r;
    r->handles++;
    r->deletion = OUTHEAP_REGION_ASKED;
    done = true;
  }
  pthread_mutex_unlock(&mutex);
  return done;
}

bool outheap_region_record_delete_end(record *r, struct outheap_region_error *error)
{
  pthread_mutex_lock(&mutex);
  bool done = r->deletion == OUTHEAP_REGION_DONE;
  if (!done) {
    in_use(r, error);
    if (r->deletion != OUTHEAP_REGION_REFUSED_DELETION) { /* the cycles did not end, or were not run */
      error->from = error->number = 0;
      (void)outheap_region_marker_count_pointers(NULL, 0);
    }
    r->deletion = OUTHEAP_REGION_NO_DELETION;
    if (r->state != OUTHEAP_REGION_LIVE) error->kind = OUTHEAP_REGION_GONE; /* revoked in the meantime */
  }
  if (deleting == r) deleting = NULL;
  pthread_mutex_unlock(&mutex);
  outheap_region_record_release(r);
  return done;
}

/* Unmaps a revoked region. Nothing will be mapped there again, since the extent stays taken. Where the addresses are
   fixed no mapping is left, however many regions are revoked; where the system chose them, what is reserved becomes one
   mapping with its neighbours. */
static void make_inaccessible(record *r)
{
  outheap_region_addresses_unmap(r->base, r->bytes);
}

struct revocation { record *r; bool live, pinned; };

static void revoke_locked(struct revocation *x)
{
  record *r = x->r;
  pthread_mutex_lock(&mutex);
  x->live = r->state == OUTHEAP_REGION_LIVE, x->pinned = x->live && (r->pins != 0 || r->needed != 0 || has_parts(r));
  if (x->live && !x->pinned) {
    if (r->deletion == OUTHEAP_REGION_ARMED) (void)outheap_region_marker_count_pointers(NULL, 0);
    if (r->tracked) outheap_region_marker_set_reached(r->base); /* what was read in it stays valid in this cycle */
    end_life(r, OUTHEAP_REGION_REVOKED);
    outheap_region_marker_revoke(r->base, r->bytes);
    remove_examined(r);
    stats.revoked++;
  }
  pthread_mutex_unlock(&mutex);
}

/* Words of a region that is written to may be in the remembered sets of domains: these are stopped, and forget them. */
static void revoke_stopped(void *data)
{
  struct revocation *x = data;
  revoke_locked(x);
  if (x->live && !x->pinned) make_inaccessible(x->r);
}

static void forget_remembered(void *data)
{
  struct revocation *x = data;
  if (x->live && !x->pinned) outheap_region_marker_forget(x->r->base, x->r->bytes);
}

bool outheap_region_record_revoke(record *r, struct outheap_region_error *error)
{
  if (!outheap_region_marker_can_tell())
    return outheap_region_error_is(error, OUTHEAP_REGION_UNSUPPORTED,
                                   "this runtime would read what is revoked: the region lives until exit");
  struct revocation x = { r, false, false };
  uint64_t waited;
  if (!r->tracked) revoke_locked(&x);
  else if (!outheap_region_run_alone(revoke_stopped, forget_remembered, &x, &waited))
    return outheap_region_error_is(error, OUTHEAP_REGION_NO_MEMORY, NULL);
  if (!x.live) return outheap_region_error_is(error, OUTHEAP_REGION_GONE, NULL);
  if (x.pinned) {
    error->number = 0, error->from = has_parts(r) ? OUTHEAP_REGION_FROM_HEAP : OUTHEAP_REGION_FROM_REGIONS;
    return outheap_region_error_is(error, OUTHEAP_REGION_IN_USE, NULL);
  }
  if (!r->tracked) make_inaccessible(r);
  return true;
}

record *outheap_region_record_image(unsigned char const digest[16])
{
  pthread_mutex_lock(&mutex);
  record *r = find_image(digest);
  if (r != NULL) r->handles++, r->pins++;
  pthread_mutex_unlock(&mutex);
  return r;
}

bool outheap_region_record_is_at(uintptr_t address)
{
  record *r = outheap_region_addresses_owner(address);
  return r != NULL && address - (uintptr_t)r->base < r->bytes &&
         __atomic_load_n(&r->state, __ATOMIC_ACQUIRE) == OUTHEAP_REGION_LIVE;
}

bool outheap_region_record_charge_once(record *r, size_t *live)
{
  pthread_mutex_lock(&mutex);
  bool first = !r->charged;
  r->charged = true;
  *live = stats.bytes;
  pthread_mutex_unlock(&mutex);
  return first;
}

void outheap_region_record_read_stats(struct outheap_region_record_stats *s)
{
  pthread_mutex_lock(&mutex);
  *s = stats;
  pthread_mutex_unlock(&mutex);
}

/* --- faults ------------------------------------------------------------------------------------------------------- */

static struct sigaction before;

/* The handler runs on a small stack, of which the processor's registers may have taken most; so it does without the C
   library's formatting, which needs kilobytes and is not made for handlers. */

static char *put(char *to, char const *text)
{
  while (*text != 0) *to++ = *text++;
  return to;
}

static char *put_number(char *to, uintptr_t n, unsigned base)
{
  char digits[20];
  int count = 0;
  do digits[count++] = "0123456789abcdef"[n % base];
  while ((n /= base) != 0);
  while (count != 0) *to++ = digits[--count];
  return to;
}

struct found { char *base; size_t bytes; enum outheap_region_record_state state; };

/* Finds the region that an address lies in; returns false if there is none. Lock-free, for the handler. Without OCaml's
   lock it may read a record that ends at that moment: that of a region which is read though no pointer leads there. */
static bool find(uintptr_t address, struct found *p)
{
  record *r = outheap_region_addresses_owner(address);
  if (r == NULL || address - (uintptr_t)r->base >= r->bytes) return false;
  *p = (struct found){ r->base, r->bytes, __atomic_load_n(&r->state, __ATOMIC_ACQUIRE) };
  return true;
}

static __attribute__((noinline)) void report(uintptr_t address, struct found const *p)
{
  char line[200], *end = put(line, "outheap: ");
  end = put(end, p->state == OUTHEAP_REGION_REVOKED ? "a region that was revoked was read"
                                                    : "a region, which is read-only, was written to");
  end = put_number(put(end, " at 0x"), address, 16);
  end = put_number(put(end, ", "), address - (uintptr_t)p->base, 10);
  end = put_number(put(end, " bytes into the region at 0x"), (uintptr_t)p->base, 16);
  end = put_number(put(end, " ("), p->bytes, 10);
  end = put(end, " bytes)\n");
  ssize_t written = write(2, line, (size_t)(end - line));
  (void)written;
}

static void handle(int signal, siginfo_t *info, void *context)
{
  struct found p;
  if (find((uintptr_t)info->si_addr, &p)) {
    report((uintptr_t)info->si_addr, &p);
    /* This is said once: the instruction is tried again, and the handler that was there before decides. */
    (void)sigaction(SIGSEGV, &before, NULL);
  }
  else if (before.sa_flags & SA_SIGINFO) before.sa_sigaction(signal, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) before.sa_handler(signal);
  else (void)sigaction(signal, &before, NULL);
}

/* Is the runtime that the program is linked with, stock or variant, a debug runtime? Only these have the function. */
#ifdef DEBUG
static bool of_debug_runtime(void) { return true; }
#else
extern __attribute__((weak)) void caml_failed_assert(void);
static bool of_debug_runtime(void) { return caml_failed_assert != NULL; }
#endif

void outheap_region_fault_start(void)
{
  bool wanted = outheap_region_runtime_is_set("debug.faults", "report") ||
                (of_debug_runtime() && !outheap_region_runtime_is_set("debug.faults", "off"));
  if (!wanted) return;
  if (sigaction(SIGSEGV, NULL, &before) != 0) return;
  struct sigaction new = before;
  new.sa_sigaction = handle;
  new.sa_flags = (new.sa_flags & ~SA_RESETHAND) | SA_SIGINFO | SA_ONSTACK;
  (void)sigaction(SIGSEGV, &new, NULL);
}
