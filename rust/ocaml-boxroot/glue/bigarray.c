/* SPDX-License-Identifier: MIT */
/* Bigarrays over the memory of Rust, and over parts of others. */
#include "obx.h"
#include <caml/bigarray.h>
#include <caml/custom.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* As in src/data/bigarray/mod.rs. */
_Static_assert(sizeof(struct caml_ba_array) == 4 * sizeof(value) &&
                 offsetof(struct caml_ba_array, num_dims) == sizeof(value) &&
                 offsetof(struct caml_ba_array, flags) == 2 * sizeof(value) && CAML_BA_NATIVE_INT == 9 &&
                 CAML_BA_CHAR == 12 && CAML_BA_KIND_MASK == 0xFF && CAML_BA_FORTRAN_LAYOUT == 0x100,
               "the layout of bigarrays");

bool obx_bigarray_kind_exists(uint8_t kind) { return kind <= CAML_BA_CHAR + (OCAML_VERSION >= 50200); }

/* The memory of a bigarray that Rust allocated, from the beginning, so that all bigarrays over it share it. */
typedef struct {
  struct caml_ba_proxy proxy;
  void (*free)(void *, size_t);
  size_t capacity;
} rust_memory;

#if OCAML5
static void count_up(struct caml_ba_proxy *proxy) { atomic_fetch_add(&proxy->refcount, 1); }
static bool count_down(struct caml_ba_proxy *proxy) { return atomic_fetch_sub(&proxy->refcount, 1) == 1; }
#else
static void count_up(struct caml_ba_proxy *proxy) { proxy->refcount++; }
static bool count_down(struct caml_ba_proxy *proxy) { return --proxy->refcount == 0; }
#endif

static void finalize_over_rust(value v)
{
  rust_memory *memory = (rust_memory *)Caml_ba_array_val(v)->proxy;
  if (!count_down(&memory->proxy)) return;
  memory->free(memory->proxy.data, memory->capacity);
  free(memory);
}

/* Those of all bigarrays, but for the finaliser. The runtime hands them on to bigarrays over parts. */
static struct custom_operations const over_rust = {"_bigarr02",        finalize_over_rust,   caml_ba_compare,
                                                   caml_ba_hash,       caml_ba_serialize,    caml_ba_deserialize,
                                                   NULL,               NULL};

static value new_bigarray(struct custom_operations const *ops, intnat flags, intnat count, intnat const *dims,
                          void *data, struct caml_ba_proxy *proxy, size_t bytes)
{
  value v = obx_alloc_custom(ops, sizeof(struct caml_ba_array) + count * sizeof(intnat), bytes);
  struct caml_ba_array *b = Caml_ba_array_val(v);
  b->data = data;
  b->num_dims = count;
  b->flags = flags;
  b->proxy = proxy;
  memcpy(b->dim, dims, count * sizeof(intnat));
  return v;
}

/* A bigarray over `data`, which take up `bytes`; free(data, capacity) is called when the last one over them is dead. 0
   when memory is short. */
value obx_bigarray_over(intnat flags, intnat count, intnat const *dims, void *data, size_t capacity, size_t bytes,
                        void (*free_data)(void *, size_t))
{
  rust_memory *memory = malloc(sizeof *memory);
  if (memory == NULL) return 0;
  *memory = (rust_memory){.proxy = {.refcount = 1, .data = data}, .free = free_data, .capacity = capacity};
  return new_bigarray(&over_rust, flags | CAML_BA_MANAGED, count, dims, data, &memory->proxy, bytes);
}

/* The proxy by which bigarrays share the memory of this one, NULL in *proxy when the runtime does not manage it. False
   when memory is short. */
static bool find_proxy(struct caml_ba_array *b, struct caml_ba_proxy **proxy)
{
  struct caml_ba_proxy *new;
  *proxy = __atomic_load_n(&b->proxy, __ATOMIC_ACQUIRE); /* what another domain has made is seen whole */
  if (*proxy != NULL || (b->flags & CAML_BA_MANAGED_MASK) == CAML_BA_EXTERNAL) return true;
  new = malloc(sizeof *new);
  if (new == NULL) return false;
  *new = (struct caml_ba_proxy){.refcount = 1, .data = b->data};
  if (b->flags & CAML_BA_MAPPED_FILE) new->size = caml_ba_byte_size(b);
  /* Another domain may do the same. */
  if (!__atomic_compare_exchange_n(&b->proxy, proxy, new, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) free(new);
  else *proxy = new;
  return true;
}

/* A bigarray over a part of another one. 0 when memory is short. */
value obx_bigarray_part(value of, intnat count, intnat const *dims, void *data)
{
  struct caml_ba_array *whole = Caml_ba_array_val(of);
  struct custom_operations const *ops = Custom_ops_val(of);
  intnat flags = whole->flags & (CAML_BA_KIND_MASK | CAML_BA_LAYOUT_MASK | CAML_BA_MANAGED_MASK);
  struct caml_ba_proxy *proxy;
  if (!find_proxy(whole, &proxy)) return 0;
  if (proxy != NULL) count_up(proxy); /* before the whole can be collected */
#if OCAML_VERSION >= 50300
  flags |= CAML_BA_SUBARRAY;
#endif
  return new_bigarray(ops, flags, count, dims, data, proxy, 0);
}
