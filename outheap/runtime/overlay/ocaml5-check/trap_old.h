/* SPDX-License-Identifier: MIT */
/* Memory that the major heap has left: its pools and large blocks stay inaccessible until many others have followed.

   A large block has system pages of its own, so that it can become inaccessible by itself:

       memory of block.h  | record | the block, from a page's beginning | to the end of its last page |
*/
#ifndef OH_TRAP_OLD_H
#define OH_TRAP_OLD_H

#include "trap_left.h"

/* A whole pool, [begin, end) of the note. Any thread. */
void oh_trap_old_leave_pool(struct oh_trap_left const *);

/* Memory for a large block; NULL: there is none. */
void *oh_trap_old_alloc(size_t bytes);

/* A copy of a large block's first `bytes`, which are all of it; NULL: no memory. Only the first page of the block
   itself keeps its contents. */
void *oh_trap_old_copy(void *block, size_t bytes);

/* A large block, which begins where the note does; the note's end is not read. Beyond check.large=SIZE the oldest ones
   go back. Any thread. */
void oh_trap_old_leave(struct oh_trap_left const *);

#endif
