/* SPDX-License-Identifier: MIT */
#include "arena_check.h"
#include "check.h"

static unsigned owner_of(uintptr_t address)
{
  uint8_t *owner = oh_pagemap_find(&oh_arena_owners, address, 1);
  return owner == NULL ? 0 : oh_load_relaxed(owner);
}

#if OH_DEBUG
void oh_arena_check_block(struct oh_arena_block const *b)
{
  void const *payload = (char const *)b + OH_ARENA_PAYLOAD;
  if ((uintptr_t)b % 16 != 0 || owner_of((uintptr_t)b) == 0) oh_log_abort("not a block: %p", payload);
  size_t head = oh_arena_head(b);
  if (head & OH_ARENA_FREE) oh_log_abort("block given back already: %p", payload);
  if (owner_of((uintptr_t)b) != (head >> OH_ARENA_NUMBER_SHIFT) + 1 || oh_arena_head_size(head) < OH_ARENA_LEAST ||
      !oh_arena_head_is_sound(b, head))
    oh_log_abort("not a block, or its head was written over: %p", payload);
}
#endif

struct seen { size_t blocks, bytes, free, free_bytes; };

/* Walks an extent from its first block to its sentinel. Result: its end. */
static uintptr_t walk(struct oh_arena const *a, uintptr_t start, struct seen *seen)
{
  struct oh_arena_block *b = (struct oh_arena_block *)start;
  for (size_t before = 0;;) {
    size_t head = oh_arena_head(b), size = oh_arena_head_size(head);
    OH_CHECK(owner_of((uintptr_t)b) == a->number + 1 && head >> OH_ARENA_NUMBER_SHIFT == a->number &&
             oh_arena_head_is_sound(b, head));
    OH_CHECK(((head & OH_ARENA_BEFORE_FREE) != 0) == (before != 0));
    if (before != 0) OH_CHECK(b->before == before && (head & OH_ARENA_FREE) == 0);
    if (size == 0) break;
    OH_CHECK(size >= OH_ARENA_LEAST);
    if (head & OH_ARENA_FREE) seen->free++, seen->free_bytes += size;
    else seen->blocks++, seen->bytes += size;
    before = head & OH_ARENA_FREE ? size : 0;
    b = (struct oh_arena_block *)((uintptr_t)b + size);
  }
  uintptr_t end = (uintptr_t)b + OH_ARENA_PAYLOAD;
  OH_CHECK((end & (OH_PAGE - 1)) == 0 && owner_of(end) != a->number + 1);
  return end;
}

static void check_lists(struct oh_arena const *a, struct seen const *seen)
{
  size_t free = 0, bytes = 0, idle = 0, purged = 0, old = 0;
  for (unsigned row = 0; row < OH_ARENA_ROWS; row++) OH_CHECK((a->rows >> row & 1) == (a->columns[row] != 0));
  for (unsigned c = 0; c < OH_ARENA_ROWS * OH_ARENA_COLUMNS; c++) {
    struct oh_arena_block *prev = NULL;
    bool any = a->columns[c / OH_ARENA_COLUMNS] >> c % OH_ARENA_COLUMNS & 1;
    OH_CHECK(any == (a->list[c] != NULL));
    for (struct oh_arena_block *b = a->list[c]; b != NULL; prev = b, b = b->next) {
      size_t head = oh_arena_head(b), size = oh_arena_head_size(head);
      OH_CHECK((head & OH_ARENA_FREE) != 0 && b->prev == prev && oh_arena_class_of(size) == c);
      free++;
      bytes += size;
      idle += oh_arena_idle_in(b, size);
      if (head & OH_ARENA_PURGED) purged += oh_arena_inner(b, size).bytes;
      if (head & OH_ARENA_OLD) {
        OH_CHECK((head & OH_ARENA_PURGED) == 0 && c < a->oldest);
        old += oh_arena_inner(b, size).bytes;
      }
    }
  }
  OH_CHECK(free == seen->free && bytes == seen->free_bytes && idle == a->idle && purged == a->purged &&
           old == a->old);
}

void oh_arena_check(struct oh_arena *a)
{
  struct seen seen = { 0, 0, 0, 0 };
  size_t pages = 0, extents = 0;
  for (size_t i = 0; i < OH_PAGEMAP_ROOT; i++) {
    if (oh_load_acquire(&oh_arena_owners.leaf[i]) == NULL) continue;
    for (size_t j = 0; j < OH_PAGEMAP_LEAF; j++) {
      uintptr_t page = ((uintptr_t)i << OH_PAGEMAP_LEAF_LOG | j) << OH_PAGE_LOG;
      if (owner_of(page) != a->number + 1) continue;
      pages++;
      if (owner_of(page - OH_PAGE) == a->number + 1) continue;
      extents++;
      (void)walk(a, page, &seen);
    }
  }
  OH_CHECK(pages == a->pages && extents == a->extents);
  OH_CHECK(seen.blocks == a->blocks && seen.bytes == a->bytes);
  OH_CHECK(seen.bytes + seen.free_bytes + OH_ARENA_PAYLOAD * extents == pages << OH_PAGE_LOG);
  check_lists(a, &seen);
}
