/* SPDX-License-Identifier: MIT */
/* What benches/against_c.rs compares with: the fixpoint of the repository's benchmark local_roots, and loops of
   creations and deletions. */
#include <boxroot.h>
#include <caml/callback.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <stdlib.h>

static boxroot create(value v)
{
  boxroot r = boxroot_create(v);
  if (r == NULL) abort();
  return r;
}

static __attribute__((noinline)) int same(value const *x, value const *y) { return Double_val(*x) == Double_val(*y); }

static boxroot fixpoint_rooted(value const *f, boxroot x)
{
  boxroot y = create(caml_callback(*f, boxroot_get(x)));
  int done = same(boxroot_get_ref(x), boxroot_get_ref(y));
  boxroot_delete(x);
  return done ? y : fixpoint_rooted(f, y);
}

double testing_fixpoint(value f, value x)
{
  boxroot f_root = create(f);
  boxroot y = fixpoint_rooted(boxroot_get_ref(f_root), create(x));
  double result = Double_val(boxroot_get(y));
  boxroot_delete(y);
  boxroot_delete(f_root);
  return result;
}

static __attribute__((noinline)) int same_local(value x, value y)
{
  CAMLparam2(x, y);
  CAMLreturnT(int, Double_val(x) == Double_val(y));
}

static value fixpoint_local(value f, value x)
{
  CAMLparam2(f, x);
  CAMLlocal1(y);
  y = caml_callback(f, x);
  if (!same_local(x, y)) y = fixpoint_local(f, y);
  CAMLreturn(y);
}
double testing_fixpoint_local(value f, value x) { return Double_val(fixpoint_local(f, x)); }

void testing_pairs(value v, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    boxroot r = create(v);
    __asm__ volatile("" : "+r"(r) : : "memory");
    boxroot_delete(r);
  }
}

void testing_batches(value v, size_t n)
{
  static boxroot roots[1000];
  for (size_t i = 0; i < n; i += 1000) {
    for (size_t j = 0; j < 1000; j++) roots[j] = create(v);
    __asm__ volatile("" : : "r"(roots) : "memory");
    for (size_t j = 0; j < 1000; j++) boxroot_delete(roots[j]);
  }
}
