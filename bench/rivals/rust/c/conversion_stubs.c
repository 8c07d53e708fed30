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

value read_list_int(value l)
{
  vector v = {0};
  for (; l != Val_emptylist; l = Field(l, 1)) *(intnat *)push(&v, sizeof(intnat)) = Long_val(Field(l, 0));
  return replace(&ints, v);
}

value read_list_float(value l)
{
  vector v = {0};
  for (; l != Val_emptylist; l = Field(l, 1)) *(double *)push(&v, sizeof(double)) = Double_val(Field(l, 0));
  return replace(&floats, v);
}

value read_list_string(value l)
{
  vector v = {0};
  for (; l != Val_emptylist; l = Field(l, 1)) *(text *)push(&v, sizeof(text)) = text_of(Field(l, 0));
  return replace_texts(v);
}

value read_array_int(value a)
{
  mlsize_t n = Wosize_val(a);
  vector v = of_capacity(n, sizeof(intnat));
  for (mlsize_t i = 0; i < n; i++) *(intnat *)push(&v, sizeof(intnat)) = Long_val(Field(a, i));
  return replace(&ints, v);
}

value read_array_float(value a)
{
  mlsize_t n = Wosize_val(a) / Double_wosize;
  vector v = of_capacity(n, sizeof(double));
  for (mlsize_t i = 0; i < n; i++) *(double *)push(&v, sizeof(double)) = Double_flat_field(a, i);
  return replace(&floats, v);
}

value read_array_string(value a)
{
  mlsize_t n = Wosize_val(a);
  vector v = of_capacity(n, sizeof(text));
  for (mlsize_t i = 0; i < n; i++) *(text *)push(&v, sizeof(text)) = text_of(Field(a, i));
  return replace_texts(v);
}

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

value make_list_int(value unit)
{
  CAMLparam1(unit);
  CAMLlocal2(list, head);
  list = Val_emptylist;
  for (size_t i = ints.length; i-- > 0;) {
    head = Val_long(((intnat *)ints.items)[i]);
    list = cons(&head, &list);
  }
  CAMLreturn(list);
}

value make_list_float(value unit)
{
  CAMLparam1(unit);
  CAMLlocal2(list, head);
  list = Val_emptylist;
  for (size_t i = floats.length; i-- > 0;) {
    head = caml_copy_double(((double *)floats.items)[i]);
    list = cons(&head, &list);
  }
  CAMLreturn(list);
}

value make_list_string(value unit)
{
  CAMLparam1(unit);
  CAMLlocal2(list, head);
  list = Val_emptylist;
  for (size_t i = texts.length; i-- > 0;) {
    head = string_of(((text *)texts.items)[i]);
    list = cons(&head, &list);
  }
  CAMLreturn(list);
}

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
