/* SPDX-License-Identifier: MIT */
/* The functions of outheap_region.h, but for that of custom blocks (region_runtime.c). */
#include "region_snapshot.h"
#include "region_image_map.h"
#include "region_record.h"
#include "region_runtime.h"
#include "region_share.h"
#include <caml/memory.h>
#include <caml/signals.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#if OUTHEAP_REGION_OCAML5
#include <caml/major_gc.h>
#include <caml/shared_heap.h>
#endif

typedef struct outheap_region_record record;
typedef struct outheap_region_error error;

static bool unsupported(error *e, char const *why)
{
  return outheap_region_error_is(e, OUTHEAP_REGION_UNSUPPORTED, why);
}

static void clear(error *e) { *e = (error){ .kind = OUTHEAP_REGION_OK }; }

/* --- the collector ------------------------------------------------------------------------------------------------ */

static void collect(void)
{
#if OCAML_VERSION >= 50200
  for (int i = 0; i < 3; i++) caml_finish_major_cycle(0 /* without compaction */);
#elif OUTHEAP_REGION_OCAML5
  for (int i = 0; i < 3; i++) caml_finish_major_cycle();
#endif
}

/* A region ends when the marker has found no pointer to it in a whole cycle, and its addresses are free one cycle
   later. Handles that died are finalised before. So three cycles find all that can end by themselves, and three more
   free their addresses. */
struct room { int collections; size_t ended; };

/* Collects if that may help. Returns whether to try once more what has failed. `made`: all 0 at first. */
static bool make_room(struct room *made, error const *e)
{
  struct outheap_region_record_stats s;
  if ((e->kind != OUTHEAP_REGION_TOO_MANY && e->kind != OUTHEAP_REGION_NO_MEMORY) || !outheap_region_marker_can_tell())
    return false;
  outheap_region_record_read_stats(&s);
  bool hope = made->collections == 0 ? s.live + s.resting != 0
                                     : s.resting != 0 || s.unused + s.deleted != made->ended;
  if (!hope || made->collections == 2) return false;
  made->ended = s.unused + s.deleted;
  made->collections++;
  collect();
  return true;
}

/* Regions are no part of the heap, so the collector is told of what they cost: it runs a whole cycle for so many of
   them, or for so much memory, as it does for a heap's worth of allocation. A region that was dropped is gone after
   three to five cycles. */
#define REGIONS_PER_CYCLE 4096 /* an eighth of their greatest number */
#define BYTES_PER_CYCLE ((size_t)16 << 20)
#define SHARE_PER_CYCLE 16 /* besides, a sixteenth of what there is in heap and regions */

/* Tells the collector of a region, once: an image that was mapped before costs nothing more. Shared pages of files
   count as nothing. The caller holds OCaml's lock. */
static void charge_collector(record *r)
{
#if OUTHEAP_REGION_OCAML5
  size_t live;
  if (!outheap_region_marker_can_tell() || !outheap_region_record_charge_once(r, &live)) return;
  outheap_region_pace(1, REGIONS_PER_CYCLE);
  if (r->is_image && !r->tracked && (uintptr_t)r->base == r->canonical) return;
  size_t all = caml_heap_size(Caml_state->shared_heap) + live;
  outheap_region_pace(r->bytes, BYTES_PER_CYCLE + all / SHARE_PER_CYCLE);
#else
  (void)r;
#endif
}

/* --- copies ------------------------------------------------------------------------------------------------------- */

static bool can_track(error *e)
{
  return outheap_region_marker_can_track() ||
         unsupported(e, "~writes:`Track: with OCaml 5 and the runtime variant _outheap only");
}

/* Has a region tracked that was just made, with one handle. Returns false if it ends, for want of memory. */
static bool begin_tracking(record *r, error *e)
{
  if (outheap_region_marker_track(r->base, r->bytes)) return true;
  outheap_region_record_release(r);
  return outheap_region_error_is(e, OUTHEAP_REGION_NO_MEMORY, NULL);
}

