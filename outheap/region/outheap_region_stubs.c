/* SPDX-License-Identifier: MIT */
/* The primitives of the module Outheap_region. */
#include "region_config.h"
#include "region_copy.h"
#include "region_fault.h"
#include "region_image_map.h"
#include "region_image_save.h"
#include "region_marker.h"
#include "region_record.h"
#include "region_share.h"
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/custom.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/signals.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef struct outheap_region_record record;
typedef struct outheap_region_error error;

/* --- handles ---------------------------------------------------------------------------------------------------------
   A custom block that owns one handle of a record. */

#define Record_val(v) (*(record **)Data_custom_val(v))

static void finalize(value v)
{
  if (Record_val(v) != NULL) outheap_region_record_release(Record_val(v));
}

static int compare(value a, value b)
{
  uintptr_t x = (uintptr_t)Record_val(a), y = (uintptr_t)Record_val(b);
  return x < y ? -1 : x > y;
}

static intnat hash(value v) { return (intnat)((uintptr_t)Record_val(v) >> 4); }

static struct custom_operations operations = {
  "outheap.region", finalize, compare, hash, custom_serialize_default, custom_deserialize_default,
  custom_compare_ext_default, custom_fixed_length_default
};

/* Before the record is there, since this may collect. */
static value new_handle(void)
{
  value h = caml_alloc_custom(&operations, sizeof(record *), 0, 1);
  Record_val(h) = NULL;
  return h;
}

/* --- results ------------------------------------------------------------------------------------------------------ */

static value ok(value v)
{
  CAMLparam1(v);
  value r = caml_alloc_small(1, 0);
  Field(r, 0) = v;
  CAMLreturn(r);
}

static value sources(unsigned from)
{
  CAMLparam0();
  CAMLlocal2(list, cell);
  list = Val_emptylist;
  for (int i = 2; i >= 0; i--)
    if (from >> i & 1) {
      cell = caml_alloc_small(2, 0);
      Field(cell, 0) = Val_int(i);
      Field(cell, 1) = list;
      list = cell;
    }
  CAMLreturn(list);
}

static value fields(tag_t tag, value a, value b, value c)
{
  CAMLparam3(a, b, c);
  mlsize_t n = c != 0 ? 3 : b != 0 ? 2 : 1;
  value r = caml_alloc_small(n, tag);
  Field(r, 0) = a;
  if (n > 1) Field(r, 1) = b;
  if (n > 2) Field(r, 2) = c;
  CAMLreturn(r);
}

/* `Error e`. The order of the constructors is that of Outheap_region.error. */
static value failed(error const *e)
{
  CAMLparam0();
  CAMLlocal4(a, b, c, v);
  a = caml_copy_string(e->text == NULL ? "" : e->text);
  switch (e->kind) {
    case OUTHEAP_REGION_UNSUPPORTED: v = fields(0, a, 0, 0); break;
    case OUTHEAP_REGION_NO_MEMORY: v = Val_int(0); break;
    case OUTHEAP_REGION_TOO_MANY: v = Val_int(1); break;
    case OUTHEAP_REGION_REFUSED:
      b = caml_copy_string(e->identifier);
      c = caml_copy_string(e->path);
      v = fields(1, a, b, c);
      break;
    case OUTHEAP_REGION_IN_USE:
      b = sources(e->from);
      v = fields(2, Val_long(e->number), b, 0);
      break;
    case OUTHEAP_REGION_GONE: v = Val_int(2); break;
    case OUTHEAP_REGION_SYSTEM:
      b = caml_copy_string(strerror((int)e->number));
      v = fields(3, a, b, 0);
      break;
    case OUTHEAP_REGION_DAMAGED: v = fields(4, a, 0, 0); break;
    case OUTHEAP_REGION_OTHER_PROGRAM:
      b = caml_copy_string(e->identifier);
      v = fields(5, a, b, 0);
      break;
    case OUTHEAP_REGION_OTHER_SCHEMA:
      a = caml_copy_string(e->identifier);
      v = fields(6, a, Val_long(e->number), 0);
      break;
    case OUTHEAP_REGION_MISSING:
      a = caml_copy_string(e->identifier);
      v = fields(7, a, 0, 0);
      break;
    default: v = Val_int(0);
  }
  value r = caml_alloc_small(1, 1);
  Field(r, 0) = v;
  CAMLreturn(r);
}

