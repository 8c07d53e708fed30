/* SPDX-License-Identifier: MIT */
#include "header.h"
#include "peek.h"
#include "pointer.h"

#define WORD sizeof(void *)
#define LOWEST 4096 /* no memory below */
#define INFIX 249
#define CLOSURE 247

struct oh_header_image oh_header_image;
static uintptr_t image_words;
static bool is_opaque;

static void show_image(void)
{
  oh_store_relaxed(&oh_header_image.words, oh_load_relaxed(&is_opaque) ? 0 : image_words);
}

void oh_header_set_image(uintptr_t begin, uintptr_t end)
{
  oh_store_relaxed(&oh_header_image.begin, begin + WORD);
  image_words = (end - begin) / WORD;
  show_image();
}

bool oh_header_set_opaque(bool opaque)
{
  bool before = oh_load_relaxed(&is_opaque);
  oh_store_relaxed(&is_opaque, opaque);
  show_image();
  return before;
}

/* A header in front of this pointer that the collector passes over: black, or that of a function within a closure,
   where the compiler writes no colour. */
static bool is_passed_over(uintptr_t address)
{
  uintptr_t header;
  if (!oh_peek(address - WORD, &header)) return false;
  if ((header & 255) == INFIX) {
    uintptr_t offset = (header >> 10) * WORD;
    return offset != 0 && offset < address - LOWEST && oh_peek(address - offset - WORD, &header) &&
           (header & 255) == CLOSURE && (~header & OH_HEADER_BLACK) == 0;
  }
  return (~header & OH_HEADER_BLACK) == 0;
}

bool oh_header_exists_slow(uintptr_t address)
{
  if (address % WORD != 0 || address < LOWEST || address >> OH_ADDRESS_BITS != 0) return false;
  enum oh_kind k = oh_table_kind(address);
  if (oh_kind_is_region(k)) return k == OH_KIND_REGION;
  return (!oh_load_relaxed(&is_opaque) && is_passed_over(address)) || oh_pointer_is_value(address);
}
