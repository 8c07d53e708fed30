/* SPDX-License-Identifier: MIT */
/* The tables of local frames (boxroot/frame.h): a thread's list of them, and what becomes of the tables of frames that
   an OCaml exception ended. */
#include "api.h"
#include "checked/account.h"
#include "os.h"
#include "status.h"
#include <boxroot/frame.h>
#include <pthread.h>
#include <stdlib.h>

/* --- the tables of a thread --------------------------------------------------------------------------------------- */

enum { TABLES_OF_BLOCK = 5, MOST_TABLES = TABLES_OF_BLOCK * BXR_FRAME_BLOCKS };

/* The words of the tables of each block. */
#if BOXROOT_POOL_CAPACITY < 64 /* for tests */
static size_t const words_of_block[BXR_FRAME_BLOCKS] = { 2, 4, 32, 1024, 4194304 };
#else
static size_t const words_of_block[BXR_FRAME_BLOCKS] = { 64, 512, 8192, 262144, 4194304 };
#endif

/* A table, and its cells. In the checked build two words of `cells` make a cell: the value, and the table's address
   plus one, which is odd, so that the runtime takes it for an immediate.

   Invariant: a table on the list of its thread has a frame that is open and counts it in `tables`, or has ended by an
   exception. */
typedef struct table {
  struct table *next;
  bxr_frame_head *frame;
  size_t words;
#if BOXROOT_DEBUG
  uint64_t serial; /* the frame's, which tells it from later frames at the same address */
  bxr_site opened, closed;
  bool is_closed;
#endif
  value cells[];
} table;

/* What a thread has. `spare` are tables without a frame: of the first size, in a release build; in the checked build
   all that were given up last, the last one first. */
typedef struct {
  table *tables; /* of open frames, and of those that exceptions have ended; the youngest first */
  table *spare;
  unsigned spares;
} thread_tables;

enum { MOST_SPARES = BOXROOT_DEBUG ? 64 : 4 };

static void free_all(table *t)
{
  for (table *next; t != NULL; t = next) {
    next = t->next;
    free(t);
  }
}

/* The thread ends. */
static void free_tables(void *mine_)
{
  thread_tables *mine = mine_;
  free_all(mine->tables);
  free_all(mine->spare);
  free(mine);
}

/* The key under which a thread finds its tables. It is made at the first use; threads that need it at the same moment
   wait for that. */
static pthread_key_t key;
static int key_state; /* (atomic) */
enum { NO_KEY, BEING_MADE, HAVE_KEY };

static bool tables_key(void)
{
  for (;;) {
    int s = bxr_load_acquire(&key_state);
    if (BXR_LIKELY(s == HAVE_KEY)) return true;
    if (s == BEING_MADE) bxr_thread_yield();
    else if (bxr_cas_acq_rel(&key_state, &s, BEING_MADE)) {
      bxr_object_prepare();
      bool made = pthread_key_create(&key, free_tables) == 0;
      bxr_store_release(&key_state, made ? HAVE_KEY : NO_KEY);
      return made;
    }
  }
}

/* The library is being unloaded: no frame is open. What other threads have left is lost. */
__attribute__((destructor(101))) static void when_frames_unloaded(void)
{
  if (bxr_load_acquire(&key_state) != HAVE_KEY || !bxr_object_is_unloading()) return;
  thread_tables *mine = pthread_getspecific(key);
  if (mine != NULL) free_tables(mine);
  (void)pthread_key_delete(key);
}

/* What this thread has, or NULL. Where there are several copies of the library, a frame may have its tables from
   another one, and this one no key. */
static thread_tables *tables_if_any(void)
{
  return bxr_load_acquire(&key_state) == HAVE_KEY ? pthread_getspecific(key) : NULL;
}

static thread_tables *tables_here(void)
{
  if (!tables_key()) return NULL;
  thread_tables *mine = pthread_getspecific(key);
  if (BXR_LIKELY(mine != NULL)) return mine;
  mine = calloc(1, sizeof *mine);
  if (mine != NULL && pthread_setspecific(key, mine) != 0) {
    free(mine);
    mine = NULL;
  }
  return mine;
}

/* --- giving tables up --------------------------------------------------------------------------------------------- */

static void give_up(thread_tables *mine, table *t)
{
#if BOXROOT_DEBUG
  t->is_closed = true;
  for (size_t i = 0; i < t->words; i += 2) t->cells[i] = (value)BXR_DELETED_WORD;
  t->next = mine->spare;
  mine->spare = t;
  if (++mine->spares <= MOST_SPARES) return;
  table **last = &mine->spare;
  while ((*last)->next != NULL) last = &(*last)->next;
  free(*last);
  *last = NULL;
  mine->spares--;
#else
  if (t->words != words_of_block[0] || mine->spares == MOST_SPARES) {
    free(t);
    return;
  }
  t->next = mine->spare;
  mine->spare = t;
  mine->spares++;
#endif
}

