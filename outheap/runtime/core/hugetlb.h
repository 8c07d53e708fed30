/* SPDX-License-Identifier: MIT */
/* Huge pages of the system's pool (vm.nr_hugepages), which the administrator has set aside: memory that is always in
   huge pages, and that no other process can take. Linux 5.16 and later; elsewhere, and with OH_SBRK, there are none.

   What the system promises for such memory is less than for ordinary memory, so it is used in one way only:

   - A page is taken from the pool and filled with zeroes when it is committed, or it is not used at all: a page that is
     missing at the first access ends the process (SIGBUS), whatever was reserved, where a control group limits pages.
   - It is moved to its place when it is complete, for a mapping that fails in place may leave a hole there.
   - It is given back as a whole, and its place becomes inaccessible, so that nobody relies on getting it again.
   - A process that forks shares its pages with the child until one of them writes. If the pool is empty then, the
     system takes the page away from the child. So the child copies all of them into ordinary memory at once, and the
     parent waits for that. */
#ifndef OH_HUGETLB_H
#define OH_HUGETLB_H

#include "base.h"
#include <stdbool.h>

/* Commits [start, start + bytes), inaccessible address space cut at huge pages (2 MB), in pages of the pool, filled
   with zeroes. False: nothing has changed. The first call finds out what the system can do. Any thread. Cost: zeroes
   are written. */
bool oh_hugetlb_commit(void *start, size_t bytes);

/* Puts ordinary memory, filled with zeroes, in place of such pages. False: the system refused. */
bool oh_hugetlb_replace(void *start, size_t bytes);

/* For fork, in this order; with the locks of all spaces. `before`: false if there is no pipe, and then the child's
   copy is at risk while other threads of the parent write. The parent calls `wait`, the child `copy` for each run of
   pages, which aborts with a message if there is no memory, and `copied`. */
bool oh_hugetlb_before_fork(void);
void oh_hugetlb_wait(void);
void oh_hugetlb_copy(void *start, size_t bytes);
void oh_hugetlb_copied(void);

#endif
