/* SPDX-License-Identifier: MIT */
/* The primitives of the module Outheap_region. */
#include "region_record.h"
#include "region_snapshot.h"
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/custom.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

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

/* Makes a handle without a record. It is made before the record is, since this may collect. */
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
  CAMLlocal5(a, b, c, f, v);
  a = caml_copy_string(e->text == NULL ? "" : e->text);
  f = caml_copy_string(e->file);
  switch (e->kind) {
    case OUTHEAP_REGION_UNSUPPORTED: {
      char text[512];
      outheap_region_error_text(e, text, sizeof text);
      a = caml_copy_string(text);
      v = fields(0, a, 0, 0);
      break;
    }
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
      v = fields(3, f, a, b);
      break;
    case OUTHEAP_REGION_DAMAGED: v = fields(4, f, a, 0); break;
    case OUTHEAP_REGION_OTHER_PROGRAM:
      b = caml_copy_string(e->identifier);
      c = caml_copy_string(e->wanted);
      v = caml_alloc(4, 5);
      Store_field(v, 0, f);
      Store_field(v, 1, a);
      Store_field(v, 2, b);
      Store_field(v, 3, c);
      break;
    case OUTHEAP_REGION_OTHER_SCHEMA:
      a = caml_copy_string(e->identifier);
      b = caml_copy_string(e->wanted);
      v = caml_alloc(5, 6);
      Store_field(v, 0, f);
      Store_field(v, 1, a);
      Store_field(v, 2, Val_long(e->number));
      Store_field(v, 3, b);
      Store_field(v, 4, Val_long(e->wanted_version));
      break;
    case OUTHEAP_REGION_MISSING:
      a = caml_copy_string(e->identifier);
      v = fields(7, f, a, 0);
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

/* `options` are those of outheap_region.h. */
value outheap_region_ml_copy(value v, value options)
{
  CAMLparam1(v);
  CAMLlocal1(handle);
  error e;
  struct outheap_region_root root;
  handle = new_handle();
  if (!outheap_region_copy(v, (unsigned)Int_val(options), &root, &e)) CAMLreturn(failed(&e));
  Record_val(handle) = root.region;
  CAMLreturn(root_of(handle, (uintptr_t)root.inside));
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

value outheap_region_ml_delete(value handle)
{
  CAMLparam1(handle);
  error e = { .kind = OUTHEAP_REGION_OK };
  CAMLreturn(outheap_region_delete(Record_val(handle), &e) ? ok(Val_unit) : failed(&e));
}

value outheap_region_ml_revoke(value handle)
{
  error e = { .kind = OUTHEAP_REGION_OK };
  return outheap_region_record_revoke(Record_val(handle), &e) ? ok(Val_unit) : failed(&e);
}

/* --- images ------------------------------------------------------------------------------------------------------- */

/* Copies a string to where the collector does not move it. */
static char *text_of(value s, error *e)
{
  char *p = strdup(String_val(s));
  if (p == NULL) outheap_region_error_is(e, OUTHEAP_REGION_NO_MEMORY, NULL);
  return p;
}

/* Copies both strings; the caller frees them. Returns NULL with an error. */
static char *names_of(value name, value path, char **schema, error *e)
{
  *schema = NULL;
  if (!caml_string_is_c_safe(path)) {
    outheap_region_error_system(e, "open", ENOENT);
    snprintf(e->file, sizeof e->file, "%s", String_val(path)); /* up to the zero */
  }
  else if ((*schema = text_of(name, e)) != NULL) return text_of(path, e);
  return NULL;
}

/* `schema` is a pair of name and version. */
value outheap_region_ml_save(value needs, value schema, value path, value options, value v)
{
  CAMLparam4(needs, schema, path, v);
  error e = { .kind = OUTHEAP_REGION_OK };
  mlsize_t n = Wosize_val(needs);
  char *name, *p = names_of(Field(schema, 0), path, &name, &e);
  outheap_region *list = p == NULL ? NULL : malloc((n + 1) * sizeof *list);
  if (p != NULL && list == NULL) outheap_region_error_is(&e, OUTHEAP_REGION_NO_MEMORY, NULL);
  if (list != NULL)
    for (mlsize_t i = 0; i < n; i++) list[i] = Record_val(Field(needs, i));
  bool done = list != NULL && outheap_region_save(v, p, name, Long_val(Field(schema, 1)), (unsigned)Int_val(options),
                                                  list, n, &e);
  free(list);
  free(name);
  free(p);
  CAMLreturn(done ? ok(Val_unit) : failed(&e));
}

/* `offset` is -1 for a whole file. */
value outheap_region_ml_map(value name, value version, value path, value options, value offset)
{
  CAMLparam5(name, version, path, options, offset);
  CAMLlocal1(handle);
  error e = { .kind = OUTHEAP_REGION_OK };
  struct outheap_region_root root;
  handle = new_handle();
  char *schema, *p = names_of(name, path, &schema, &e);
  bool done = p != NULL && outheap_region_map(p, schema, Long_val(version), Long_val(offset),
                                              (unsigned)Int_val(options), &root, &e);
  free(schema);
  free(p);
  if (!done) CAMLreturn(failed(&e));
  Record_val(handle) = root.region;
  CAMLreturn(root_of(handle, (uintptr_t)root.inside));
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

value outheap_region_ml_contains(value handle, value v)
{
  return Val_bool(outheap_region_contains(Record_val(handle), v));
}

value outheap_region_ml_is_in_region(value v)
{
  return Val_bool(Is_block(v) && outheap_region_record_is_at((uintptr_t)v));
}

value outheap_region_ml_address(value v) { return caml_copy_nativeint(Is_block(v) ? (intnat)v : 0); }

value outheap_region_ml_info(value handle)
{
  CAMLparam1(handle);
  CAMLlocal2(digest, result);
  record const *r = Record_val(handle);
  digest = caml_alloc_initialized_string(r->is_image ? 16 : 0, (char const *)r->digest);
  r = Record_val(handle);
  result = caml_alloc_small(8, 0);
  Field(result, 0) = Val_int(__atomic_load_n(&r->state, __ATOMIC_ACQUIRE));
  Field(result, 1) = Val_long(r->bytes);
  Field(result, 2) = Val_long(r->used / sizeof(value));
  Field(result, 3) = Val_long(r->blocks);
  Field(result, 4) = (value)((uintptr_t)r->base | 1);
  Field(result, 5) = digest;
  Field(result, 6) = Val_bool(r->is_image && (uintptr_t)r->base != r->canonical);
  Field(result, 7) = Val_long(r->tracked ? (intnat)outheap_region_marker_tracked(r->base) : -1);
  CAMLreturn(result);
}

value outheap_region_ml_stats(value unit)
{
  struct outheap_region_record_stats s;
  (void)unit;
  struct outheap_region_snapshot_counts c = outheap_region_snapshot_count();
  outheap_region_record_read_stats(&s);
  value v = caml_alloc_small(8, 0);
  Field(v, 0) = Val_long(s.live);
  Field(v, 1) = Val_long(s.bytes);
  Field(v, 2) = Val_long(s.revoked);
  Field(v, 3) = Val_long(s.resting);
  Field(v, 4) = Val_long(s.deleted);
  Field(v, 5) = Val_long(s.unused);
  Field(v, 6) = Val_long(c.second);
  Field(v, 7) = Val_long(c.longest);
  return v;
}

value outheap_region_ml_start(value unit)
{
  (void)unit;
  outheap_region_fault_start();
  return Val_bool(outheap_region_marker_can_tell());
}