/* Whether a frame is open at `frame`: its block is on the list of local roots. Its place in the stack does not tell: in
   one function, a frame that was opened later may be at a higher address. Cost: a look at each block of the list if it
   is not there; once for a frame that an exception has ended. */
static bool frame_is_listed(bxr_frame_head *frame)
{
  struct caml__roots_block *b = bxr_local_roots;
  while (b != NULL && b != &frame->block) b = b->next;
  return b != NULL;
}

/* Gives up tables of frames that an exception has ended, as far as h can tell: those at the beginning of the list whose
   frame was deeper in the stack than h, or, when h has none yet, at the same place. Those of frames further up, and
   behind a table of such a frame, wait: there are never more of them than frames fit into the stack, since the next
   frame at such a place finds them. */
static void reclaim(thread_tables *mine, bxr_frame_head *h)
{
  bxr_frame_head *open = NULL; /* the last that was found open */
  for (table **at = &mine->tables, *t; (t = *at) != NULL && (uintptr_t)t->frame <= (uintptr_t)h;) {
    if (t->frame == h ? h->tables != 0 : t->frame == open || frame_is_listed(t->frame)) {
      open = t->frame;
      at = &t->next;
    } else {
      *at = t->next;
      give_up(mine, t);
    }
  }
}

/* The frame h is being closed, and its block is off the list: gives up its tables, and those of deeper frames that have
   ended. Tables of frames further up, which were made since, may be in between. */
static void give_up_all(thread_tables *mine, bxr_frame_head *h)
{
  int left = h->tables;
  for (table **at = &mine->tables, *t; (t = *at) != NULL && (left > 0 || (uintptr_t)t->frame <= (uintptr_t)h);) {
    if (t->frame == h || ((uintptr_t)t->frame < (uintptr_t)h && !frame_is_listed(t->frame))) {
      *at = t->next;
      left -= t->frame == h;
      give_up(mine, t);
    } else {
      at = &t->next;
    }
  }
}

/* --- growing ------------------------------------------------------------------------------------------------------ */

static table *new_table(thread_tables *mine, size_t words)
{
#if !BOXROOT_DEBUG
  if (words == words_of_block[0] && mine->spare != NULL) {
    table *t = mine->spare;
    mine->spare = t->next;
    mine->spares--;
    return t;
  }
#endif
  (void)mine;
  table *t = malloc(sizeof(table) + words * sizeof(value));
  if (t != NULL) t->words = words;
  return t;
}

/* Puts a table that is full of valid values on the list of local roots, after the frame's first block: so a frame that
   is not the last one can grow, too. */
static void add_to_block(bxr_frame_head *h, table *t)
{
  struct caml__roots_block *b = &h->more[h->tables / TABLES_OF_BLOCK];
  int i = h->tables % TABLES_OF_BLOCK;
  b->tables[i] = t->cells;
  b->ntables = i + 1;
  if (i == 0) {
    b->nitems = (intnat)t->words;
    b->next = h->block.next;
    h->block.next = b;
  }
  h->tables++;
}

/* Adds a table to the frame. NULL: no memory, or it has as many as it can have. */
static table *grow(bxr_frame_head *h)
{
  thread_tables *mine = h->tables < MOST_TABLES ? tables_here() : NULL;
  if (mine == NULL) return NULL;
  reclaim(mine, h);
  size_t words = words_of_block[h->tables / TABLES_OF_BLOCK];
  table *t = new_table(mine, words);
  if (t == NULL) return NULL;
  for (size_t i = 0; i < words; i++) t->cells[i] = Val_unit;
  t->frame = h;
  t->next = mine->tables;
  mine->tables = t;
  add_to_block(h, t);
  return t;
}

/* What was on the list before the frame was opened. */
static struct caml__roots_block *before(bxr_frame_head *h)
{
  struct caml__roots_block *b = h->block.next;
  for (int n = h->tables; n > 0; n -= TABLES_OF_BLOCK) b = b->next;
  return b;
}

#if !BOXROOT_DEBUG
bxr_frame_room bxr_frame_grow(bxr_frame_head *h)
{
  table *t = h != NULL ? grow(h) : NULL;
  if (BXR_LIKELY(t != NULL)) return (bxr_frame_room){ t->cells, t->cells + t->words };
  if (h == NULL) bxr_fail(BXR_FAIL_CLOSED);
  else bxr_fail(BXR_FAIL_NO_MEMORY);
  return (bxr_frame_room){ NULL, NULL };
}

void bxr_frame_shrink(bxr_frame_head *h)
{
  if (bxr_frame_is_listed(h)) bxr_local_roots = before(h);
  thread_tables *mine = tables_if_any();
  if (mine != NULL) give_up_all(mine, h);
}
#else
/* --- the checked build -------------------------------------------------------------------------------------------- */

