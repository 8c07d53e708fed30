/* SPDX-License-Identifier: MIT */
/* Whole reads and writes, and a digest that is fed in pieces. Results: 0 or errno. */
#ifndef OUTHEAP_REGION_FILE_H
#define OUTHEAP_REGION_FILE_H

#include "region_config.h"
#include <caml/md5.h>
#include <errno.h>
#include <unistd.h>

static inline int outheap_region_file_write(int file, void const *data, size_t bytes)
{
  for (char const *p = data; bytes != 0;) {
    ssize_t n = write(file, p, bytes > (size_t)1 << 30 ? (size_t)1 << 30 : bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    p += n, bytes -= (size_t)n;
  }
  return 0;
}

/* The end of the file is EIO. */
static inline int outheap_region_file_read(int file, void *data, size_t bytes, uint64_t from)
{
  for (char *p = data; bytes != 0;) {
    ssize_t n = pread(file, p, bytes, (off_t)from);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    p += n, bytes -= (size_t)n, from += (uint64_t)n;
  }
  return 0;
}

static inline void outheap_region_file_digest(struct MD5Context *m, void const *data, size_t bytes)
{
  for (unsigned char *p = (unsigned char *)data; bytes != 0;) {
    size_t n = bytes > (size_t)1 << 30 ? (size_t)1 << 30 : bytes;
    caml_MD5Update(m, p, n);
    p += n, bytes -= n;
  }
}

#endif
