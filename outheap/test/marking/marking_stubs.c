/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <outheap.h>
#include <caml/mlvalues.h>
#include <stdint.h>
#include <sys/mman.h>

value marking_classify(value v)
{
  enum outheap_kind k = outheap_classify((void *)v);
  return Val_int(k == OUTHEAP_MAJOR || k == OUTHEAP_YOUNG || k == OUTHEAP_VALUES);
}

/* An integer whose word is the address of a part of a block, but for the low bit. */
value marking_odd(value block, value offset) { return (block + Long_val(offset)) | 1; }

/* A block's address with one bit changed. */
value marking_pattern(value block, value bit) { return block ^ (intnat)1 << Int_val(bit); }
value marking_same(value v, value block, value bit)
{
  uintptr_t far = (uintptr_t)1 << 31; /* a compaction may have moved the block, not far */
  uintptr_t there = (uintptr_t)block ^ (uintptr_t)1 << Int_val(bit);
  return Val_bool((uintptr_t)v - there + far < 2 * far);
}

static void take(uintptr_t from, uintptr_t to)
{
  void *p = mmap((void *)from, to - from, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                 -1, 0);
  if (p != MAP_FAILED || to - from <= 1 << 28) return;
  take(from, from + (to - from) / 2);
  take(from + (to - from) / 2, to);
}

/* Maps all that is free of 16 TB before and of 16 TB behind the chunk of this block. */
value marking_occupy(value block)
{
  uintptr_t size = (uintptr_t)1 << 28, far = (uintptr_t)1 << 44, chunk = (uintptr_t)block & ~(size - 1);
  take(chunk > far ? chunk - far : size, chunk);
  take(chunk + size, chunk + size + far);
  return Val_unit;
}

/* From OCaml 5.5 on marking begins in a minor collection, some time after the cycle: in the next one, after this.
   Result: is it so? */
extern uintnat mark_phase_requested __asm__("caml_gc_mark_phase_requested") __attribute__((weak));
value marking_begin_marking(value unit)
{
  (void)unit;
  if (&mark_phase_requested == NULL) return Val_false;
  __atomic_store_n(&mark_phase_requested, 1, __ATOMIC_RELEASE);
  return Val_true;
}
