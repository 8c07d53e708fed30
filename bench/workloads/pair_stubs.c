/* SPDX-License-Identifier: MIT */
#include "checked_root.h"
#include <caml/memory.h>
#include <caml/mlvalues.h>

#define MOST 1000
/* Keeps the compiler from moving or merging what stands on the two sides. */
#define COMPILER_BARRIER() __asm__ volatile("" ::: "memory")

static boxroot roots[MOST];
static value volatile values[MOST];
static value held = Val_unit;

/* Roots of the domain as boxroot_create makes them, by a handle, or in a storage of their own. */
#if IN_STORAGE || BY_HANDLE
#if IN_STORAGE
#include <boxroot/storage.h>
#endif
static boxroot_domain domain;
#define create(v) boxroot_create_in(domain, v)
#else
#define create(v) boxroot_create(v)
#endif

value pair_setup(value v)
{
  boxroot_setup();
#if IN_STORAGE
  boxroot_storage storage = boxroot_storage_create("pair");
  if (storage == NULL) abort();
  domain = boxroot_storage_here(storage);
#elif BY_HANDLE
  domain = boxroot_domain_here();
#endif
  held = v;
  caml_register_generational_global_root(&held);
  return Val_unit;
}

static inline __attribute__((always_inline)) void batches(long size, long count)
{
  value v = held;
  while (count--) {
    for (long i = 0; i < size; i++) roots[i] = create(v);
    COMPILER_BARRIER();
    for (long i = 0; i < size; i++) boxroot_delete(roots[i]);
    COMPILER_BARRIER();
  }
}

value pair_create_delete(value size, value pairs)
{
  long count = Long_val(pairs) / Long_val(size);
  switch (Long_val(size)) {
  case 1: batches(1, count); break;
  case 10: batches(10, count); break;
  case 100: batches(100, count); break;
  default: batches(MOST, count);
  }
  return Val_unit;
}

/* Batches of a size that the compiler does not know, deleted in the order of creation or the other way round. */
static __attribute__((noinline)) void batches_of_any_size(long size, long count, int last_first)
{
  value v = held;
  while (count--) {
    for (long i = 0; i < size; i++) roots[i] = create(v);
    COMPILER_BARRIER();
    if (last_first)
      for (long i = size - 1; i >= 0; i--) boxroot_delete(roots[i]);
    else
      for (long i = 0; i < size; i++) boxroot_delete(roots[i]);
    COMPILER_BARRIER();
  }
}

value pair_create_delete_any(value last_first, value size, value pairs)
{
  if (Long_val(size) < 1 || Long_val(size) > MOST) abort();
  batches_of_any_size(Long_val(size), Long_val(pairs) / Long_val(size), Bool_val(last_first));
  return Val_unit;
}

/* One function per operation, so that a profiler tells them apart; `nothing` measures what the loop itself costs. */
__attribute__((noinline)) void pair_batch_create(value v)
{
  for (long i = 0; i < MOST; i++) roots[i] = create(v);
}
__attribute__((noinline)) void pair_batch_delete(void)
{
  for (long i = 0; i < MOST; i++) boxroot_delete(roots[i]);
}
__attribute__((noinline)) void pair_batch_modify(value v)
{
  for (long i = 0; i < MOST; i++) boxroot_modify(&roots[i], v);
}
__attribute__((noinline)) void pair_batch_nothing(value v)
{
  for (long i = 0; i < MOST; i++) values[i] = v;
}

value pair_count(value repeats)
{
  for (long r = Long_val(repeats); r > 0; r--) {
    pair_batch_create(held);
    pair_batch_modify(held);
    pair_batch_delete();
    pair_batch_nothing(held);
  }
  return Val_unit;
}

static inline __attribute__((always_inline)) void modify_batches(long size, long count)
{
  value v = held;
  for (long i = 0; i < size; i++) roots[i] = checked_create(v);
  while (count--) {
    for (long i = 0; i < size; i++) boxroot_modify(&roots[i], v);
    COMPILER_BARRIER();
  }
  for (long i = 0; i < size; i++) boxroot_delete(roots[i]);
}

value pair_modify(value size, value operations)
{
  long count = Long_val(operations) / Long_val(size);
  switch (Long_val(size)) {
  case 1: modify_batches(1, count); break;
  case 10: modify_batches(10, count); break;
  case 100: modify_batches(100, count); break;
  default: modify_batches(MOST, count);
  }
  return Val_unit;
}
