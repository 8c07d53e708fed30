/* SPDX-License-Identifier: MIT */
/* The start of the library, and what is printed at exit. */
#ifndef OH_START_H
#define OH_START_H

/* Reads the settings and prepares the spaces, once; cheap afterwards. The public functions call it, and the runtime's
   hooks (overlay) before the first value exists. Nothing below this layer does. */
void oh_start(void);

#endif
