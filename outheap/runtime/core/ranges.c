/* SPDX-License-Identifier: MIT */
#include "ranges.h"
#include "os.h"
#include "table.h"
#include <errno.h>
#include <pthread.h>

#define GAP_MOST 64       /* padding between static data that is covered as well */
#define JOINABLE 4   /* added beside `contents`: a range that was not added as exclusive */
#define LIMIT OH_ADDRESS_LIMIT
#define WORD sizeof(void *)

/* Two arrays take turns. Version v is read in arrays[v % 2] while v + 1 is written to the other one. So a reader is
   disturbed only by the writer of v + 2, and notices it, since the version has changed by then: the words are stored
   with release after the version, and loaded with acquire before it. An array that has become too small is kept for
   slow readers; sizes double, so all of these together are smaller than those in use.

   A range above all others, the usual case for the data of compilation units, is added to the array that is being read:
   behind its end, and then it counts.

   In an array: begin < end <= next begin; ranges with the same `what` do not touch. */
struct range { uintptr_t begin, end, what; };
struct array { size_t room, count; struct range r[]; };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct array *arrays[2];
static uintptr_t version;

/* --- readers -------------------------------------------------------------------------------------------------------
   */

/* The range that this thread found last, as of a version: the data of one compilation unit are often asked about in a
   row. A range that is extended later keeps the version. */
struct found { uintptr_t version, begin, end, what; };
static _Thread_local struct found last __attribute__((tls_model("initial-exec")));

static struct found lookup(struct array *a, uintptr_t version, uintptr_t address)
{
  struct found none = { version, 0, 0, 0 };
  if (a == NULL) return none;
  /* ranges before `low` begin at the address or below, those from `high` on above it */
  size_t low = 0, high = oh_load_acquire(&a->count);
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (oh_load_acquire(&a->r[middle].begin) <= address) low = middle + 1;
    else high = middle;
  }
  if (low == 0) return none;
  struct range *r = &a->r[low - 1];
  struct found f = { version, oh_load_acquire(&r->begin), oh_load_acquire(&r->end), oh_load_acquire(&r->what) };
  return address < f.end ? f : none;
}

unsigned oh_ranges_at(uintptr_t address)
{
  for (;;) {
    uintptr_t v = oh_load_acquire(&version);
    if (last.version == v && address - last.begin < last.end - last.begin) return (unsigned)last.what & ~JOINABLE;
    struct found f = lookup(oh_load_acquire(&arrays[v & 1]), v, address);
    if (oh_load_acquire(&version) != v) continue;
    if (f.what != 0) last = f;
    return (unsigned)f.what & ~JOINABLE;
  }
}

/* --- writers -------------------------------------------------------------------------------------------------------
   */

static struct array empty;
static struct array *live(void)
{
  OH_ASSERT_LOCKED(&mutex);
  return arrays[version & 1] == NULL ? &empty : arrays[version & 1];
}

/* The array of the next version, with room for `n` ranges; NULL: no memory. */
static struct array *begin_next(size_t n)
{
  OH_ASSERT_LOCKED(&mutex);
  struct array **a = &arrays[(version + 1) & 1];
  if (*a == NULL || (*a)->room < n) {
    size_t room = *a == NULL ? 64 : (*a)->room;
    while (room < n) room *= 2;
    struct array *larger = oh_metadata_alloc(sizeof *larger + room * sizeof(struct range));
    if (larger == NULL) return NULL;
    larger->room = room;
    oh_store_release(a, larger);
  }
  oh_store_release(&(*a)->count, (size_t)0);
  return *a;
}

static void put(struct array *a, size_t i, struct range r)
{
  oh_store_release(&a->r[i].begin, r.begin);
  oh_store_release(&a->r[i].end, r.end);
  oh_store_release(&a->r[i].what, r.what);
}

/* Appends a range. It is joined with the one before if one of the two is `new`; holes that were made on purpose
   stay. */
static void append(struct array *a, struct range r, bool new, bool *last_new)
{
  if (r.begin >= r.end) return;
  struct range *last = a->count == 0 ? NULL : &a->r[a->count - 1];
  OH_ASSERT(last == NULL || last->end <= r.begin);
  if (last != NULL && last->what == r.what &&
      (last->end == r.begin || ((new || *last_new) && (r.what & JOINABLE) && r.begin - last->end <= GAP_MOST))) {
    oh_store_release(&last->end, r.end);
    *last_new = new;
    return;
  }
  OH_ASSERT(a->count < a->room);
  put(a, a->count, r);
  oh_store_release(&a->count, a->count + 1);
  *last_new = new;
}

static void finish_next(void)
{
  OH_ASSERT_LOCKED(&mutex);
  oh_store_release(&version, version + 1);
#if OH_DEBUG
  struct array *a = live();
  for (size_t i = 0; i < a->count; i++) {
    OH_CHECK(a->r[i].begin < a->r[i].end && a->r[i].end <= LIMIT + WORD);
    if (i != 0)
      OH_CHECK(a->r[i - 1].end <= a->r[i].begin &&
               (a->r[i - 1].end < a->r[i].begin || a->r[i - 1].what != a->r[i].what));
  }
#endif
}

