/* SPDX-License-Identifier: MIT */
/* The locks, in the order in which they are taken. All are held across fork (start.c), so that the child finds everything whole.
   Whoever holds one of them calls nothing that takes one further up. */
#ifndef OH_LOCK_H
#define OH_LOCK_H

void oh_report_lock(void);  /* report.c */
void oh_report_unlock(void);
void oh_pools_lock(void);   /* slab.c */
void oh_pools_unlock(void);
void oh_blocks_lock(void);  /* block.c */
void oh_blocks_unlock(void);
void oh_spaces_lock(void);  /* space.c: all spaces, in the order of their numbers */
void oh_spaces_unlock(void);
void oh_reserve_lock(void); /* reserve.c */
void oh_reserve_unlock(void);
void oh_ranges_lock(void);  /* ranges.c */
void oh_ranges_unlock(void);
void oh_os_lock(void);      /* os.c: our own records */
void oh_os_unlock(void);

#endif
