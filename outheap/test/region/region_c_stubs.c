/* SPDX-License-Identifier: MIT */
/* What C code does with regions by itself. Nothing but public headers. */
#include <caml/alloc.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <errno.h>
#include <outheap_region.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

static char wrong[256]; /* the first expectation that failed */

static void expect(bool good, char const *what)
{
  if (!good && wrong[0] == 0) snprintf(wrong, sizeof wrong, "%s", what);
}
#define EXPECT(c) expect(c, #c)

static value result(void)
{
  value v = caml_copy_string(wrong);
  wrong[0] = 0;
  return v;
}

/* The length of a list of pairs (i, text of i); -1: it is another one. */
static long length(value list)
{
  long n = 0;
  char text[32];
  for (; Is_block(list); list = Field(list, 1), n++) {
    snprintf(text, sizeof text, "%ld", n);
    if (Field(Field(list, 0), 0) != Val_long(n) || strcmp(String_val(Field(Field(list, 0), 1)), text) != 0) return -1;
  }
  return n;
}

value region_c_life(value v)
{
  CAMLparam1(v);
  CAMLlocal2(held, other);
  struct outheap_region_root r, again;
  struct outheap_region_error e;
  long n = length(v);
  EXPECT(outheap_region_copy(v, 0, &r, &e) && e.kind == OUTHEAP_REGION_OK);
  held = outheap_region_get(&r);
  EXPECT(held != 0 && length(held) == n && length(v) == n);
  EXPECT(outheap_region_contains(r.region, held) && !outheap_region_contains(r.region, v));
  EXPECT(!outheap_region_contains(r.region, Val_int(3)));
  EXPECT(outheap_region_copy(held, OUTHEAP_REGION_MAX_SHARING, &again, &e));
  other = outheap_region_get(&again);
  EXPECT(length(other) == n);
  outheap_region_release(again.region);
  other = Val_unit;
  bool deleted = outheap_region_delete(r.region, &e);
  EXPECT(!deleted && (e.kind == OUTHEAP_REGION_UNSUPPORTED ||
                      (e.kind == OUTHEAP_REGION_IN_USE && (e.from & OUTHEAP_REGION_FROM_ROOTS) && e.number >= 1)));
  EXPECT(length(outheap_region_get(&r)) == n);
  bool can = e.kind == OUTHEAP_REGION_IN_USE;
  held = Val_unit;
  outheap_region_retain(r.region);
  outheap_region_release(r.region);
  if (can) {
    EXPECT(outheap_region_delete(r.region, &e));
    EXPECT(outheap_region_get(&r) == 0);
    EXPECT(!outheap_region_delete(r.region, &e) && e.kind == OUTHEAP_REGION_GONE);
    EXPECT(!outheap_region_revoke(r.region, &e) && e.kind == OUTHEAP_REGION_GONE);
  }
  outheap_region_release(r.region);
  if (can) {
    EXPECT(outheap_region_copy(v, 0, &r, &e) && outheap_region_revoke(r.region, &e) && outheap_region_get(&r) == 0);
    outheap_region_release(r.region);
  }
  /* an immediate */
  EXPECT(outheap_region_copy(Val_int(5), 0, &r, &e) && outheap_region_get(&r) == Val_int(5));
  outheap_region_release(r.region);
  CAMLreturn(result());
}

value region_c_images(value v, value path)
{
  CAMLparam2(v, path);
  CAMLlocal2(pair, held);
  struct outheap_region_root r, second;
  struct outheap_region_error e;
  char first[512], other[520];
  snprintf(first, sizeof first, "%s", String_val(path));
  snprintf(other, sizeof other, "%s.2", first);
  long n = length(v);
  EXPECT(outheap_region_save(v, first, "c", 7, 0, NULL, 0, &e));
  EXPECT(outheap_region_map(first, "c", 7, -1, OUTHEAP_REGION_FULL, &r, &e));
  held = outheap_region_get(&r);
  EXPECT(length(held) == n);
  pair = caml_alloc(2, 0);
  Store_field(pair, 0, held);
  EXPECT(outheap_region_save(pair, other, "c2", 1, OUTHEAP_REGION_MAX_SHARING, &r.region, 1, &e));
  EXPECT(outheap_region_map(other, "c2", 1, 0, 0, &second, &e));
  EXPECT(Field(outheap_region_get(&second), 0) == held);
  outheap_region_release(second.region);
  EXPECT(!outheap_region_map(first, "c", 8, -1, 0, &second, &e) && e.kind == OUTHEAP_REGION_OTHER_SCHEMA);
  EXPECT(strcmp(e.identifier, "c") == 0 && e.number == 7);
  EXPECT(!outheap_region_map(first, "c", 7, 5, 0, &second, &e) && e.kind == OUTHEAP_REGION_UNSUPPORTED);
  remove(other);
  EXPECT(!outheap_region_map(other, "c", 7, -1, 0, &second, &e) && e.kind == OUTHEAP_REGION_SYSTEM);
  EXPECT(e.number == ENOENT && strcmp(e.text, "open") == 0);
  outheap_region_release(r.region);
  CAMLreturn(result());
}

