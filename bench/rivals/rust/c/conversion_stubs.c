/* SPDX-License-Identifier: MIT */
/* Vectors in C, made from OCaml's lists and arrays, and the other way round. */
#include <caml/alloc.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { char *bytes; size_t length; } text;
typedef struct { intnat id; double weight; text name; } record;

/* A vector grows by doubling, as Rust's does. */
typedef struct { void *items; size_t length, capacity; } vector;

static _Noreturn void no_memory(void)
{
  fputs("no memory\n", stderr);
  abort();
}

static void *push(vector *v, size_t size)
{
  if (v->length == v->capacity) {
    v->capacity = v->capacity ? 2 * v->capacity : 4;
    v->items = realloc(v->items, v->capacity * size);
    if (!v->items) no_memory();
  }
  return (char *)v->items + size * v->length++;
}

static vector of_capacity(size_t n, size_t size)
{
  vector v = {n ? malloc(n * size) : NULL, 0, n};
  if (n && !v.items) no_memory();
  return v;
}

static text text_of(value s)
{
  text t = {NULL, caml_string_length(s)};
  if (t.length) {
    t.bytes = malloc(t.length);
    if (!t.bytes) no_memory();
    memcpy(t.bytes, String_val(s), t.length);
  }
  return t;
}

static value string_of(text t) { return caml_alloc_initialized_string(t.length, t.bytes ? t.bytes : ""); }

static vector ints, floats, texts, records;

static value replace(vector *kept, vector v)
{
  free(kept->items);
  *kept = v;
  return Val_long(v.length);
}

static value replace_texts(vector v)
{
  text *t = texts.items;
  for (size_t i = 0; i < texts.length; i++) free(t[i].bytes);
  return replace(&texts, v);
}

static value replace_records(vector v)
{
  record *r = records.items;
  for (size_t i = 0; i < records.length; i++) free(r[i].name.bytes);
  return replace(&records, v);
}

/* --- from OCaml --- */

static value replace_ints(vector v) { return replace(&ints, v); }
static value replace_floats(vector v) { return replace(&floats, v); }

#define READ_LIST(name, type, of, kept)                                                                      \
  value read_list_##name(value l)                                                                            \
  {                                                                                                          \
    vector v = {0};                                                                                          \
    for (; l != Val_emptylist; l = Field(l, 1)) *(type *)push(&v, sizeof(type)) = of(Field(l, 0));           \
    return replace_##kept(v);                                                                                \
  }
READ_LIST(int, intnat, Long_val, ints)
READ_LIST(float, double, Double_val, floats)
READ_LIST(string, text, text_of, texts)

#define READ_ARRAY(name, type, size, element, kept)                                                          \
  value read_array_##name(value a)                                                                           \
  {                                                                                                          \
    mlsize_t n = size;                                                                                       \
    vector v = of_capacity(n, sizeof(type));                                                                 \
    for (mlsize_t i = 0; i < n; i++) *(type *)push(&v, sizeof(type)) = element;                              \
    return replace_##kept(v);                                                                                \
  }
READ_ARRAY(int, intnat, Wosize_val(a), Long_val(Field(a, i)), ints)
READ_ARRAY(float, double, Wosize_val(a) / Double_wosize, Double_flat_field(a, i), floats)
READ_ARRAY(string, text, Wosize_val(a), text_of(Field(a, i)), texts)

value read_records(value a)
{
  mlsize_t n = Wosize_val(a);
  vector v = of_capacity(n, sizeof(record));
  for (mlsize_t i = 0; i < n; i++) {
    value r = Field(a, i);
    *(record *)push(&v, sizeof(record)) =
      (record){Long_val(Field(r, 0)), Double_val(Field(r, 1)), text_of(Field(r, 2))};
  }
  return replace_records(v);
}

/* --- to OCaml --- */

static value cons(value *head, value *tail)
{
  value cell = caml_alloc_small(2, Tag_cons);
  Field(cell, 0) = *head;
  Field(cell, 1) = *tail;
  return cell;
}

#define MAKE_LIST(name, type, all, made)                                                                     \
  value make_list_##name(value unit)                                                                         \
  {                                                                                                          \
    CAMLparam1(unit);                                                                                        \
    CAMLlocal2(list, head);                                                                                  \
    list = Val_emptylist;                                                                                    \
    for (size_t i = all.length; i-- > 0;) {                                                                  \
      head = made(((type *)all.items)[i]);                                                                   \
      list = cons(&head, &list);                                                                             \
    }                                                                                                        \
    CAMLreturn(list);                                                                                        \
  }
MAKE_LIST(int, intnat, ints, Val_long)
MAKE_LIST(float, double, floats, caml_copy_double)
MAKE_LIST(string, text, texts, string_of)

value make_array_int(value unit)
{
  CAMLparam1(unit);
  CAMLlocal1(array);
  array = caml_alloc(ints.length, 0);
  /* Immediates: no barrier is needed. */
  for (size_t i = 0; i < ints.length; i++) Field(array, i) = Val_long(((intnat *)ints.items)[i]);
  CAMLreturn(array);
}

value make_array_float(value unit)
{
  CAMLparam1(unit);
  CAMLlocal1(array);
  array = caml_alloc_float_array(floats.length);
  for (size_t i = 0; i < floats.length; i++) Store_double_flat_field(array, i, ((double *)floats.items)[i]);
  CAMLreturn(array);
}

value make_array_string(value unit)
{
  CAMLparam1(unit);
  CAMLlocal1(array);
  array = caml_alloc(texts.length, 0);
  for (size_t i = 0; i < texts.length; i++) Store_field(array, i, string_of(((text *)texts.items)[i]));
  CAMLreturn(array);
}

value make_records(value unit)
{
  CAMLparam1(unit);
  CAMLlocal4(array, r, weight, name);
  array = caml_alloc(records.length, 0);
  for (size_t i = 0; i < records.length; i++) {
    record *from = (record *)records.items + i;
    weight = caml_copy_double(from->weight);
    name = string_of(from->name);
    r = caml_alloc_small(3, 0);
    Field(r, 0) = Val_long(from->id);
    Field(r, 1) = weight;
    Field(r, 2) = name;
    Store_field(array, i, r);
  }
  CAMLreturn(array);
}