/* Makes a record of a finished copy. The lock is released meanwhile, since the copy is ours alone. */
static record *keep(struct outheap_region_copy *c, bool share, bool track)
{
  bool done = true;
  caml_enter_blocking_section();
  if (share) done = outheap_region_share(c, NULL);
  if (done && !track && mprotect(c->base, c->mapped, PROT_READ) != 0)
    done = outheap_region_error_system(&c->error, "mprotect", errno);
  caml_leave_blocking_section();
  /* this needs OCaml's lock: the page table of 4.14 has none of its own */
  if (done && !outheap_region_marker_declare(c->base, c->mapped))
    done = outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
  if (!done) return NULL;
  record r = { .extent = c->extent, .base = c->base, .bytes = c->mapped, .used = c->used, .blocks = c->blocks,
               .root = (uintptr_t)c->copied, .tracked = track, .proxy = c->proxy, .owns_proxy = true };
  record *result = outheap_region_record_add(&r, &c->error);
  if (result == NULL) outheap_region_marker_withdraw(c->base, c->mapped);
  return result;
}

static record *copy_once(value *v, unsigned options, value *copied, error *e)
{
  bool share = options & OUTHEAP_REGION_MAX_SHARING, track = options & OUTHEAP_REGION_TRACK;
  struct outheap_region_copy c = { .root = v, .closures = options & OUTHEAP_REGION_CLOSURES,
                                  .exclusive = options & OUTHEAP_REGION_EXCLUSIVE };
  uint64_t waited;
  clear(e);
  c.lazies = c.closures && track;
  c.proxy = malloc(sizeof *c.proxy);
  if (c.proxy == NULL) {
    outheap_region_error_is(e, OUTHEAP_REGION_NO_MEMORY, NULL);
    return NULL;
  }
  outheap_region_custom_start(c.proxy);
  bool done = outheap_region_snapshot_make(&c, &waited);
  record *r = done ? keep(&c, share, track) : NULL;
  if (done && r == NULL) outheap_region_snapshot_drop(&c);
  if (r == NULL) {
    free(c.proxy);
    *e = c.error;
    return NULL;
  }
  *copied = c.copied;
  return !track || begin_tracking(r, e) ? r : NULL;
}

bool outheap_region_copy(value v, unsigned options, struct outheap_region_root *root, error *e)
{
  CAMLparam1(v);
  bool share = options & OUTHEAP_REGION_MAX_SHARING, track = options & OUTHEAP_REGION_TRACK;
  record *r = NULL;
  value copied = Val_unit;
  struct room made = { 0 };
  clear(e);
  if (track && share) unsupported(e, "~sharing:`Max with ~writes:`Track: what is written to must stay apart");
  else if (!track || can_track(e))
    while ((r = copy_once(&v, options, &copied, e)) == NULL && make_room(&made, e)) {}
  if (r == NULL) CAMLreturnT(bool, false);
  charge_collector(r);
  *root = (struct outheap_region_root){ r, copied };
  CAMLreturnT(bool, true);
}

value outheap_region_get(struct outheap_region_root const *root)
{
  return outheap_region_record_use(root->region) ? root->inside : 0;
}

void outheap_region_retain(outheap_region r) { outheap_region_record_retain(r); }
void outheap_region_release(outheap_region r) { outheap_region_record_release(r); }

bool outheap_region_contains(outheap_region r, value v)
{
  return Is_block(v) && (uintptr_t)v - (uintptr_t)r->base < r->bytes;
}

/* --- the end of regions ------------------------------------------------------------------------------------------- */

bool outheap_region_delete(outheap_region r, error *e)
{
  clear(e);
  while (!outheap_region_record_delete_begin(r, e)) {
    if (e->kind != OUTHEAP_REGION_OK) return false;
    collect(); /* this lets another deletion be decided */
  }
  collect();
  return outheap_region_record_delete_end(r, e);
}

/* What a tracked region refers to must be marked before it is revoked. That happens while all others are stopped, so it
   is done here before, in pieces, between which they run. */
static void mark_words(record *r)
{
  for (size_t i = 0; i <= r->bytes >> 12; i++) { /* cycles may begin meanwhile, but not for ever */
    if (!outheap_region_record_use(r) || !outheap_region_marker_hasten(r->base)) return;
    caml_enter_blocking_section();
    caml_leave_blocking_section();
  }
}