/* `Ok { region; word; block }` */
static value root_of(value handle, uintptr_t word)
{
  CAMLparam1(handle);
  CAMLlocal1(r);
  r = caml_alloc_small(3, 0);
  Field(r, 0) = handle;
  Field(r, 1) = (value)(word | 1); /* addresses are even: half of it, as a number */
  Field(r, 2) = Val_bool((word & 1) == 0);
  CAMLreturn(ok(r));
}

/* --- copy, get ---------------------------------------------------------------------------------------------------- */

value outheap_region_ml_copy(value v, value share, value closures)
{
  CAMLparam1(v);
  CAMLlocal1(handle);
  struct outheap_region_copy c = { .root = &v, .closures = Bool_val(closures) };
  error e = { .kind = OUTHEAP_REGION_OK };
  uint64_t waited;
  handle = new_handle();
  if (!outheap_region_copy(&c, &waited)) CAMLreturn(failed(&c.error));
  bool done = true;
  caml_enter_blocking_section(); /* the copy is ours alone */
  if (Bool_val(share)) done = outheap_region_share(&c, NULL);
  if (done && mprotect(c.base, c.mapped, PROT_READ) != 0)
    done = outheap_region_error_system(&c.error, "mprotect", errno);
  if (done && !outheap_region_marker_declare(c.base, c.mapped))
    done = outheap_region_error_is(&c.error, OUTHEAP_REGION_NO_MEMORY, NULL);
  caml_leave_blocking_section();
  if (!done) e = c.error;
  else {
    record r = { .extent = c.extent, .base = c.base, .bytes = c.mapped, .used = c.used, .blocks = c.blocks,
                 .root = (uintptr_t)c.copied };
    Record_val(handle) = outheap_region_record_add(&r, &e);
    done = Record_val(handle) != NULL;
    if (!done) outheap_region_marker_withdraw(c.base, c.mapped);
  }
  if (!done) {
    outheap_region_copy_drop(&c);
    CAMLreturn(failed(&e));
  }
  CAMLreturn(root_of(handle, (uintptr_t)c.copied));
}

value outheap_region_ml_get(value handle, value word, value block)
{
  if (!outheap_region_record_use(Record_val(handle))) {
    value const *deleted = caml_named_value("Outheap_region.Deleted");
    if (deleted == NULL) caml_failwith("Outheap_region.Deleted");
    caml_raise_constant(*deleted);
  }
  return Bool_val(block) ? word - 1 : word;
}

/* --- the end of regions ------------------------------------------------------------------------------------------- */

/* Ok false: somebody else's deletion is going on. */
value outheap_region_ml_delete_begin(value handle)
{
  error e = { .kind = OUTHEAP_REGION_OK };
  bool begun = outheap_region_record_delete_begin(Record_val(handle), &e);
  return begun || e.kind == OUTHEAP_REGION_OK ? ok(Val_bool(begun)) : failed(&e);
}

value outheap_region_ml_delete_end(value handle)
{
  error e = { .kind = OUTHEAP_REGION_OK };
  return outheap_region_record_delete_end(Record_val(handle), &e) ? ok(Val_unit) : failed(&e);
}

value outheap_region_ml_revoke(value handle)
{
  error e = { .kind = OUTHEAP_REGION_OK };
  return outheap_region_record_revoke(Record_val(handle), &e) ? ok(Val_unit) : failed(&e);
}

/* --- images ------------------------------------------------------------------------------------------------------- */

static bool schema_of(value name, value version, struct outheap_region_image_schema *s)
{
  memset(s, 0, sizeof *s);
  if (caml_string_length(name) >= sizeof s->name || !caml_string_is_c_safe(name)) return false;
  strcpy(s->name, String_val(name));
  s->version = (uint64_t)Long_val(version);
  return true;
}

static char *path_of(value path, error *e)
{
  if (!caml_string_is_c_safe(path)) outheap_region_error_system(e, "open", ENOENT);
  else {
    char *p = strdup(String_val(path));
    if (p != NULL) return p;
    outheap_region_error_is(e, OUTHEAP_REGION_NO_MEMORY, NULL);
  }
  return NULL;
}

