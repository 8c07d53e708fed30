/* SPDX-License-Identifier: MIT */
#include "symbols.h"

#if defined(__linux__) || defined(__FreeBSD__)
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#pragma weak dl_iterate_phdr

typedef struct named_range {
  uintptr_t start, size;
  char const *name, *source;
} named_range;

typedef struct loaded_object {
  struct loaded_object *next;
  uintptr_t base, start, end; /* what its addresses are relative to; the range that it lies in */
  char *path;
  char const *file; /* its contents, or NULL */
  size_t size;
  bool was_read;
  size_t n; /* symbols, in the order of their addresses */
  named_range *symbols;
} loaded_object;

struct bxr_symbols {
  loaded_object *objects;
};

#define PROGRAM "/proc/self/exe" /* its name in the list is empty */

static int add_object(struct dl_phdr_info *info, size_t size, void *all)
{
  (void)size;
  uintptr_t start = UINTPTR_MAX, end = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, to = from + info->dlpi_phdr[i].p_memsz;
    if (from < start) start = from;
    if (to > end) end = to;
  }
  loaded_object *o = start < end ? calloc(1, sizeof *o) : NULL;
  if (o == NULL) return 0;
  *o = (loaded_object){ .next = ((bxr_symbols *)all)->objects, .base = info->dlpi_addr, .start = start, .end = end };
  o->path = strdup(info->dlpi_name == NULL || *info->dlpi_name == '\0' ? PROGRAM : info->dlpi_name);
  ((bxr_symbols *)all)->objects = o;
  return 0;
}

bxr_symbols *bxr_symbols_open(void)
{
  bxr_symbols *all = dl_iterate_phdr == NULL ? NULL : calloc(1, sizeof *all);
  if (all != NULL) (void)dl_iterate_phdr(add_object, all);
  return all;
}

void bxr_symbols_close(bxr_symbols *all)
{
  if (all == NULL) return;
  for (loaded_object *o = all->objects, *next; o != NULL; o = next) {
    next = o->next;
    if (o->file != NULL) munmap((void *)o->file, o->size);
    free(o->symbols);
    free(o->path);
    free(o);
  }
  free(all);
}

/* --- reading a file ----------------------------------------------------------------------------------------------- */

static void map_file(loaded_object *o)
{
  int fd = o->path == NULL ? -1 : open(o->path, O_RDONLY | O_CLOEXEC);
  struct stat s;
  if (fd < 0) return;
  if (fstat(fd, &s) == 0 && (size_t)s.st_size >= sizeof(ElfW(Ehdr))) {
    void *p = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p != MAP_FAILED) {
      o->file = p;
      o->size = (size_t)s.st_size;
    }
  }
  close(fd);
}

/* The bytes at an offset in the file; NULL if they are not all in it. */
static void const *part(loaded_object *o, uint64_t offset, uint64_t size)
{
  return offset <= o->size && size <= o->size - offset ? o->file + offset : NULL;
}

static int by_address(void const *a, void const *b)
{
  uintptr_t x = ((named_range const *)a)->start, y = ((named_range const *)b)->start;
  return (x > y) - (x < y);
}

/* A symbol that is local follows, in the table, the name of the source file that it is local to. */
static void read_table(loaded_object *o, ElfW(Sym) const *table, size_t n, char const *names, size_t size)
{
  char const *source = NULL;
  o->symbols = malloc(n * sizeof(named_range));
  if (o->symbols == NULL) return;
  for (size_t i = 0; i < n; i++) {
    ElfW(Sym) s = table[i];
    unsigned type = s.st_info & 15;
    if (s.st_name >= size) continue;
    if (type == STT_FILE) source = names[s.st_name] == '\0' ? NULL : names + s.st_name;
    if ((type != STT_FUNC && type != STT_OBJECT) || s.st_shndx == SHN_UNDEF || s.st_size == 0) continue;
    bool local = s.st_info >> 4 == STB_LOCAL;
    o->symbols[o->n++] = (named_range){ o->base + s.st_value, s.st_size, names + s.st_name, local ? source : NULL };
  }
  qsort(o->symbols, o->n, sizeof(named_range), by_address);
}

static void read_symbols(loaded_object *o)
{
  o->was_read = true;
  map_file(o);
  ElfW(Ehdr) const *h = (ElfW(Ehdr) const *)(void const *)o->file;
  if (h == NULL || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_shentsize != sizeof(ElfW(Shdr))) return;
  ElfW(Shdr) const *sections = part(o, h->e_shoff, h->e_shnum * sizeof(ElfW(Shdr))), *symbols = NULL;
  for (unsigned i = 0; sections != NULL && i < h->e_shnum; i++)
    if (sections[i].sh_type == SHT_SYMTAB || (sections[i].sh_type == SHT_DYNSYM && symbols == NULL))
      symbols = &sections[i];
  if (symbols == NULL || symbols->sh_link >= h->e_shnum) return;
  ElfW(Shdr) const *strings = &sections[symbols->sh_link];
  void const *table = part(o, symbols->sh_offset, symbols->sh_size);
  char const *names = part(o, strings->sh_offset, strings->sh_size);
  if (table == NULL || names == NULL || strings->sh_size == 0 || names[strings->sh_size - 1] != '\0') return;
  read_table(o, table, symbols->sh_size / sizeof(ElfW(Sym)), names, strings->sh_size);
}

/* --- looking up --------------------------------------------------------------------------------------------------- */

static char const *name_of(loaded_object *o)
{
  if (o->path == NULL) return "?";
  if (strcmp(o->path, PROGRAM) == 0) return BXR_SYMBOLS_PROGRAM;
  char const *slash = strrchr(o->path, '/');
  return slash == NULL ? o->path : slash + 1;
}

bxr_symbol bxr_symbols_find(bxr_symbols *all, uintptr_t address)
{
  loaded_object *o = all == NULL ? NULL : all->objects;
  while (o != NULL && (address < o->start || address >= o->end)) o = o->next;
  if (o == NULL) return (bxr_symbol){ 0 };
  if (!o->was_read) read_symbols(o);
  size_t low = 0, high = o->n; /* the last one that begins at or before the address is low - 1 */
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (o->symbols[middle].start <= address) low = middle + 1;
    else high = middle;
  }
  enum { NESTED = 8 }; /* a symbol may have others inside */
  for (size_t i = low; i > 0 && low - i < NESTED; i--) {
    named_range const *s = &o->symbols[i - 1];
    if (address - s->start < s->size)
      return (bxr_symbol){ name_of(o), s->name, s->source, s->start, address - o->base };
  }
  return (bxr_symbol){ .object = name_of(o), .start = o->start, .offset = address - o->base };
}

#else
struct bxr_symbols { char none; };
bxr_symbols *bxr_symbols_open(void) { return NULL; }
void bxr_symbols_close(bxr_symbols *all) { (void)all; }
bxr_symbol bxr_symbols_find(bxr_symbols *all, uintptr_t address)
{
  (void)all;
  (void)address;
  return (bxr_symbol){ 0 };
}
#endif