bool outheap_region_revoke(outheap_region r, error *e)
{
  clear(e);
  if (r->tracked) mark_words(r);
  return outheap_region_record_revoke(r, e);
}

/* --- images ------------------------------------------------------------------------------------------------------- */

static bool schema_of(char const *name, int64_t version, struct outheap_region_image_schema *s, error *e)
{
  memset(s, 0, sizeof *s);
  if (name[0] == 0 || strlen(name) >= sizeof s->name)
    return unsupported(e, "a schema's name has 1 to 127 bytes, none of them zero");
  strcpy(s->name, name);
  s->version = (uint64_t)version;
  return true;
}

static bool is_path(char const *path, error *e) { return path[0] != 0 || unsupported(e, "the path is empty"); }

static bool pin(record *r, error *e)
{
  if (!r->is_image) return unsupported(e, "~needs: a region that was not mapped from a file");
  if (r->tracked) return unsupported(e, "~needs: a region that is written to");
  return outheap_region_record_pin(r) || outheap_region_error_is(e, OUTHEAP_REGION_GONE, NULL);
}

/* Adds to an error which file it is about, and what was wanted. Returns false. */
static bool of_file(error *e, char const *path, char const *name, int64_t version)
{
  size_t length = strlen(path), room = sizeof e->file - 1;
  snprintf(e->file, sizeof e->file, "%s", length > room ? path + (length - room) : path);
  if (e->kind == OUTHEAP_REGION_OTHER_SCHEMA) {
    snprintf(e->wanted, sizeof e->wanted, "%s", name);
    e->wanted_version = version;
  }
  return false;
}

static bool save(value v, char const *path, char const *name, int64_t version, unsigned options,
                 outheap_region const *needs, size_t count, error *e)
{
  CAMLparam1(v);
  struct outheap_region_image_schema s;
  uint64_t waited;
  size_t pinned = 0;
  struct room made = { 0 };
  clear(e);
  record **list = malloc((count + 1) * sizeof *list);
  if (list == NULL) outheap_region_error_is(e, OUTHEAP_REGION_NO_MEMORY, NULL);
  bool done = list != NULL && is_path(path, e) && schema_of(name, version, &s, e);
  for (; done && pinned < count; pinned += done) done = pin(list[pinned] = needs[pinned], e);
  if (done)
    do {
      clear(e);
      done = outheap_region_image_save(&v, path, &s, list, count, options, e, &waited);
    } while (!done && make_room(&made, e));
  for (size_t i = 0; i < pinned; i++) outheap_region_record_unpin(list[i]);
  free(list);
  CAMLreturnT(bool, done);
}

bool outheap_region_save(value v, char const *path, char const *name, int64_t version, unsigned options,
                         outheap_region const *needs, size_t count, error *e)
{
  return save(v, path, name, version, options, needs, count, e) || of_file(e, path, name, version);
}

static bool map(char const *path, char const *name, int64_t version, int64_t offset, unsigned options,
                struct outheap_region_root *root, error *e)
{
  struct outheap_region_image_schema s;
  bool track = options & OUTHEAP_REGION_TRACK;
  clear(e);
  if (offset >= 0 && (offset & 0xffff) != 0) return unsupported(e, "an offset that is no multiple of 64 KiB");
  if (!is_path(path, e) || !schema_of(name, version, &s, e) || (track && !can_track(e))) return false;
  record *r;
  struct room made = { 0 };
  do {
    clear(e);
    r = outheap_region_image_map(path, offset, &s, options & OUTHEAP_REGION_FULL, track, e);
    if (r != NULL && track && !begin_tracking(r, e)) r = NULL;
  } while (r == NULL && make_room(&made, e));
  if (r == NULL) return false;
  charge_collector(r);
  *root = (struct outheap_region_root){ r, (value)r->root };
  return true;
}

bool outheap_region_map(char const *path, char const *name, int64_t version, int64_t offset, unsigned options,
                        struct outheap_region_root *root, error *e)
{
  return map(path, name, version, offset, options, root, e) || of_file(e, path, name, version);
}

