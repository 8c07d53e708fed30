/* SPDX-License-Identifier: MIT */
/* For WebAssembly: there are no other processes. */
#ifndef WASM_SYS_WAIT_H
#define WASM_SYS_WAIT_H

#include <sys/types.h>

#define WIFSIGNALED(status) 0
#define WTERMSIG(status) 0
#define WIFEXITED(status) 0
#define WEXITSTATUS(status) 0
static inline pid_t fork(void) { return -1; }
static inline pid_t waitpid(pid_t p, int *status, int options) { return (void)p, (void)options, *status = -1, -1; }

#endif
