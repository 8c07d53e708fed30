/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "header.h"
#include "pointer.h"

/* --- headers ------------------------------------------------------------------------------------------------------ */

#define WORD sizeof(void *)
#define LOWEST 4096 /* no memory below */
#define INFIX 249
#define CLOSURE 247

struct oh_header_image oh_header_image;
static uintptr_t image_words;
static bool is_opaque;

static void publish_image(void)
{
  oh_store_relaxed(&oh_header_image.words, oh_load_relaxed(&is_opaque) ? 0 : image_words);
}

void oh_header_set_image(uintptr_t begin, uintptr_t end)
{
  oh_store_relaxed(&oh_header_image.begin, begin + WORD);
  image_words = (end - begin) / WORD;
  publish_image();
}

bool oh_header_set_opaque(bool opaque)
{
  bool before = oh_load_relaxed(&is_opaque);
  oh_store_relaxed(&is_opaque, opaque);
  publish_image();
  return before;
}

/* A header in front of this pointer that the collector passes over: black, or that of a function within a closure,
   where the compiler writes no colour. */
static bool is_passed_over(uintptr_t address)
{
  uintptr_t header;
  if (!oh_peek(address - WORD, &header)) return false;
  if ((header & 255) == INFIX) {
    uintptr_t offset = (header >> 10) * WORD;
    return offset != 0 && offset < address - LOWEST && oh_peek(address - offset - WORD, &header) &&
           (header & 255) == CLOSURE && (~header & OH_HEADER_BLACK) == 0;
  }
  return (~header & OH_HEADER_BLACK) == 0;
}

bool oh_header_exists_slow(uintptr_t address)
{
  if (address % WORD != 0 || address < LOWEST || OH_IS_BEYOND(address)) return false;
  enum oh_kind k = oh_table_kind(address);
  if (oh_kind_is_region(k)) return k == OH_KIND_REGION;
  return (!oh_load_relaxed(&is_opaque) && is_passed_over(address)) || oh_pointer_is_value(address);
}

/* --- words that may not be there ---------------------------------------------------------------------------------- */

#if defined __linux__ && (defined __x86_64__ || defined __aarch64__)
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

/* bool oh_peek_load(uintptr_t address, uintptr_t *word): the load is its first instruction; a fault there continues at
   oh_peek_fault. */
#ifdef __x86_64__
__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".hidden oh_peek_load\n"
        ".globl oh_peek_load\n"
        ".type oh_peek_load, @function\n"
        "oh_peek_load:\n"
        "  movq (%rdi), %rax\n"
        "  movq %rax, (%rsi)\n"
        "  movl $1, %eax\n"
        "  ret\n"
        ".hidden oh_peek_fault\n"
        ".globl oh_peek_fault\n"
        "oh_peek_fault:\n"
        "  xorl %eax, %eax\n"
        "  ret\n"
        ".size oh_peek_load, . - oh_peek_load\n"
        ".popsection\n");
#define PC(context) (*(uintptr_t *)&(context)->uc_mcontext.gregs[REG_RIP])
#else
__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".hidden oh_peek_load\n"
        ".globl oh_peek_load\n"
        ".type oh_peek_load, %function\n"
        "oh_peek_load:\n"
        "  ldr x2, [x0]\n"
        "  str x2, [x1]\n"
        "  mov w0, #1\n"
        "  ret\n"
        ".hidden oh_peek_fault\n"
        ".globl oh_peek_fault\n"
        "oh_peek_fault:\n"
        "  mov w0, #0\n"
        "  ret\n"
        ".size oh_peek_load, . - oh_peek_load\n"
        ".popsection\n");
#define PC(context) (*(uintptr_t *)&(context)->uc_mcontext.pc)
#endif
bool oh_peek_load(uintptr_t address, uintptr_t *word);
extern char const oh_peek_fault[];

static struct sigaction before[2]; /* of SIGSEGV and SIGBUS */

static void handle(int signal, siginfo_t *info, void *context)
{
  ucontext_t *c = context;
  if (PC(c) == (uintptr_t)&oh_peek_load) {
    PC(c) = (uintptr_t)oh_peek_fault;
    return;
  }
  struct sigaction *old = &before[signal == SIGBUS];
  if (old->sa_flags & SA_SIGINFO) old->sa_sigaction(signal, info, context);
  else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) old->sa_handler(signal);
  /* The instruction is tried again, and then the system does what it did before. */
  else (void)sigaction(signal, old, NULL);
}

static void install(void)
{
  for (int i = 0; i < 2; i++) {
    int signal = i == 0 ? SIGSEGV : SIGBUS;
    if (sigaction(signal, NULL, &before[i]) != 0) continue;
    struct sigaction new = before[i];
    new.sa_sigaction = handle;
    new.sa_flags = (new.sa_flags & ~SA_RESETHAND) | SA_SIGINFO | SA_ONSTACK;
    (void)sigaction(signal, &new, NULL);
  }
}

bool oh_peek(uintptr_t address, uintptr_t *word)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static bool installed;
  if (!__builtin_expect(oh_load_acquire(&installed), 1)) {
    pthread_once(&once, install);
    oh_store_release(&installed, true);
  }
  return oh_peek_load(address, word);
}

#elif defined __linux__
#include <sys/uio.h>
#include <unistd.h>

bool oh_peek(uintptr_t address, uintptr_t *word)
{
  struct iovec here = { word, sizeof *word }, there = { (void *)address, sizeof *word };
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)sizeof *word;
}

#else
bool oh_peek(uintptr_t address, uintptr_t *word) { return (void)address, (void)word, false; }
#endif