/* --- errors as text --------------------------------------------------------------------------------------------------
   Outheap_region.error_to_string says the same. */

struct reason { char const *kind, *what, *advice; };

static struct reason const reasons[] = {
  { "closure", "a function", "; ~closures:true copies functions, but not into images" },
  { "object", "an object", "; ~closures:true copies objects, but not into images" },
  { "lazy", "a lazy value that is not forced", "; force it before" },
  { "abstract", "an abstract block of C code", "" },
  { "custom", "a custom block", ", of a type that was not registered" },
  { "continuation", "a continuation", "" },
  { "extension constructor", "the constructor of an exception or of an extensible type", "" },
  { "foreign pointer", "a pointer to memory outside the heap", "" },
};

static int refused(struct outheap_region_error const *e, char *text, size_t size)
{
  char const *kind = e->text == NULL ? "" : e->text, *what = kind, *advice = "", *named = e->identifier;
  for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
    if (strcmp(kind, reasons[i].kind) == 0) {
      what = reasons[i].what;
      advice = reasons[i].advice;
    }
  bool nested = e->path[0] != 0, has_name = named[0] != 0;
  return snprintf(text, size, "cannot be copied: %s%s, %s%s%s%s%s", nested ? "at " : "the value itself",
                  e->path, what, has_name ? " \"" : "", named, has_name ? "\"" : "", advice);
}

static int in_use(struct outheap_region_error const *e, char *text, size_t size)
{
  static char const *const names[] = { "roots", "the heap", "other regions" };
  char from[64] = "";
  for (int i = 0; i < 3; i++)
    if (e->from >> i & 1) {
      strcat(from, from[0] == 0 ? ", from " : ", ");
      strcat(from, names[i]);
    }
  return snprintf(text, size, "in use: %zu %s%s", e->number, e->number == 1 ? "pointer" : "pointers", from);
}

size_t outheap_region_error_text(struct outheap_region_error const *e, char *text, size_t size)
{
  char const *file = e->file, *between = file[0] == 0 ? "" : ": ", *what = e->text == NULL ? "" : e->text;
  bool has_name = e->identifier[0] != 0;
  int n = 0;
  switch (e->kind) {
    case OUTHEAP_REGION_OK: n = snprintf(text, size, "no error"); break;
    case OUTHEAP_REGION_UNSUPPORTED: n = snprintf(text, size, "%s%s%s", file, between, what); break;
    case OUTHEAP_REGION_NO_MEMORY: n = snprintf(text, size, "no memory"); break;
    case OUTHEAP_REGION_TOO_MANY:
      n = snprintf(text, size, "too many regions (there may be 32,768), or no address space");
      break;
    case OUTHEAP_REGION_REFUSED: n = refused(e, text, size); break;
    case OUTHEAP_REGION_IN_USE: n = in_use(e, text, size); break;
    case OUTHEAP_REGION_GONE: n = snprintf(text, size, "the region was deleted or revoked before"); break;
    case OUTHEAP_REGION_SYSTEM:
      n = snprintf(text, size, "%s%s%s: %s", file, between, what, strerror((int)e->number));
      break;
    case OUTHEAP_REGION_DAMAGED: n = snprintf(text, size, "%s%sdamaged: %s", file, between, what); break;
    case OUTHEAP_REGION_OTHER_PROGRAM:
      n = snprintf(text, size, "%s%smade by another program: %s%s%s%s%s%s", file, between, what, has_name ? " \"" : "",
                   e->identifier, has_name ? "\"" : "", e->wanted[0] == 0 ? "" : ", wanted ", e->wanted);
      break;
    case OUTHEAP_REGION_OTHER_SCHEMA:
      n = snprintf(text, size, "%s%sholds schema \"%s\" version %" PRId64 ", wanted \"%s\" version %" PRId64, file,
                   between, e->identifier, (int64_t)e->number, e->wanted, e->wanted_version);
      break;
    case OUTHEAP_REGION_MISSING:
      n = snprintf(text, size, "%s%sneeds an image that is not mapped: the one with digest %s", file, between,
                   e->identifier);
  }
  return n < 0 ? 0 : (size_t)n;
}
