/* SPDX-License-Identifier: MIT */
#include "region_marker.h"
#include "region_addresses.h"
#include <outheap.h>

#pragma weak outheap_classify
#pragma weak outheap_declare_values
#pragma weak outheap_withdraw_values
#pragma weak outheap_marker_can_tell
#pragma weak outheap_marker_claim
#pragma weak outheap_marker_revoke
#pragma weak outheap_marker_met
#pragma weak outheap_marker_clear
#pragma weak outheap_marker_meet
#pragma weak outheap_marker_watch
#pragma weak outheap_marker_on_cycle
#pragma weak outheap_marker_can_track
#pragma weak outheap_marker_track
#pragma weak outheap_marker_keep
#pragma weak outheap_marker_tracked
#pragma weak outheap_marker_forget
#pragma weak outheap_marker_hasten
#pragma weak outheap_marker_untrack

#if !OUTHEAP_REGION_OCAML5
/* The page table of OCaml 4.14, where it has one. Its values of `kind`: caml/address_class.h. */
extern int caml_page_table_add(int kind, void *start, void *end) __attribute__((weak));
extern int caml_page_table_remove(int kind, void *start, void *end) __attribute__((weak));
extern int caml_page_table_lookup(void *address) __attribute__((weak));
#define STATIC_DATA 4
/* What the native compiler writes into each program; a row that ends with zeroes. */
extern struct { char *begin, *end; } caml_data_segments[] __attribute__((weak));
#endif

bool outheap_region_marker_can_tell(void)
{
  return OUTHEAP_REGION_OCAML5 && outheap_marker_can_tell != NULL && outheap_marker_can_tell();
}

void outheap_region_marker_start(void (*cycle)(void), void (*cycled)(void))
{
  static struct outheap_marker_cycle c;
  c.cycle = cycle, c.cycled = cycled;
  if (outheap_region_marker_can_tell()) (void)outheap_marker_on_cycle(&c);
}

bool outheap_region_marker_declare(char *base, size_t bytes)
{
  if (OUTHEAP_REGION_OCAML5) return outheap_marker_claim == NULL || outheap_marker_claim(base, bytes);
  if (outheap_declare_values != NULL) return outheap_declare_values(base, base + bytes) == 0;
#if !OUTHEAP_REGION_OCAML5
  if (caml_page_table_add != NULL) return caml_page_table_add(STATIC_DATA, base, base + bytes) == 0;
#endif
  return true;
}

void outheap_region_marker_withdraw(char *base, size_t bytes)
{
  if (OUTHEAP_REGION_OCAML5) return; /* chunks stay what they are */
  if (outheap_withdraw_values != NULL) {
    (void)outheap_withdraw_values(base, base + bytes);
    return;
  }
#if !OUTHEAP_REGION_OCAML5
  if (caml_page_table_remove != NULL) (void)caml_page_table_remove(STATIC_DATA, base, base + bytes);
#endif
}

void outheap_region_marker_revoke(char *base, size_t bytes)
{
  if (outheap_region_marker_can_tell()) outheap_marker_revoke(base, bytes);
}

unsigned outheap_region_marker_met(char *base, size_t bytes)
{
  return outheap_region_marker_can_tell() ? outheap_marker_met(base, bytes) : OUTHEAP_MARKER_BY_ROOT;
}

void outheap_region_marker_clear(char *base, size_t bytes)
{
  if (outheap_region_marker_can_tell()) outheap_marker_clear(base, bytes);
}

void outheap_region_marker_meet(char *pointer)
{
  if (outheap_region_marker_can_tell()) outheap_marker_meet(pointer);
}

size_t outheap_region_marker_watch(char *base, size_t bytes)
{
  return outheap_region_marker_can_tell() ? outheap_marker_watch(base, bytes) : 0;
}

bool outheap_region_marker_can_track(void)
{
  return OUTHEAP_REGION_OCAML5 && outheap_marker_can_track != NULL && outheap_marker_can_track();
}

bool outheap_region_marker_track(char *base, size_t bytes)
{
  return outheap_region_marker_can_track() && outheap_marker_track(base, bytes);
}

void outheap_region_marker_keep(char *base, bool keep)
{
  if (outheap_region_marker_can_track()) outheap_marker_keep(base, keep);
}

size_t outheap_region_marker_tracked(char *base)
{
  return outheap_region_marker_can_track() ? outheap_marker_tracked(base) : 0;
}

void outheap_region_marker_forget(char *base, size_t bytes)
{
  if (outheap_region_marker_can_track()) outheap_marker_forget(base, bytes);
}

bool outheap_region_marker_hasten(char *base)
{
  return outheap_region_marker_can_track() && outheap_marker_hasten(base);
}

void outheap_region_marker_untrack(char *base)
{
  if (outheap_region_marker_can_track()) outheap_marker_untrack(base);
}

bool outheap_region_marker_is_value(uintptr_t pointer)
{
  if (outheap_classify == NULL) return true;
  enum outheap_kind k = outheap_classify((void const *)pointer);
  return k == OUTHEAP_MAJOR || k == OUTHEAP_YOUNG || k == OUTHEAP_VALUES;
}

/* The colour alone does not tell: blocks of regions are black as well, and on OCaml 4.14 those that were marked. */
bool outheap_region_marker_is_static(uintptr_t block, header_t h)
{
  if (!outheap_region_config_is_black(h) || outheap_region_addresses_has(block)) return false;
#if OUTHEAP_REGION_OCAML5
  return true;
#else
  if (outheap_classify != NULL) return outheap_classify((void const *)block) == OUTHEAP_VALUES;
  if (caml_page_table_lookup != NULL) return (caml_page_table_lookup((void *)block) & STATIC_DATA) != 0;
  if (caml_data_segments != NULL)
    for (size_t i = 0; caml_data_segments[i].begin != NULL; i++)
      if ((char *)block >= caml_data_segments[i].begin && (char *)block <= caml_data_segments[i].end) return true;
  return false;
#endif
}
