/* SPDX-License-Identifier: MIT */
#include "outheap.h"
#include "block.h"
#include "header.h"
#include "pool.h"
#include "ranges.h"
#include "report.h"
#include "reserve.h"
#include "space.h"
#include "start.h"
#include "stats.h"
#include "table.h"
#include <errno.h>

#define WORD sizeof(void *)

#define SAME(name) _Static_assert((int)OUTHEAP_##name == (int)OH_KIND_##name, "kinds")
SAME(UNKNOWN);
SAME(MAJOR);
SAME(YOUNG);
SAME(VALUES);
SAME(FOREIGN);

enum outheap_kind outheap_classify(void const *address)
{
  uintptr_t a = (uintptr_t)address;
  enum oh_kind k = oh_table_kind(a);
  if (oh_kind_is_region(k)) return k == OH_KIND_REGION ? OUTHEAP_VALUES : OUTHEAP_FOREIGN;
  if (k != OH_KIND_MIXED && k != OH_KIND_REPORTED) return (enum outheap_kind)k;
  /* Ranges are those of pointers to blocks, a word behind the memory. */
  return a <= UINTPTR_MAX - WORD && (oh_ranges_at(a + WORD) & OH_RANGES_VALUES) ? OUTHEAP_VALUES : OUTHEAP_FOREIGN;
}

static bool is_range(uintptr_t begin, uintptr_t end)
{
  return begin != 0 && begin % WORD == 0 && end % WORD == 0 && begin < end && end <= UINTPTR_MAX - WORD;
}

int outheap_declare_values(void const *begin, void const *end)
{
  uintptr_t b = (uintptr_t)begin, e = (uintptr_t)end;
  return is_range(b, e) ? oh_ranges_add(b + WORD, e + WORD, OH_RANGES_VALUES, true) : EINVAL;
}

int outheap_withdraw_values(void const *begin, void const *end)
{
  uintptr_t b = (uintptr_t)begin, e = (uintptr_t)end;
  return is_range(b, e) ? oh_ranges_remove(b + WORD, e + WORD, OH_RANGES_VALUES, true) : EINVAL;
}

bool outheap_set_opaque(bool opaque)
{
  oh_start(); /* which reads the setting */
  return oh_header_set_opaque(opaque);
}

int outheap_reserve(size_t bytes)
{
  oh_start();
  return oh_reserve_ahead(bytes);
}

static bool space_of(enum outheap_kind kind, enum oh_space_id *id)
{
  switch (kind) {
    case OUTHEAP_MAJOR: *id = OH_SPACE_MARKED; return true;
    case OUTHEAP_VALUES: *id = OH_SPACE_VALUES; return true;
    case OUTHEAP_FOREIGN: *id = OH_SPACE_FOREIGN; return true;
    default: return false;
  }
}

void *outheap_allocate(enum outheap_kind kind, size_t bytes)
{
  enum oh_space_id id;
  if (!space_of(kind, &id) || bytes == 0) {
    errno = EINVAL;
    return NULL;
  }
  if (bytes > SIZE_MAX / 2) {
    errno = ENOMEM;
    return NULL;
  }
  oh_start();
  bool fresh;
  bytes = OH_ROUND_UP(bytes, OH_PAGE);
  void *memory = oh_space_alloc(id, bytes, true, &fresh);
  if (memory != NULL && !fresh) oh_space_purge(id, memory, bytes);
  return memory;
}

void outheap_free(enum outheap_kind kind, void *memory, size_t bytes)
{
  enum oh_space_id id;
  if (memory == NULL || bytes == 0 || bytes > SIZE_MAX / 2 || !space_of(kind, &id)) return;
  bytes = OH_ROUND_UP(bytes, OH_PAGE);
  uintptr_t b = (uintptr_t)memory;
  if (!oh_space_is_used(id, memory, bytes)) return; /* not ours, or freed before: left alone */
  /* The next contents are not values unless they are declared again. */
  if (id == OH_SPACE_FOREIGN) (void)oh_ranges_remove(b + WORD, b + bytes + WORD, OH_RANGES_VALUES, false);
  (void)oh_space_free_checked(id, memory, bytes);
}

void outheap_statistics(struct outheap_statistics *result) { oh_stats_get(result); }

size_t outheap_report(size_t every, void (*sample)(void const *pointer, void const *data), void const *data)
{
  oh_start();
  return oh_report_set(every, sample, data);
}

size_t outheap_trim(void)
{
  oh_start();
  return oh_pool_trim(1) + oh_block_trim() + oh_space_trim(OH_SPACE_YOUNG) + oh_space_trim(OH_SPACE_MARKED) +
         oh_space_trim(OH_SPACE_VALUES) + oh_space_trim(OH_SPACE_FOREIGN);
}
