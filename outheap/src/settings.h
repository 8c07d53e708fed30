/* SPDX-License-Identifier: MIT */
/* Settings, from the environment variable OUTHEAP: a list of name=value separated by commas, read once, at the first use.

     thp=off|advise|always      huge pages for OCaml's heap (default advise); or thp.young=, thp.pools=, thp.blocks= for a part of it
     thp_from=SIZE              with `advise`: the size of a space from which it gets huge pages (default 8M)
     reserve=SIZE               address space reserved at start (outheap_reserve); SIZE: bytes, or with K, M, G, T
     keep=SIZE                  free memory that each space keeps rather than gives back, at least (default 32M), and keep_share=PERCENT of what is in use (default 10)
     slack=PERCENT              free memory that each space keeps until it has not been needed for an epoch, of what is in use (default 100): the epoch lasts until as much has been
                                given out as is in use; 0: no such memory, beyond `keep` it goes back at once
     stats=1                    prints statistics to standard error at exit
     report=N                   report on naked pointers: prints every Nth, and the count at exit (not with dependency ordering: table.h)
     base=ADDRESS               where to place the heap (hexadecimal), for experiments

   An unknown name or a bad value is reported once on standard error and otherwise ignored. */
#ifndef OH_SETTINGS_H
#define OH_SETTINGS_H

#include "space.h"

struct oh_settings {
  enum oh_thp thp[OH_SPACES];
  size_t thp_from, reserve, keep, keep_share, slack, report;
  uintptr_t base;
  bool stats;
};
extern struct oh_settings oh_settings; /* read-only after the first call of oh_start */

/* Changes the settings by such a list; NULL: none. */
void oh_settings_read(char const *list);

/* Reads the settings and prepares the spaces, once; cheap afterwards. All functions that need it call it. */
void oh_start(void);

#endif
