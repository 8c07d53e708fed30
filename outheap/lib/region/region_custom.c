/* SPDX-License-Identifier: MIT */
#include "region_custom.h"
#include "outheap_region.h"
#include <pthread.h>
#include <stdlib.h>

/* The runtime's own, of which it may have several sets of functions: told by name. */
static char const *const plain[] = { "_i", "_j", "_n" };
static char const *const bigarrays[] = { "_bigarr02", "_bigarray" /* of Unix.map_file */ };

struct entry { struct entry *next; struct custom_operations const *operations; };
static struct entry *registered; /* grows only; read without a lock */

bool outheap_region_register_custom(struct custom_operations const *operations)
{
  for (struct entry *e = __atomic_load_n(&registered, __ATOMIC_ACQUIRE); e != NULL; e = e->next)
    if (e->operations == operations) return true;
  struct entry *e = malloc(sizeof *e);
  if (e == NULL) return false;
  e->operations = operations;
  e->next = __atomic_load_n(&registered, __ATOMIC_ACQUIRE);
  while (!__atomic_compare_exchange_n(&registered, &e->next, e, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {}
  return true;
}

enum outheap_region_custom_kind outheap_region_custom_kind(struct custom_operations const *o)
{
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    if (strcmp(o->identifier, plain[i]) == 0) return OUTHEAP_REGION_CUSTOM_PLAIN;
  for (size_t i = 0; i < sizeof bigarrays / sizeof *bigarrays; i++)
    if (strcmp(o->identifier, bigarrays[i]) == 0) return OUTHEAP_REGION_CUSTOM_BIGARRAY;
  for (struct entry *e = __atomic_load_n(&registered, __ATOMIC_ACQUIRE); e != NULL; e = e->next)
    if (e->operations == o) return OUTHEAP_REGION_CUSTOM_PLAIN;
  return OUTHEAP_REGION_CUSTOM_NONE;
}

struct custom_operations const *outheap_region_custom_find(char const *identifier)
{
  for (struct entry *e = __atomic_load_n(&registered, __ATOMIC_ACQUIRE); e != NULL; e = e->next)
    if (strcmp(e->operations->identifier, identifier) == 0) return e->operations;
  struct custom_operations const *o = caml_find_custom_operations((char *)identifier);
  return o != NULL && outheap_region_custom_kind(o) != OUTHEAP_REGION_CUSTOM_NONE ? o : NULL;
}
