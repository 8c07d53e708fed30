/* SPDX-License-Identifier: MIT */
#include "object.h"
#include <dlfcn.h>
#include <semaphore.h>
#include <stdlib.h>
#if defined(__linux__) || defined(__FreeBSD__)
#include <link.h>
#endif

/* In a library of their own on older systems, which programs need not link because of this one; and not in every
   system. */
#pragma weak dladdr
#pragma weak dlopen
extern int __cxa_atexit(void (*)(void *), void *, void *) __attribute__((weak));

void bxr_object_pin(void)
{
#if defined(RTLD_NODELETE) && defined(RTLD_NOLOAD)
  Dl_info us;
  int error = errno;
  if (dladdr != NULL && dlopen != NULL && dladdr((void const *)&bxr_object_pin, &us) != 0 && us.dli_fname != NULL)
    (void)dlopen(us.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  errno = error;
#endif
}

#if defined(__linux__) || defined(__FreeBSD__)
#pragma weak dl_iterate_phdr

/* The first object is the program. */
static int has_us(struct dl_phdr_info *info, size_t size, void *us)
{
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_LOAD &&
        (uintptr_t)us - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) < info->dlpi_phdr[i].p_memsz)
      return 1;
  return -1;
}

static sem_t *at_exit; /* posted when the process exits */
static bool is_in_program(void) { return dl_iterate_phdr == NULL || dl_iterate_phdr(has_us, (void *)&at_exit) == 1; }

/* A destructor is called in both cases: when the process exits, where other objects may still use this one, and when
   the object is unloaded. What tells is a function of the C library among those for the exit, which does not belong to
   any object that may be unloaded. */
void bxr_object_prepare(void)
{
  if (at_exit != NULL || __cxa_atexit == NULL || is_in_program()) return;
  sem_t *s = malloc(sizeof(sem_t));
  if (s == NULL) return;
  if (sem_init(s, 0, 0) == 0 && __cxa_atexit((void (*)(void *))(void (*)(void))sem_post, s, NULL) == 0) at_exit = s;
  else free(s);
}

bool bxr_object_is_unloading(void)
{
  int posted;
  return at_exit != NULL && sem_getvalue(at_exit, &posted) == 0 && posted == 0;
}
#else
void bxr_object_prepare(void) {}
bool bxr_object_is_unloading(void) { return false; }
#endif