/* `f`: a function, which is refused. */
value region_c_errors(value f, value path)
{
  CAMLparam2(f, path);
  CAMLlocal2(v, held);
  struct outheap_region_root r;
  struct outheap_region_error e;
  char file[512], name[200];
  snprintf(file, sizeof file, "%s", String_val(path));
  v = caml_alloc(3, 0);
  Store_field(v, 2, f);
  EXPECT(!outheap_region_copy(v, 0, &r, &e) && e.kind == OUTHEAP_REGION_REFUSED);
  EXPECT(strcmp(e.text, "closure") == 0 && strcmp(e.path, ".2") == 0);
  EXPECT(outheap_region_copy(v, OUTHEAP_REGION_CLOSURES, &r, &e));
  held = outheap_region_get(&r);
  EXPECT(!outheap_region_save(Val_unit, file, "c", 1, 0, &r.region, 1, &e) && e.kind == OUTHEAP_REGION_UNSUPPORTED);
  outheap_region_release(r.region);
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = 0;
  EXPECT(!outheap_region_save(Val_unit, file, name, 1, 0, NULL, 0, &e) && e.kind == OUTHEAP_REGION_UNSUPPORTED);
  EXPECT(!outheap_region_save(Val_unit, file, "", 1, 0, NULL, 0, &e) && e.kind == OUTHEAP_REGION_UNSUPPORTED);
  EXPECT(!outheap_region_save(Val_unit, "/no/such/folder", "c", 1, 0, NULL, 0, &e) && e.kind == OUTHEAP_REGION_SYSTEM);
  EXPECT(!outheap_region_copy(v, OUTHEAP_REGION_MAX_SHARING | OUTHEAP_REGION_TRACK, &r, &e) &&
         e.kind == OUTHEAP_REGION_UNSUPPORTED);
  CAMLreturn(result());
}

/* Images that cannot be mapped: with another beginning, of OCaml 5.2, in need of one that is not mapped. */
value region_c_refusals(value damaged, value other, value missing)
{
  CAMLparam3(damaged, other, missing);
  struct outheap_region_root r;
  struct outheap_region_error e;
  EXPECT(!outheap_region_map(String_val(damaged), "c", 7, -1, 0, &r, &e) && e.kind == OUTHEAP_REGION_DAMAGED);
  EXPECT(strcmp(e.text, "not an image: it begins with something else") == 0);
  EXPECT(strcmp(e.file, String_val(damaged)) == 0);
  EXPECT(!outheap_region_map(String_val(other), "c", 7, -1, 0, &r, &e) && e.kind == OUTHEAP_REGION_OTHER_PROGRAM);
  EXPECT(strcmp(e.text, "version of OCaml") == 0 && strcmp(e.identifier, "5.2") == 0 && strchr(e.wanted, '.') != NULL);
  EXPECT(!outheap_region_map(String_val(missing), "c", 7, -1, 0, &r, &e) && e.kind == OUTHEAP_REGION_MISSING);
  EXPECT(strspn(e.identifier, "0123456789abcdef") == 32 && e.identifier[32] == 0);
  CAMLreturn(result());
}

/* What keeps a region: a block of the heap, and an image that needs it. */
value region_c_uses(value v, value path)
{
  CAMLparam2(v, path);
  CAMLlocal1(block);
  struct outheap_region_root r, second;
  struct outheap_region_error e;
  char first[512], other[520];
  snprintf(first, sizeof first, "%s", String_val(path));
  snprintf(other, sizeof other, "%s.2", first);
  EXPECT(outheap_region_copy(v, 0, &r, &e));
  block = caml_alloc(2, 0);
  for (int field = 0; field < 2; field++) { /* the first one is looked at when the block is pushed */
    Store_field(block, field, outheap_region_get(&r));
    Store_field(block, 1 - field, field == 0 ? Val_unit : v);
    EXPECT(!outheap_region_delete(r.region, &e) &&
           (e.kind == OUTHEAP_REGION_UNSUPPORTED ||
            (e.kind == OUTHEAP_REGION_IN_USE && (e.from & OUTHEAP_REGION_FROM_HEAP) && e.number >= 1)));
  }
  bool can = e.kind == OUTHEAP_REGION_IN_USE;
  Store_field(block, 1, Val_unit);
  if (can) EXPECT(outheap_region_delete(r.region, &e));
  outheap_region_release(r.region);
  EXPECT(outheap_region_save(v, first, "c", 7, 0, NULL, 0, &e));
  EXPECT(outheap_region_map(first, "c", 7, -1, 0, &r, &e));
  Store_field(block, 1, outheap_region_get(&r));
  EXPECT(outheap_region_save(block, other, "c2", 1, 0, &r.region, 1, &e));
  Store_field(block, 1, Val_unit);
  EXPECT(outheap_region_map(other, "c2", 1, -1, 0, &second, &e));
  if (can) {
    EXPECT(!outheap_region_delete(r.region, &e) && e.kind == OUTHEAP_REGION_IN_USE &&
           (e.from & OUTHEAP_REGION_FROM_REGIONS));
    EXPECT(!outheap_region_revoke(r.region, &e) && e.kind == OUTHEAP_REGION_IN_USE &&
           e.from == OUTHEAP_REGION_FROM_REGIONS);
    EXPECT(outheap_region_revoke(second.region, &e) && outheap_region_revoke(r.region, &e));
  }
  outheap_region_release(second.region);
  outheap_region_release(r.region);
  remove(other);
  CAMLreturn(result());
}