/* `schema`: name and version */
value outheap_region_ml_save(value needs, value schema, value path, value share, value v)
{
  CAMLparam4(needs, schema, path, v);
  struct outheap_region_image_schema s;
  error e = { .kind = OUTHEAP_REGION_OK };
  mlsize_t n = Wosize_val(needs);
  uint64_t waited;
  mlsize_t pinned = 0;
  bool done = false;
  if (!schema_of(Field(schema, 0), Field(schema, 1), &s))
    outheap_region_error_is(&e, OUTHEAP_REGION_UNSUPPORTED, "a schema's name has at most 127 bytes, none of them zero");
  else {
    char *p = path_of(path, &e);
    record **list = p == NULL ? NULL : malloc((n + 1) * sizeof *list);
    if (p != NULL && list == NULL) outheap_region_error_is(&e, OUTHEAP_REGION_NO_MEMORY, NULL);
    bool good = list != NULL;
    for (mlsize_t i = 0; good && i < n; i++) {
      list[i] = Record_val(Field(needs, i));
      if (!list[i]->is_image) good = outheap_region_error_is(&e, OUTHEAP_REGION_UNSUPPORTED,
                                                             "~needs: a region that was not mapped from a file");
      else if (!outheap_region_record_pin(list[i])) good = outheap_region_error_is(&e, OUTHEAP_REGION_GONE, NULL);
      else pinned = i + 1;
    }
    done = good && outheap_region_image_save(&v, p, &s, list, n, Bool_val(share), &e, &waited);
    for (mlsize_t i = 0; i < pinned; i++) outheap_region_record_unpin(list[i]);
    free(list);
    free(p);
  }
  CAMLreturn(done ? ok(Val_unit) : failed(&e));
}

/* `offset`: -1 for a whole file */
value outheap_region_ml_map(value name, value version, value path, value full, value offset)
{
  CAMLparam5(name, version, path, full, offset);
  CAMLlocal1(handle);
  struct outheap_region_image_schema s;
  error e = { .kind = OUTHEAP_REGION_OK };
  record *r = NULL;
  handle = new_handle();
  if (!schema_of(name, version, &s))
    outheap_region_error_is(&e, OUTHEAP_REGION_UNSUPPORTED, "a schema's name has at most 127 bytes, none of them zero");
  else {
    char *p = path_of(path, &e);
    if (p != NULL) r = outheap_region_image_map(p, Long_val(offset), &s, Bool_val(full), &e);
    free(p);
  }
  if (r == NULL) CAMLreturn(failed(&e));
  Record_val(handle) = r;
  CAMLreturn(root_of(handle, r->root));
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

value outheap_region_ml_contains(value handle, value v)
{
  record const *r = Record_val(handle);
  return Val_bool(Is_block(v) && (uintptr_t)v - (uintptr_t)r->base < r->bytes);
}

value outheap_region_ml_is_in_region(value v)
{
  record *r = Is_block(v) ? outheap_region_record_at((uintptr_t)v) : NULL;
  if (r != NULL) outheap_region_record_release(r);
  return Val_bool(r != NULL);
}

value outheap_region_ml_address(value v) { return caml_copy_nativeint(Is_block(v) ? (intnat)v : 0); }

value outheap_region_ml_info(value handle)
{
  CAMLparam1(handle);
  CAMLlocal2(digest, result);
  record const *r = Record_val(handle);
  digest = caml_alloc_initialized_string(r->is_image ? 16 : 0, (char const *)r->digest);
  r = Record_val(handle);
  result = caml_alloc_small(7, 0);
  Field(result, 0) = Val_int(__atomic_load_n(&r->state, __ATOMIC_ACQUIRE));
  Field(result, 1) = Val_long(r->bytes);
  Field(result, 2) = Val_long(r->used / sizeof(value));
  Field(result, 3) = Val_long(r->blocks);
  Field(result, 4) = (value)((uintptr_t)r->base | 1);
  Field(result, 5) = digest;
  Field(result, 6) = Val_bool(r->is_image && (uintptr_t)r->base != r->canonical);
  CAMLreturn(result);
}

value outheap_region_ml_stats(value unit)
{
  struct outheap_region_record_sums s;
  (void)unit;
  outheap_region_record_sum(&s);
  value v = caml_alloc_small(6, 0);
  Field(v, 0) = Val_long(s.live);
  Field(v, 1) = Val_long(s.bytes);
  Field(v, 2) = Val_long(s.revoked);
  Field(v, 3) = Val_long(s.resting);
  Field(v, 4) = Val_long(s.deleted);
  Field(v, 5) = Val_long(s.unused);
  return v;
}

value outheap_region_ml_start(value unit)
{
  (void)unit;
  outheap_region_fault_start();
  return Val_bool(outheap_region_marker_can_tell());
}
