/* SPDX-License-Identifier: MIT */
#include "region_record.h"
#include "region_alone.h"
#include "region_custom.h"
#include "region_marker.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef struct outheap_region_record record;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct outheap_region_record_sums sums;
static record *deleting; /* one at a time, until it is decided: the only one that is ASKED or ARMED and not revoked */
static record *dead;     /* those whose memory is to be returned */

/* What a cycle looks at, apart from the records, most of which it reads little of: walked[r->index].r = r. */
#define MOST OUTHEAP_REGION_RECORD_MOST
#define AHEAD 16
static struct place { char *base; size_t bytes; record *r; } walked[MOST];
static size_t walked_count;

/* Images that others can map or need, by their digest. */
#define IMAGES 32768
static record *images[IMAGES];

static void set_state(record *r, enum outheap_region_record_state s)
{
  __atomic_store_n(&r->state, s, __ATOMIC_RELEASE); /* outheap_region_record_use loads it without the lock */
}

static bool is_shared(record const *r) { return r->is_image && !r->tracked; }

static record **images_of(unsigned char const digest[16])
{
  return &images[(digest[0] | (size_t)digest[1] << 8) % IMAGES];
}

/* With the lock. */
static record *find_image(unsigned char const digest[16])
{
  record *r = *images_of(digest);
  while (r != NULL && memcmp(r->digest, digest, 16) != 0) r = r->same;
  return r;
}

/* It is live no more. Its needs may end in the next cycle. */
static void leave(record *r, enum outheap_region_record_state s)
{
  set_state(r, s);
  sums.live--, sums.bytes -= r->bytes;
  if (r->tracked) outheap_region_marker_untrack(r->base);
  for (size_t i = 0; i < r->need_count; i++) r->needs[i]->needed--, r->needs[i]->handles--;
  r->need_count = 0;
  if (!is_shared(r)) return;
  record **at = images_of(r->digest);
  while (*at != r) at = &(*at)->same;
  *at = r->same;
}

static void kill(record *r)
{
  leave(r, OUTHEAP_REGION_DEAD);
  sums.resting++;
  r->next = dead;
  __atomic_store_n(&dead, r, __ATOMIC_RELAXED); /* `cycled` looks whether there are any, and then takes the lock */
}

static void walk(record *r)
{
  r->index = walked_count++;
  walked[r->index] = (struct place){ r->base, r->bytes, r };
}

static void walk_no_more(record *r)
{
  struct place last = walked[--walked_count];
  last.r->index = r->index;
  walked[r->index] = last;
}

static void free_record(record *r)
{
  if (r->owns_proxy) free(r->proxy);
  free(r->needs);
  free(r);
}

/* --- between two cycles: the world is stopped --------------------------------------------------------------------- */

/* Bigarrays in the heap that are parts of one in the region. */
static bool has_parts(record const *r) { return outheap_region_custom_has_parts(r->proxy); }

static void decide(record *r, unsigned met)
{
  if (r->deletion == OUTHEAP_REGION_ASKED) { /* the cycle that begins now decides */
    r->deletion = OUTHEAP_REGION_ARMED;
    (void)outheap_region_marker_watch(r->base, r->extent.bytes);
    return;
  }
  r->pointers = outheap_region_marker_watch(NULL, 0);
  r->met_by = met;
  deleting = NULL;
  if (met == 0 && r->needed == 0 && r->pins == 0 && !has_parts(r)) {
    r->deletion = OUTHEAP_REGION_DONE;
    sums.deleted++;
    kill(r);
  }
  else {
    r->deletion = OUTHEAP_REGION_REFUSED_DELETION;
    if (r->needed != 0 || r->pins != 0) r->met_by |= 4;
    if (has_parts(r)) r->met_by |= OUTHEAP_MARKER_BY_BLOCK;
  }
}

static void judge(record *r, unsigned met)
{
  if (r == deleting) decide(r, met);
  else if (met == 0 && r->handles == 0 && !has_parts(r)) {
    sums.unused++;
    kill(r);
  }
  if (r->tracked) outheap_region_marker_keep(r->base, r->handles != 0);
}

/* Its addresses are for others. */
static void end(record *r)
{
  outheap_region_addresses_set_owner(r->base, r->bytes, NULL);
  outheap_region_addresses_give(&r->extent);
  walk_no_more(r);
  sums.resting--;
  r->over = true;
  if (r->handles == 0) free_record(r);
}

static void cycle(void)
{
  pthread_mutex_lock(&mutex);
  for (size_t i = walked_count; i-- > 0;) { /* downwards: an image comes before those that it needs */
    record *r = walked[i].r;
    if (i >= AHEAD) __builtin_prefetch(walked[i - AHEAD].r);
    unsigned met = outheap_region_marker_met(walked[i].base, walked[i].bytes);
    if (r->state == OUTHEAP_REGION_LIVE) judge(r, met);
    if (met != 0) outheap_region_marker_clear(walked[i].base, walked[i].bytes);
    else if (r->state == OUTHEAP_REGION_EMPTY) end(r); /* in its place is one that was looked at */
  }
  pthread_mutex_unlock(&mutex);
}

