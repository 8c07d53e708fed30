/* SPDX-License-Identifier: MIT */
/* The functions of outheap_region.h, but for custom blocks. */
#include "region_config.h"
#include "outheap_region.h"
#include "region_copy.h"
#include "region_custom.h"
#include "region_image_map.h"
#include "region_image_save.h"
#include "region_marker.h"
#include "region_record.h"
#include "region_share.h"
#include <caml/memory.h>
#include <caml/signals.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#if OUTHEAP_REGION_OCAML5
#include <caml/major_gc.h>
#endif

typedef struct outheap_region_record record;
typedef struct outheap_region_error error;

static bool unsupported(error *e, char const *why)
{
  return outheap_region_error_is(e, OUTHEAP_REGION_UNSUPPORTED, why);
}

static void clear(error *e) { *e = (error){ .kind = OUTHEAP_REGION_OK }; }

static bool can_track(error *e)
{
  return outheap_region_marker_can_track() ||
         unsupported(e, "~writes:`Track: with OCaml 5 and the runtime variant _outheap only");
}

/* A region that was just made, with one handle. False: it ends. */
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
  if (done && !outheap_region_marker_declare(c->base, c->mapped))
    done = outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
  caml_leave_blocking_section();
  if (!done) return NULL;
  record r = { .extent = c->extent, .base = c->base, .bytes = c->mapped, .used = c->used, .blocks = c->blocks,
               .root = (uintptr_t)c->copied, .tracked = track, .proxy = c->proxy, .owns_proxy = true };
  record *result = outheap_region_record_add(&r, &c->error);
  if (result == NULL) outheap_region_marker_withdraw(c->base, c->mapped);
  return result;
}

bool outheap_region_copy(value v, unsigned options, struct outheap_region_root *root, error *e)
{
  CAMLparam1(v);
  bool share = options & OUTHEAP_REGION_MAX_SHARING, track = options & OUTHEAP_REGION_TRACK;
  struct outheap_region_copy c = { .root = &v, .closures = options & OUTHEAP_REGION_CLOSURES };
  uint64_t waited;
  c.lazies = c.closures && track;
  clear(e);
  if (track && share) unsupported(e, "~sharing:`Max with ~writes:`Track: what is written to must stay apart");
  if (e->kind != OUTHEAP_REGION_OK || (track && !can_track(e))) CAMLreturnT(bool, false);
  c.proxy = malloc(sizeof *c.proxy);
  if (c.proxy == NULL) CAMLreturnT(bool, outheap_region_error_is(e, OUTHEAP_REGION_NO_MEMORY, NULL));
  outheap_region_custom_start(c.proxy);
  bool copied = outheap_region_copy_make(&c, &waited);
  record *r = copied ? keep(&c, share, track) : NULL;
  if (copied && r == NULL) outheap_region_copy_drop(&c);
  if (r == NULL) {
    free(c.proxy);
    *e = c.error;
  }
  if (r == NULL || (track && !begin_tracking(r, e))) CAMLreturnT(bool, false);
  *root = (struct outheap_region_root){ r, c.copied };
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

static void collect(void)
{
#if OCAML_VERSION >= 50200
  for (int i = 0; i < 3; i++) caml_finish_major_cycle(0 /* without compaction */);
#elif OUTHEAP_REGION_OCAML5
  for (int i = 0; i < 3; i++) caml_finish_major_cycle();
#endif
}

bool outheap_region_delete(outheap_region r, error *e)
{
  clear(e);
  while (!outheap_region_record_delete_begin(r, e)) {
    if (e->kind != OUTHEAP_REGION_OK) return false;
    collect(); /* another deletion: it is helped */
  }
  collect();
  return outheap_region_record_delete_end(r, e);
}

bool outheap_region_revoke(outheap_region r, error *e)
{
  clear(e);
  return outheap_region_record_revoke(r, e);
}

/* --- images ------------------------------------------------------------------------------------------------------- */

static bool schema_of(char const *name, int64_t version, struct outheap_region_image_schema *s, error *e)
{
  memset(s, 0, sizeof *s);
  if (strlen(name) >= sizeof s->name)
    return unsupported(e, "a schema's name has at most 127 bytes, none of them zero");
  strcpy(s->name, name);
  s->version = (uint64_t)version;
  return true;
}

static bool pin(record *r, error *e)
{
  if (!r->is_image) return unsupported(e, "~needs: a region that was not mapped from a file");
  if (r->tracked) return unsupported(e, "~needs: a region that is written to");
  return outheap_region_record_pin(r) || outheap_region_error_is(e, OUTHEAP_REGION_GONE, NULL);
}

bool outheap_region_save(value v, char const *path, char const *name, int64_t version, unsigned options,
                         outheap_region const *needs, size_t count, error *e)
{
  CAMLparam1(v);
  struct outheap_region_image_schema s;
  uint64_t waited;
  size_t pinned = 0;
  clear(e);
  record **list = malloc((count + 1) * sizeof *list);
  if (list == NULL) outheap_region_error_is(e, OUTHEAP_REGION_NO_MEMORY, NULL);
  bool done = list != NULL && schema_of(name, version, &s, e);
  for (; done && pinned < count; pinned += done) done = pin(list[pinned] = needs[pinned], e);
  done = done && outheap_region_image_save(&v, path, &s, list, count, options & OUTHEAP_REGION_MAX_SHARING, e, &waited);
  for (size_t i = 0; i < pinned; i++) outheap_region_record_unpin(list[i]);
  free(list);
  CAMLreturnT(bool, done);
}

bool outheap_region_map(char const *path, char const *name, int64_t version, int64_t offset, unsigned options,
                        struct outheap_region_root *root, error *e)
{
  struct outheap_region_image_schema s;
  bool track = options & OUTHEAP_REGION_TRACK;
  clear(e);
  if (offset >= 0 && (offset & 0xffff) != 0) return unsupported(e, "an offset that is no multiple of 64 KiB");
  if (!schema_of(name, version, &s, e) || (track && !can_track(e))) return false;
  record *r = outheap_region_image_map(path, offset, &s, options & OUTHEAP_REGION_FULL, track, e);
  if (r == NULL || (track && !begin_tracking(r, e))) return false;
  *root = (struct outheap_region_root){ r, (value)r->root };
  return true;
}