/* The number of the first range that ends above the address. */
static size_t first_above(struct array *a, uintptr_t address)
{
  size_t low = 0, high = a->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (a->r[middle].end <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Adds a range above all others where readers are. False: there is no room. */
static bool add_on_top(struct array *a, struct range r)
{
  struct range *last = &a->r[a->count - 1];
  if (last->what == r.what && (last->end == r.begin || ((r.what & JOINABLE) && r.begin - last->end <= GAP_MOST)))
    oh_store_release(&last->end, r.end);
  else if (a->count < a->room) {
    put(a, a->count, r);
    oh_store_release(&a->count, a->count + 1);
  }
  else return false;
  return true;
}

static int add(uintptr_t begin, uintptr_t end, uintptr_t contents, bool exclusive)
{
  struct array *a = live();
  if (a->count != 0 && a->r[a->count - 1].end <= begin &&
      add_on_top(a, (struct range){ begin, end, contents | (exclusive ? 0 : JOINABLE) }))
    return 0;
  for (size_t i = first_above(a, begin); i < a->count && a->r[i].begin < end; i++)
    if (exclusive || (a->r[i].what & ~(uintptr_t)JOINABLE) != contents) return EINVAL;
  struct array *next = begin_next(2 * a->count + 1);
  if (next == NULL) return ENOMEM;
  uintptr_t what = contents | (exclusive ? 0 : JOINABLE), from = begin;
  bool last_new = false;
  for (size_t i = 0; i < a->count; i++) {
    struct range r = a->r[i];
    /* What is new before r. */
    append(next, (struct range){ from, r.begin < end ? r.begin : end, what }, true, &last_new);
    append(next, r, false, &last_new);
    if (from < r.end) from = r.end;
  }
  append(next, (struct range){ from, end, what }, true, &last_new);
  finish_next();
  return 0;
}

static int cut(uintptr_t begin, uintptr_t end, uintptr_t contents, bool exclusive)
{
  struct array *a = live();
  if (exclusive) {
    uintptr_t covered = begin;
    for (size_t i = first_above(a, begin);
         i < a->count && a->r[i].begin <= covered && covered < end && a->r[i].what == contents; i++)
      covered = a->r[i].end;
    if (covered < end) return EINVAL;
  }
  struct array *next = begin_next(a->count + 1);
  if (next == NULL) return ENOMEM;
  bool last_new = false;
  for (size_t i = 0; i < a->count; i++) {
    struct range r = a->r[i];
    if ((r.what & ~(uintptr_t)JOINABLE) != contents) append(next, r, false, &last_new);
    else {
      append(next, (struct range){ r.begin, r.end < begin ? r.end : begin, r.what }, false, &last_new);
      append(next, (struct range){ r.begin > end ? r.begin : end, r.end, r.what }, false, &last_new);
    }
  }
  finish_next();
  return 0;
}

/* The memory behind a range of values begins and ends a word earlier. Its last pointer may be to an empty block at the
   very end. */
static bool mix(uintptr_t begin, uintptr_t end, enum oh_ranges_contents contents)
{
  if (contents != OH_RANGES_VALUES) return oh_table_set_mixed(begin, end);
  if (begin < WORD || end - begin < WORD || !oh_table_set_mixed(begin - WORD, end - WORD)) return false;
  (void)oh_table_set_mixed(end - WORD, end);
  return true;
}

int oh_ranges_add(uintptr_t begin, uintptr_t end, enum oh_ranges_contents contents, bool exclusive)
{
  if (begin >= end || end > LIMIT + WORD || (contents != OH_RANGES_VALUES && contents != OH_RANGES_CODE)) return EINVAL;
  pthread_mutex_lock(&mutex);
  int error = mix(begin, end, contents) ? add(begin, end, contents, exclusive) : EINVAL;
  pthread_mutex_unlock(&mutex);
  return error;
}

int oh_ranges_remove(uintptr_t begin, uintptr_t end, enum oh_ranges_contents contents, bool exclusive)
{
  if (begin >= end || (contents != OH_RANGES_VALUES && contents != OH_RANGES_CODE)) return EINVAL;
  pthread_mutex_lock(&mutex);
  int error = cut(begin, end, contents, exclusive);
  pthread_mutex_unlock(&mutex);
  return error;
}

size_t oh_ranges_count(void)
{
  pthread_mutex_lock(&mutex);
  size_t n = live()->count;
  pthread_mutex_unlock(&mutex);
  return n;
}

void oh_ranges_validate(void)
{
  pthread_mutex_lock(&mutex);
  struct array *a = live();
  for (size_t i = 0; i < a->count; i++) {
    struct range r = a->r[i];
    OH_CHECK(r.begin < r.end && r.end <= LIMIT + WORD);
    OH_CHECK(i == 0 || a->r[i - 1].end < r.begin || (a->r[i - 1].end == r.begin && a->r[i - 1].what != r.what));
    enum oh_kind k = oh_table_kind(r.begin - (r.what & OH_RANGES_VALUES ? WORD : 0));
    OH_CHECK(k == OH_KIND_MIXED || k == OH_KIND_REPORTED);
  }
  pthread_mutex_unlock(&mutex);
}

void oh_ranges_lock(void) { pthread_mutex_lock(&mutex); }
void oh_ranges_unlock(void) { pthread_mutex_unlock(&mutex); }
