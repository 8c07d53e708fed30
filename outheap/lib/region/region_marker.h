/* SPDX-License-Identifier: MIT */
/* What the runtime does for regions: the variant's services (outheap_marker.h) where it is linked, and what stands in
   for them with the stock runtime. */
#ifndef OUTHEAP_REGION_MARKER_H
#define OUTHEAP_REGION_MARKER_H

#include "region_config.h"
#include <outheap_marker.h>

/* Can the runtime tell whether a pointer leads to a region? Otherwise regions live until exit. */
bool outheap_region_marker_can_tell(void);

/* Calls these functions between two cycles (outheap_marker_on_cycle). Once. */
void outheap_region_marker_start(void (*cycle)(void), void (*cycled)(void));

/* Tells the runtime that there are values at [base, base + bytes), which is mapped, before it can meet a pointer to
   them; whole chunks belong to the region. False: no memory, or the chunks cannot be had. */
bool outheap_region_marker_declare(char *base, size_t bytes);

/* Takes that back, before the memory is unmapped, when the region did not come into being after all. */
void outheap_region_marker_withdraw(char *base, size_t bytes);

void outheap_region_marker_revoke(char *base, size_t bytes);
unsigned outheap_region_marker_met(char *base, size_t bytes);
void outheap_region_marker_clear(char *base, size_t bytes);
void outheap_region_marker_meet(char *pointer);
size_t outheap_region_marker_watch(char *base, size_t bytes);

/* Memory that is written to (outheap_marker.h). With runtimes that do not track, all of these do nothing. */
bool outheap_region_marker_can_track(void);
bool outheap_region_marker_track(char *base, size_t bytes);
void outheap_region_marker_keep(char *base, bool keep);
size_t outheap_region_marker_tracked(char *base);
void outheap_region_marker_forget(char *base, size_t bytes);
bool outheap_region_marker_hasten(char *base);
void outheap_region_marker_untrack(char *base);

/* Does this block, whose header is `h`, stay where it is until exit: the program's static data? Never true of blocks of
   regions. Where the runtime cannot tell (OCaml 4.14 without naked pointers, code that was loaded later), the answer is
   no. */
bool outheap_region_marker_is_static(uintptr_t block, header_t h);

/* May the header in front of this pointer be read? With the stock runtime: of any pointer. */
bool outheap_region_marker_is_value(uintptr_t pointer);

#endif
