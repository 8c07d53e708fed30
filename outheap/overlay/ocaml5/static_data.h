/* SPDX-License-Identifier: MIT */
/* Static data: memory outside of the heap that holds values. */
#ifndef OH_STATIC_DATA_H
#define OH_STATIC_DATA_H

/* Declares memory that holds blocks with their headers. A pointer may be equal to its end: an empty block. Ends the
   program if there is no memory, since undeclared static data would be opaque to polymorphic operations. */
void oh_static_data_declare(void const *begin, void const *end);

#endif