/* --- domains run again -------------------------------------------------------------------------------------------- */

static void cycled(void)
{
  while (__atomic_load_n(&dead, __ATOMIC_RELAXED) != NULL) {
    pthread_mutex_lock(&mutex);
    record *r = dead;
    if (r != NULL) { /* nobody else touches it while its memory goes back, which takes time */
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
  outheap_region_marker_start(cycle, cycled);
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
  new->over = new->weighed = false;
  /* Counts as met in this cycle, so that it is judged by cycles that begin later. */
  outheap_region_marker_meet(new->base);
  pthread_mutex_lock(&mutex);
  record *there = is_shared(new) ? find_image(new->digest) : NULL;
  bool room = there == NULL && walked_count < MOST;
  if (there != NULL) there->handles++;
  if (room) {
    for (size_t i = 0; i < new->need_count; i++) new->needs[i]->needed++, new->needs[i]->handles++;
    sums.live++, sums.bytes += new->bytes;
    walk(new);
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
  outheap_region_marker_meet(r->base);
  return true;
}

static void in_use(record const *r, struct outheap_region_error *error)
{
  outheap_region_error_is(error, OUTHEAP_REGION_IN_USE, NULL);
  error->from = r->met_by;
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
  else if (r->deletion == OUTHEAP_REGION_REFUSED_DELETION) in_use(r, error); /* its caller has not heard of it yet */
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
    if (r->deletion != OUTHEAP_REGION_REFUSED_DELETION) { /* the cycles were not run to their end */
      error->from = error->number = 0;
      (void)outheap_region_marker_watch(NULL, 0);
    }
    r->deletion = OUTHEAP_REGION_NO_DELETION;
    if (r->state != OUTHEAP_REGION_LIVE) error->kind = OUTHEAP_REGION_GONE; /* revoked in the meantime */
  }
  if (deleting == r) deleting = NULL;
  pthread_mutex_unlock(&mutex);
  outheap_region_record_release(r);
  return done;
}

/* Nothing is mapped there any more, and nothing will be: the extent stays taken. So many regions can be revoked without
   any mapping that is left; where the system chose the place, what is reserved becomes one mapping with its
   neighbours. */
static void take_away(record *r)
{
  outheap_region_addresses_unmap(r->base, r->bytes);
}

struct revocation { record *r; bool live, pinned; };

static void end_at_once(struct revocation *x)
{
  record *r = x->r;
  pthread_mutex_lock(&mutex);
  x->live = r->state == OUTHEAP_REGION_LIVE, x->pinned = x->live && (r->pins != 0 || r->needed != 0 || has_parts(r));
  if (x->live && !x->pinned) {
    if (r->deletion == OUTHEAP_REGION_ARMED) (void)outheap_region_marker_watch(NULL, 0);
    if (r->tracked) outheap_region_marker_meet(r->base); /* what was read there stays valid in this cycle */
    leave(r, OUTHEAP_REGION_REVOKED);
    outheap_region_marker_revoke(r->base, r->bytes);
    walk_no_more(r);
    sums.revoked++;
  }
  pthread_mutex_unlock(&mutex);
}

/* What is written to may be in the remembered sets of domains: they stand still, and forget it. */
static void revoke_alone(void *data)
{
  struct revocation *x = data;
  end_at_once(x);
  if (x->live && !x->pinned) take_away(x->r);
}

static void forget(void *data)
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
  if (!r->tracked) end_at_once(&x);
  else if (!outheap_region_alone(revoke_alone, forget, &x, &waited))
    return outheap_region_error_is(error, OUTHEAP_REGION_NO_MEMORY, NULL);
  if (!x.live) return outheap_region_error_is(error, OUTHEAP_REGION_GONE, NULL);
  if (x.pinned) {
    error->number = 0, error->from = has_parts(r) ? OUTHEAP_REGION_FROM_HEAP : OUTHEAP_REGION_FROM_REGIONS;
    return outheap_region_error_is(error, OUTHEAP_REGION_IN_USE, NULL);
  }
  if (!r->tracked) take_away(r);
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

bool outheap_region_record_find(uintptr_t address, struct outheap_region_record_place *p)
{
  record *r = outheap_region_addresses_owner(address);
  if (r == NULL || address - (uintptr_t)r->base >= r->bytes) return false;
  *p = (struct outheap_region_record_place){ r->base, r->bytes, __atomic_load_n(&r->state, __ATOMIC_ACQUIRE) };
  return true;
}

bool outheap_region_record_weigh(record *r, size_t *live)
{
  pthread_mutex_lock(&mutex);
  bool first = !r->weighed;
  r->weighed = true;
  *live = sums.bytes;
  pthread_mutex_unlock(&mutex);
  return first;
}

void outheap_region_record_sum(struct outheap_region_record_sums *s)
{
  pthread_mutex_lock(&mutex);
  *s = sums;
  pthread_mutex_unlock(&mutex);
}
