/* SPDX-License-Identifier: MIT */
#include "stock.h"
#include "check.h"
#include "extents.h"
#include "page.h"

static struct oh_extents stock;

bool oh_stock_add(uintptr_t from, uintptr_t to)
{
  from = OH_ROUND_UP(from, OH_CHUNK), to = OH_ROUND_DOWN(to, OH_CHUNK);
  size_t nodes = from < to ? (to - from) / OH_CHUNK / 2 + 1 : 0;
  if (from >= to || !oh_extents_supply(&stock, nodes)) return false;
  oh_extents_promise(&stock, nodes);
  oh_extents_add(&stock, from, to - from);
  return true;
}

uintptr_t oh_stock_take(size_t bytes, bool high)
{
  struct oh_extents_node *e = oh_extents_best(&stock, bytes);
  if (e == NULL) return 0;
  uintptr_t at = high ? oh_extents_end(e) - bytes : e->base;
  if (!oh_page_ensure(at, bytes)) return 0;
  oh_extents_remove(&stock, e, at, bytes);
  return at;
}

bool oh_stock_prepare(size_t bytes, size_t n) { return oh_extents_supply(&stock, bytes / OH_CHUNK / 2 + 2 * n); }

size_t oh_stock_bytes(void) { return stock.bytes; }

void oh_stock_validate(void)
{
  oh_extents_validate(&stock);
  OH_CHECK(stock.bytes % OH_CHUNK == 0);
  for (struct oh_extents_node *e = oh_extents_above(&stock, 0); e != NULL; e = oh_extents_above(&stock, e->base + 1))
    for (uintptr_t p = e->base; p < oh_extents_end(e); p += OH_PAGE) OH_CHECK((oh_page_bits(p) & OH_PAGE_OWNER) == 0);
}