/* Copies with these options, and writes an image. Returns both errors, the second times 100. */
value region_c_kinds(value v, value options, value path)
{
  CAMLparam3(v, options, path);
  struct outheap_region_root r;
  struct outheap_region_error copied, saved;
  if (outheap_region_copy(v, Unsigned_int_val(options), &r, &copied)) outheap_region_release(r.region);
  outheap_region_save(v, String_val(path), "c", 7, Unsigned_int_val(options), NULL, 0, &saved);
  CAMLreturn(Val_int(copied.kind + 100 * saved.kind));
}

/* An array that is written to, by the functions that C code has for it. */
value region_c_tracked(value array)
{
  CAMLparam1(array);
  CAMLlocal1(a);
  struct outheap_region_root r;
  struct outheap_region_error e;
  char text[32];
  if (!outheap_region_copy(array, OUTHEAP_REGION_TRACK, &r, &e)) {
    EXPECT(e.kind == OUTHEAP_REGION_UNSUPPORTED);
    CAMLreturn(result());
  }
  mlsize_t n = Wosize_val(array);
  for (mlsize_t i = 0; i < n; i++) {
    snprintf(text, sizeof text, "%lu", (unsigned long)i);
    value s = caml_copy_string(text);
    a = outheap_region_get(&r);
    if (i & 1) caml_modify(&Field(a, i), s);
    else caml_initialize(&Field(a, i), s);
    a = Val_unit;
    if (i % 30 == 29) EXPECT(!outheap_region_map("/no/such/file", "c", 1, -1, 0, &r, &e));
  }
  /* with nothing but the handle, through collections of other values */
  struct outheap_region_root other;
  EXPECT(outheap_region_copy(array, 0, &other, &e) && outheap_region_delete(other.region, &e));
  outheap_region_release(other.region);
  for (mlsize_t i = 0; i < 3000; i++) (void)caml_alloc_string(i % 100);
  a = outheap_region_get(&r);
  for (mlsize_t i = 0; i < n; i++) {
    snprintf(text, sizeof text, "%lu", (unsigned long)i);
    if (!Is_block(Field(a, i)) || strcmp(String_val(Field(a, i)), text) != 0) EXPECT(!"what was stored");
  }
  outheap_region_release(r.region);
  CAMLreturn(result());
}

/* Copies a value on a stack at low addresses, as the static data of a program that is not position-independent are. */
#if defined MAP_32BIT && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
static ucontext_t above, below;
static value *copied;
static struct outheap_region_root copy;

static void copy_below(void)
{
  struct outheap_region_error e;
  EXPECT(outheap_region_copy(*copied, 0, &copy, &e));
}

value region_c_below(value v)
{
  CAMLparam1(v);
  enum { STACK = 1 << 20 };
  struct outheap_region_root here;
  struct outheap_region_error e;
  void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  EXPECT(stack != MAP_FAILED && getcontext(&below) == 0 && outheap_region_copy(v, 0, &here, &e));
  below.uc_stack.ss_sp = stack;
  below.uc_stack.ss_size = STACK;
  below.uc_link = &above;
  copied = &v;
  makecontext(&below, copy_below, 0);
  EXPECT(swapcontext(&above, &below) == 0);
  EXPECT(outheap_region_get(&copy) >> 44 == outheap_region_get(&here) >> 44);
  outheap_region_release(copy.region);
  outheap_region_release(here.region);
  munmap(stack, STACK);
  CAMLreturn(result());
}
#else
value region_c_below(value v) { (void)v; return result(); }
#endif

/* The text of an error of that kind, and the length that a buffer of one byte was said to need. */
value region_c_text(value kind)
{
  CAMLparam0();
  CAMLlocal2(text, result);
  struct outheap_region_error e = { .kind = (enum outheap_region_error_kind)Int_val(kind), .number = 1, .from = 5,
                                    .text = "T", .identifier = "I", .path = ".2.0[17]", .file = "F", .wanted = "W",
                                    .wanted_version = -2 };
  char buffer[512], small[1];
  if (e.kind == OUTHEAP_REGION_REFUSED) e.text = "custom";
  if (e.kind == OUTHEAP_REGION_SYSTEM) e.number = EPERM;
  outheap_region_error_text(&e, buffer, sizeof buffer);
  size_t length = outheap_region_error_text(&e, small, sizeof small);
  if (small[0] != 0 || outheap_region_error_text(&e, NULL, 0) != length) length = 0;
  text = caml_copy_string(buffer);
  result = caml_alloc_tuple(2);
  Store_field(result, 0, text);
  Store_field(result, 1, Val_long(length));
  CAMLreturn(result);
}
