/* SPDX-License-Identifier: MIT */
#include "metadata.h"
#include "config.h"
#include "os.h"
#include <pthread.h>

#define BATCH ((size_t)128 << 10)
#define LINE ((size_t)64)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t next, end; /* the rest of the current batch */

static bool new_batch(size_t bytes)
{
  for (size_t size = BATCH; size >= bytes; size /= 2) {
    uintptr_t p = oh_os_map(size);
    if (p == 0) continue;
    next = p;
    end = p + size;
    return true;
  }
  return false;
}

void *oh_metadata_alloc(size_t bytes)
{
  if (bytes == 0 || bytes > SIZE_MAX / 2) return NULL;
  bytes = OH_ROUND_UP(bytes, LINE);
  if (bytes > BATCH / 4) return (void *)oh_os_map(OH_ROUND_UP(bytes, oh_os_page_size()));
  pthread_mutex_lock(&mutex);
  void *p = NULL;
  if (end - next >= bytes || new_batch(OH_ROUND_UP(bytes, oh_os_page_size()))) {
    p = (void *)next;
    next += bytes;
  }
  pthread_mutex_unlock(&mutex);
  return p;
}

void oh_metadata_lock(void) { pthread_mutex_lock(&mutex); }
void oh_metadata_unlock(void) { pthread_mutex_unlock(&mutex); }
