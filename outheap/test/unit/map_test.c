/* SPDX-License-Identifier: MIT */
/* The process' map: how many mappings there are, and which of them get huge pages. */
#include "outheap.h"
#include "page.h"
#include "settings.h"
#include "space.h"
#include "start.h"
#include "try_child.h"
#include "address_space.h"

/* --- the process' map -------------------------------------------------------------------------------------------- */

static bool is_ours(uintptr_t address)
{
  for (int id = 0; id < OH_SPACES; id++)
    if ((oh_page_bits(address) & OH_PAGE_OWNER) == id + 1) return true;
  return false;
}

struct maps { size_t ours, huge_ours, huge_others, huge_never; };
static struct maps read_maps(void)
{
  struct maps m = { 0 };
  static char line[4096];
  FILE *f = fopen("/proc/self/smaps", "r");
  bool ours = false, never = false;
  EXPECT(f != NULL, "smaps");
  while (fgets(line, sizeof line, f) != NULL) {
    unsigned long from, to;
    char after;
    if (sscanf(line, "%lx-%lx%c", &from, &to, &after) == 3 && after == ' ') {
      ours = is_ours(from);
      uint8_t owner = oh_page_bits(from) & OH_PAGE_OWNER;
      never = owner == OH_SPACE_MARKED + 1 || owner == OH_SPACE_VALUES + 1 || owner == OH_SPACE_FOREIGN + 1;
      m.ours += ours;
    }
    else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " hg") != NULL) {
      m.huge_ours += ours, m.huge_others += !ours, m.huge_never += never;
    }
  }
  fclose(f);
  return m;
}

static void grow_and_shrink(void)
{
  oh_start();
  uint64_t random = try_seed;
  static struct { char *base; size_t bytes; enum oh_space_id id; } live[600];
  size_t lives = 0, most = 0;
  for (int step = 0; step < (OH_DEBUG ? 4000 : 12000); step++) {
    if (lives < 600 && try_below(&random, 5) < 3) {
      size_t bytes = OH_PAGE * (1 + try_below(&random, try_below(&random, 10) ? 4 : 40));
      enum oh_space_id id = (enum oh_space_id)try_below(&random, OH_SPACES);
      live[lives].base = oh_space_alloc(id, bytes, true, NULL);
      EXPECT(live[lives].base != NULL, "take");
      live[lives].base[0] = 1;
      live[lives].bytes = bytes, live[lives].id = id;
      lives++;
    } else if (lives != 0) {
      size_t i = try_below(&random, lives);
      oh_space_free(live[i].id, live[i].base, live[i].bytes);
      live[i] = live[--lives];
    }
    if (try_below(&random, 500) == 0) outheap_trim();
    if (step % 1000 == 0) {
      size_t n = read_maps().ours;
      if (n > most) most = n;
    }
  }
  outheap_trim();
  struct maps m = read_maps();
  struct outheap_statistics s;
  outheap_statistics(&s);
  printf("    at most %zu mappings for %zu chunks, %zu MB\n", most, s.chunks, s.committed / M);
  /* From the stock the spaces take chunks in turn; so they do where the system chooses. */
  size_t bound = oh_settings.reserve == 0 && oh_zone_usable()
                   ? 4 * OH_SPACES
                   : 2 * ((s.reserved - s.reserved_ahead) >> OH_CHUNK_LOG) + 2;
  EXPECT(most <= bound && m.ours <= bound, "%zu mappings", most);
}
static void map(void)
{
  in_child("keep=8M", grow_and_shrink);
  in_child("keep=8M,thp=off", grow_and_shrink);
  in_child(OH_ADDRESS_BITS < 47 ? "keep=8M,reserve=64G" : "keep=8M,reserve=1T", grow_and_shrink);
}

/* --- huge pages -------------------------------------------------------------------------------------------------- */

static char mode[64]; /* of the system */
static void *foreign;
static void use_all(size_t bytes)
{
  oh_start();
  foreign = mmap(NULL, 64 * M, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (size_t n = 0; n < bytes; n += OH_PAGE)
    for (int id = 0; id < OH_SPACES; id++)
      EXPECT(oh_space_alloc((enum oh_space_id)id, OH_PAGE, true, NULL) != NULL, "take");
}
static void huge_always(void)
{
  use_all(OH_PAGE);
  struct maps m = read_maps();
  EXPECT(m.huge_others == 0 && m.huge_never == 0 && m.huge_ours >= 3, "%zu ours, %zu others, %zu never", m.huge_ours,
         m.huge_others, m.huge_never);
}
static void huge_off(void)
{
  use_all(32 * M);
  struct maps m = read_maps();
  EXPECT(m.huge_others + m.huge_ours == 0, "%zu ours, %zu others", m.huge_ours, m.huge_others);
}
static void huge_advise(void)
{
  use_all(4 * M);
  struct maps m = read_maps();
  EXPECT(m.huge_others + m.huge_ours == 0, "early: %zu ours, %zu others", m.huge_ours, m.huge_others);
  /* A reservation for minor heaps alone is no use of memory. */
  EXPECT(oh_space_alloc(OH_SPACE_YOUNG, OH_CHUNK, false, NULL) != NULL && read_maps().huge_ours == 0, "young");
  use_all(8 * M);
  m = read_maps();
  EXPECT(m.huge_others == 0 && m.huge_never == 0 && m.huge_ours >= 3, "late: %zu ours, %zu others, %zu never",
         m.huge_ours, m.huge_others, m.huge_never);
  size_t before = m.ours;
  use_all(300 * M);
  m = read_maps();
  EXPECT(m.huge_others == 0 && m.huge_never == 0 && (m.ours <= before + 2 * OH_SPACES || !oh_zone_usable()),
         "%zu mappings", m.ours);
}
static void huge_pages(void)
{
  FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
  if (f == NULL || fgets(mode, sizeof mode, f) == NULL || strstr(mode, "[never]") != NULL) return;
  fclose(f);
  in_child("thp=always", huge_always);
  in_child("thp=off", huge_off);
  if (OH_PAGE <= 4 * M) in_child(NULL, huge_advise);
}

int main(int argc, char **argv)
{
  try_start(argc, argv);
  TRY(map);
  TRY(huge_pages);
  return try_end();
}
