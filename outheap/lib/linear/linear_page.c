/* SPDX-License-Identifier: MIT */
#include "linear_page.h"
#include <outheap.h>
#include <string.h>
#include <sys/mman.h>

#pragma weak outheap_allocate
#pragma weak outheap_classify

typedef struct outheap_linear_page page;

#define PAGE OUTHEAP_LINEAR_PAGE
#define KEPT ((size_t)4096) /* bytes at the beginning of a page that are never given back: its record */

char *outheap_linear_page_map(void)
{
  if (outheap_allocate != NULL) return outheap_allocate(OUTHEAP_VALUES, PAGE);
  char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return NULL;
  char *base = (char *)OUTHEAP_REGION_ROUND((uintptr_t)p, PAGE);
  if (base != p) munmap(p, (size_t)(base - p));
  if (base != p + PAGE) munmap(base + PAGE, (size_t)(p + PAGE - base));
  if (outheap_region_marker_declare(base, PAGE)) return base;
  munmap(base, PAGE);
  return NULL;
}

static void advise(page *g, bool many)
{
#ifdef MADV_HUGEPAGE
  static int wanted = -1; /* atomic: whoever asks first finds the same */
  int is_wanted = __atomic_load_n(&wanted, __ATOMIC_RELAXED);
  if (is_wanted < 0) {
    is_wanted = !outheap_region_runtime_is_set("thp", "off");
    __atomic_store_n(&wanted, is_wanted, __ATOMIC_RELAXED);
  }
  g->huge = many && is_wanted && madvise(g, PAGE, MADV_HUGEPAGE) == 0;
#else
  (void)g;
  (void)many;
#endif
}

/* Of a page that is given back, the record stays; the kernel's khugepaged would make a huge page of it, and the rest
   resident again. Each of these pages may cost two mappings, of which Linux allows 65,530. */
#define SPLIT_MOST 4096
static size_t splits; /* atomic */

static void split(page *g)
{
#ifdef MADV_NOHUGEPAGE
  if (!g->huge || g->split || __atomic_load_n(&splits, __ATOMIC_RELAXED) >= SPLIT_MOST) return;
  g->split = madvise(g, PAGE, MADV_NOHUGEPAGE) == 0;
  if (g->split) (void)__atomic_fetch_add(&splits, 1, __ATOMIC_RELAXED);
#else
  (void)g;
#endif
}

page *outheap_linear_page_new(bool many)
{
  page *g = (page *)outheap_linear_page_map();
  if (g == NULL || !outheap_region_marker_note_cells(g)) return NULL;
  advise(g, many);
  return g;
}

void outheap_linear_page_prepare(page *g, bool many)
{
  g->purged = false;
  if (!g->split) return;
  (void)__atomic_fetch_sub(&splits, 1, __ATOMIC_RELAXED);
  g->split = false;
  advise(g, many);
}

bool outheap_linear_page_can_purge(void) { return outheap_classify != NULL; }

size_t outheap_linear_page_purge(page *g)
{
  if (g->purged || !outheap_linear_page_can_purge()) return 0;
  split(g);
  if (madvise((char *)g + KEPT, PAGE - KEPT, MADV_DONTNEED) != 0) return 0;
  g->purged = true;
  return PAGE - KEPT;
}
