/* SPDX-License-Identifier: MIT */
#include "outheap.h"
#include "block.h"
#include "check.h"
#include "ranges.h"
#include "reserve.h"
#include "settings.h"
#include "slab.h"
#include <errno.h>

#define WORD sizeof(void *)

enum outheap_kind outheap_classify(void const *address)
{
  uintptr_t a = (uintptr_t)address;
  switch (oh_entry(a)) {
    case OH_UNKNOWN: return OUTHEAP_UNKNOWN;
    case OH_MAJOR: return OUTHEAP_MAJOR;
    case OH_YOUNG: return OUTHEAP_YOUNG;
    case OH_VALUES: return OUTHEAP_VALUES;
    case OH_FOREIGN: return OUTHEAP_FOREIGN;
    case OH_ASK:
    case OH_MIXED: break;
  }
  /* Ranges are those of pointers to blocks, a word behind the memory. */
  return a <= UINTPTR_MAX - WORD && (oh_ranges_at(a + WORD) & OH_HOLDS_VALUES) ? OUTHEAP_VALUES : OUTHEAP_FOREIGN;
}

static bool is_range(uintptr_t begin, uintptr_t end) { return begin != 0 && begin % WORD == 0 && end % WORD == 0 && begin < end && end <= UINTPTR_MAX - WORD; }

int outheap_declare_values(void const *begin, void const *end)
{
  uintptr_t b = (uintptr_t)begin, e = (uintptr_t)end;
  return is_range(b, e) ? oh_ranges_add(b + WORD, e + WORD, OH_HOLDS_VALUES, true) : EINVAL;
}

int outheap_withdraw_values(void const *begin, void const *end)
{
  uintptr_t b = (uintptr_t)begin, e = (uintptr_t)end;
  return is_range(b, e) ? oh_ranges_remove(b + WORD, e + WORD, OH_HOLDS_VALUES, true) : EINVAL;
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
  bool fresh;
  bytes = OH_ROUND_UP(bytes, OH_PAGE);
  void *memory = oh_pages_take(id, bytes, true, &fresh);
  if (memory != NULL && !fresh) oh_pages_discard(id, memory, bytes);
  return memory;
}

void outheap_free(enum outheap_kind kind, void *memory, size_t bytes)
{
  enum oh_space_id id;
  if (memory == NULL || bytes == 0 || bytes > SIZE_MAX / 2 || !space_of(kind, &id)) return;
  bytes = OH_ROUND_UP(bytes, OH_PAGE);
  uintptr_t b = (uintptr_t)memory;
  if (!oh_pages_are_used(id, memory, bytes)) return; /* not ours, or given back before: left alone */
  /* What will be there next is nobody's values. */
  if (id == OH_SPACE_FOREIGN) (void)oh_ranges_remove(b + WORD, b + bytes + WORD, OH_HOLDS_VALUES, false);
  (void)oh_pages_give_checked(id, memory, bytes);
}

size_t outheap_trim(void)
{
  oh_start();
  return oh_pools_trim(1) + oh_blocks_trim() + oh_pages_trim(OH_SPACE_YOUNG) + oh_pages_trim(OH_SPACE_MARKED) + oh_pages_trim(OH_SPACE_VALUES) +
         oh_pages_trim(OH_SPACE_FOREIGN);
}