static uint64_t frames_opened; /* (atomic) */

/* This thread's list of local roots, in the public call that it is in. */
static struct caml__roots_block *roots_here(void)
{
#if BXR_OCAML5 /* 4.14 does not tell */
  char text[BXR_SITE_TEXT];
  if (Caml_state_opt == NULL)
    bxr_fault("%s: use without the domain lock: called at %s", bxr_site_function(), bxr_site_here(text));
#endif
  return bxr_local_roots;
}

boxroot_frame bxr_frame_open(bxr_frame_head *h, value *slots, size_t n, char const *file, int line)
{
  bxr_called_from(file, line);
  BXR_CALL_AS("BOXROOT_FRAME");
  (void)slots;
  (void)n;
  h->block.next = roots_here();
  h->block.nitems = h->block.ntables = 0;
  h->serial = __atomic_add_fetch(&frames_opened, 1, __ATOMIC_RELAXED);
  h->file = file;
  h->line = line;
  h->tables = 0;
  bxr_local_roots = &h->block;
  return (boxroot_frame){ .head = h };
}

/* Whether the frame is on this thread's list of local roots. */
static bool frame_is_open(bxr_frame_head *h, uint64_t serial)
{
  return frame_is_listed(h) && h->serial == serial;
}

static __attribute__((noreturn)) void fault_closed(bxr_site opened, bxr_site closed)
{
  char text[3][BXR_SITE_TEXT];
  bool known = bxr_site_is_known(closed);
  bxr_fault("%s: use after close: called at %s; the frame was opened at %s, and %s%s", bxr_site_function(),
            bxr_site_here(text[0]), bxr_site_text(opened, text[1]), known ? "closed at " : "",
            known ? bxr_site_text(closed, text[2]) : "ended by an exception, or it is not of this thread");
}

void bxr_frame_close(boxroot_frame *f)
{
  BXR_CALL_AS("boxroot_frame_close");
  bxr_frame_head *h = f->head;
  bxr_site here = bxr_site_current().site;
  char text[2][BXR_SITE_TEXT];
  if (h == NULL) return;
  if (roots_here() == &h->block) bxr_local_roots = before(h);
  else if (bxr_frame_is_listed(h) || frame_is_open(h, h->serial))
    bxr_fault("boxroot_frame_close: closed out of order: called at %s; a frame, or a function with CAMLparam, that was "
              "entered after the frame was opened at %s is open still, or another thread opened it",
              bxr_site_text(here, text[0]), bxr_site_text((bxr_site){ h->file, NULL, h->line }, text[1]));
  if (h->tables != 0) {
    thread_tables *mine = tables_if_any();
    for (table *t = mine != NULL ? mine->tables : NULL; t != NULL; t = t->next)
      if (t->frame == h && t->serial == h->serial) t->closed = here;
    if (mine != NULL) give_up_all(mine, h);
  }
  *f = (boxroot_frame){ .file = here.file != NULL ? here.file : "a place that is not known", .line = here.line };
}

boxroot_local bxr_local_create(boxroot_frame *f, value v)
{
  BXR_CALL_AS("boxroot_local_create");
  bxr_frame_head *h = f->head;
  (void)roots_here();
  if (h == NULL) fault_closed((bxr_site){ 0 }, (bxr_site){ f->file, NULL, f->line });
  if (!frame_is_open(h, h->serial)) fault_closed((bxr_site){ 0 }, (bxr_site){ 0 });
  if (f->next == f->end) {
    table *t = grow(h);
    if (t == NULL) {
      bxr_fail(BXR_FAIL_NO_MEMORY);
      return NULL;
    }
    t->serial = h->serial;
    t->opened = (bxr_site){ h->file, NULL, h->line };
    t->closed = (bxr_site){ 0 };
    t->is_closed = false;
    for (size_t i = 1; i < t->words; i += 2) t->cells[i] = (value)t | 1;
    f->next = t->cells;
    f->end = t->cells + t->words;
  }
  boxroot_local l = (boxroot_local)f->next;
  *f->next = v;
  f->next += 2;
  return l;
}

value *bxr_local_ref(boxroot_local l, char const *what)
{
  BXR_CALL_AS(what);
  char text[BXR_SITE_TEXT];
  if (l == NULL) bxr_fault("%s: no local: called at %s", what, bxr_site_here(text));
  (void)roots_here();
  table *t = (table *)(((value *)l)[1] & ~(value)1);
  if (t->is_closed) fault_closed(t->opened, t->closed);
  if (!frame_is_open(t->frame, t->serial)) fault_closed(t->opened, (bxr_site){ 0 });
  return (value *)l;
}
#endif
