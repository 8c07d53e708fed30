/* SPDX-License-Identifier: MIT */
/* Statistics on a signal and at intervals, and resident memory of each space. */
#include "mark_counters.h"
#include "stats.h"
#include "usage.h"
#include "watch.h"
#include "clock.h"
#include "outheap.h"
#include "settings.h"
#include "start.h"
#include "try_child.h"
#include <fcntl.h>
#include <sys/stat.h>

static char path[64];

static void new_file(void)
{
  strcpy(path, "/tmp/outheap-watch-XXXXXX");
  int f = mkstemp(path);
  EXPECT(f >= 0, "file");
  close(f);
}

/* The file's text. */
static char const *written(void)
{
  static char text[1 << 16];
  size_t length = 0;
  int f = open(path, O_RDONLY);
  EXPECT(f >= 0, "%s", path);
  for (ssize_t n; (n = read(f, text + length, sizeof text - 1 - length)) > 0;) length += (size_t)n;
  close(f);
  text[length] = 0;
  return text;
}

/* Waits until the file has the word as often as that: as long as it takes. The end of a record is its last line. */
static void await(char const *word, unsigned n)
{
  alarm(600);
  while (try_times(written(), word) < n) usleep(2000);
  alarm(0);
}
#define END "outheap: huge.rest "

static void signalled(void)
{
  oh_start();
  char *m = outheap_allocate(OUTHEAP_VALUES, 3 * OH_PAGE);
  EXPECT(m != NULL, "memory");
  memset(m, 1, 2 * OH_PAGE);
  EXPECT(written()[0] == 0, "nothing before");
  EXPECT(raise(SIGUSR2) == 0, "signal");
  await(END, 1);
  EXPECT(try_times(written(), "outheap: statistics on a signal: process ") == 1, "%s", written());
  char const *line = strstr(written(), "outheap: resident.values ");
  EXPECT(line != NULL && strtoul(line + 25, NULL, 10) >= 2 * OH_PAGE && strtoul(line + 25, NULL, 10) < 4 * OH_PAGE,
         "%s", written());
  if (TRY_SANITIZED) return; /* they allow no threads in the child */
  /* In a child that is no new program. */
  pid_t child = fork();
  if (child == 0) {
    raise(SIGUSR2);
    await(END, 2);
    char pid[64];
    snprintf(pid, sizeof pid, "on a signal: process %ld,", (long)getpid());
    EXPECT(try_times(written(), pid) == 1, "%s", written());
    _exit(0);
  }
  int status;
  EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "child: %x", status);
}
static void on_a_signal(void)
{
  char list[200];
  new_file();
  snprintf(list, sizeof list, "stats=USR2,stats.to=%s", path);
  in_child(list, signalled);
  unlink(path);
}

/* Time is the test's. */
static void waiting(void)
{
  oh_start();
  EXPECT(oh_clock_advance(2500000000, 0) && try_times(written(), END) == 2, "%s", written());
  EXPECT(strstr(written(), "outheap: statistics at an interval: process ") != NULL, "%s", written());
  EXPECT(strstr(written(), ", 1.0 s") != NULL && strstr(written(), ", 2.0 s") != NULL, "%s", written());
}
static void at_intervals(void)
{
  char list[200];
  new_file();
  snprintf(list, sizeof list, "debug.clock=step,stats=1s,stats.to=%s", path);
  in_child(list, waiting);
  unlink(path);
}

static void to_a_descriptor(void)
{
  int f = open(path, O_WRONLY | O_APPEND);
  EXPECT(f >= 0 && dup2(f, 200) == 200, "descriptor");
  oh_start();
  raise(SIGUSR1);
  await(END, 1);
}
static void on_a_descriptor(void)
{
  new_file();
  in_child("stats=USR1,stats.to=fd:200", to_a_descriptor);
  unlink(path);
}

/* Signals of the program go to its own threads, and nothing is there that was not asked for. */
static int threads(void)
{
  FILE *f = fopen("/proc/self/status", "r");
  char line[256];
  int n = 0;
  while (f != NULL && fgets(line, sizeof line, f) != NULL) (void)sscanf(line, "Threads: %d", &n);
  if (f != NULL) fclose(f);
  return n;
}
static void not_asked(void)
{
  int before = threads();
  struct sigaction action;
  oh_start();
  if (!TRY_SANITIZED) /* which have threads of their own */
    EXPECT(threads() == before, "%d threads", threads());
  EXPECT(sigaction(SIGUSR2, NULL, &action) == 0 && action.sa_handler == SIG_DFL, "no handler");
}
/* The thread ends with the others that the library has, and no child gets one. */
static void *stop(void *unused)
{
  outheap_stop_helper();
  return unused;
}
static void stopped_here(void)
{
  int before = threads(), status = 0;
  oh_start();
  EXPECT(threads() == before + 1, "%d threads", threads());
  try_threads(4, stop);
  EXPECT(threads() == before, "%d threads", threads());
  stop(NULL);
  raise(SIGUSR1);
  pid_t child = fork();
  if (child == 0) _exit(threads() != before);
  EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "child: %d", status);
}
static void stopped(void)
{
  if (!TRY_SANITIZED) in_child("stats=USR1+1000s", stopped_here);
}

static void quiet(void)
{
  EXPECT(try_said(NULL, not_asked)[0] == 0, "nothing to say");
  char const *text = try_said("stats.to=/nonexistent/file", not_asked);
  EXPECT(strstr(text, "/nonexistent/file cannot be written") != NULL, "%s", text);
  text = try_said("stats.to=fd:201", not_asked);
  EXPECT(strstr(text, "no descriptor for statistics: fd:201") != NULL, "%s", text);
  text = try_said("stats.to=fd:x", not_asked);
  EXPECT(strstr(text, "no descriptor for statistics: fd:x") != NULL, "%s", text);
}

/* --- descriptors that the program closes -------------------------------------------------------------------------- */

#define MOST 256 /* descriptors that are closed */
static char own[64]; /* the program's own file, which has every number that it can have */

static void close_all(void)
{
  for (int i = STDERR_FILENO + 1; i < MOST; i++) close(i);
  int f = open(own, O_RDWR | O_CREAT | O_TRUNC, 0600);
  EXPECT(f >= 0, "%s", own);
  for (int i = STDERR_FILENO + 1; i < MOST / 2; i++)
    if (i != f) EXPECT(dup2(f, i) == i, "%d", i);
}

static bool is_own_empty(void)
{
  struct stat s;
  EXPECT(stat(own, &s) == 0, "%s", own);
  return s.st_size == 0;
}

static void print(void) { oh_stats_print(oh_watch_output(), NULL); }

static void daemon_writes(void)
{
  EXPECT(chdir("/tmp") == 0, "folder");
  oh_start();
  print();
  EXPECT(try_times(written(), END) == 1, "%s", written());
  EXPECT(chdir("/") == 0, "folder");
  for (unsigned i = 0; i < 2; i++) {
    close_all();
    EXPECT(is_own_empty(), "nothing yet");
    for (unsigned k = 0; k < 2; k++) {
      print();
      EXPECT(is_own_empty(), "written to the program's file");
      EXPECT(try_times(written(), END) == 2 + 2 * i + k, "%s", written());
    }
    for (int d = STDERR_FILENO + 1; d < MOST / 2; d++) EXPECT(fcntl(d, F_GETFD) != -1, "%d was closed", d);
  }
  /* Nor is what was standard error. */
  for (int i = 0; i < MOST; i++) close(i);
  print();
  for (int i = 0; i <= STDERR_FILENO; i++) EXPECT(fcntl(i, F_GETFD) == -1, "%d is taken", i);
  EXPECT(try_times(written(), END) == 6, "%s", written());
}

static void to_a_lost_descriptor(void)
{
  int f = open(path, O_WRONLY | O_APPEND);
  EXPECT(f >= 0 && dup2(f, 100) == 100, "descriptor");
  oh_start();
  print();
  EXPECT(try_times(written(), END) == 1, "%s", written());
  close_all();
  print();
  EXPECT(is_own_empty(), "written to the program's file");
}

static void on_lost_descriptors(void)
{
  char list[200];
  strcpy(own, "/tmp/outheap-watch-own-XXXXXX");
  int f = mkstemp(own);
  EXPECT(f >= 0, "file");
  close(f);
  new_file();
  snprintf(list, sizeof list, "stats.to=%s", path);
  in_child(list, daemon_writes);
  unlink(path);
  new_file();
  snprintf(list, sizeof list, "stats.to=%s", strrchr(path, '/') + 1); /* in the present folder */
  in_child(list, daemon_writes);
  unlink(path);
  new_file();
  in_child("stats.to=fd:100", to_a_lost_descriptor);
  unlink(path);
  unlink(own);
}

/* --- pipes -------------------------------------------------------------------------------------------------------- */

static void begin(void)
{
  alarm(60); /* which ends it where it waits for a reader */
  oh_start();
}

static void print_to_pipe(void)
{
  int f = open(path, O_RDONLY | O_NONBLOCK);
  char text[8];
  EXPECT(f >= 0, "%s", path);
  begin();
  EXPECT((fcntl(oh_watch_output(), F_GETFL) & O_NONBLOCK) == 0, "a slow reader is waited for");
  print();
  EXPECT(read(f, text, sizeof text) == sizeof text && memcmp(text, "outheap:", sizeof text) == 0, "read");
}

static void to_pipes(void)
{
  char list[200];
  new_file();
  unlink(path);
  EXPECT(mkfifo(path, 0600) == 0, "%s", path);
  snprintf(list, sizeof list, "stats.to=%s", path);
  char const *text = try_said(list, begin);
  EXPECT(strstr(text, "cannot be written: nobody reads it") != NULL, "%s", text);
  in_child(list, print_to_pipe);
  unlink(path);
}

/* A file that takes nothing more: said once. */
static void print_twice(void)
{
  begin();
  print();
  print();
}
static void to_a_full_device(void)
{
  if (access("/dev/full", W_OK) != 0) return;
  char const *text = try_said("stats.to=/dev/full", print_twice);
  char const *said = "outheap: OUTHEAP: statistics are lost: No space left on device\n";
  EXPECT(strcmp(text, said) == 0, "%s", text);
}

/* What marking saw since the last time. */
static void slices(void)
{
  int both[2];
  char text[200];
  EXPECT(pipe(both) == 0, "pipe");
  struct oh_mark_counters *c = &oh_mark_counters;
  c->words_seen += 10, c->words_static += 3, c->words_foreign += 2, c->lines_saved += 1;
  oh_stats_slice(both[1]);
  oh_stats_slice(both[1]); /* nothing since */
  oh_mark_counters.words_seen += 7;
  oh_stats_slice(both[1]);
  close(both[1]);
  ssize_t n = read(both[0], text, sizeof text - 1);
  EXPECT(n > 0, "written");
  text[n] = 0;
  EXPECT(strcmp(text, "outheap: slice 10 3 2 1\noutheap: slice 7 0 0 0\n") == 0, "%s", text);
  close(both[0]);
}

static void usage(void)
{
  oh_start();
  struct oh_usage before[OH_SPACES + 1], after[OH_SPACES + 1];
  char *m = outheap_allocate(OUTHEAP_FOREIGN, 8 * OH_PAGE);
  EXPECT(m != NULL && oh_usage_get(before), "usage");
  memset(m, 1, 5 * OH_PAGE);
  EXPECT(oh_usage_get(after), "usage");
  size_t more = after[OH_SPACE_FOREIGN].resident - before[OH_SPACE_FOREIGN].resident;
  EXPECT(more >= 5 * OH_PAGE && more <= 8 * OH_PAGE, "%zu", more);
  EXPECT(after[OH_SPACE_POOLS].resident == before[OH_SPACE_POOLS].resident, "others");
  EXPECT(after[OH_SPACES].resident > 0 && after[OH_SPACES].huge <= after[OH_SPACES].resident, "the rest");
  outheap_free(OUTHEAP_FOREIGN, m, 8 * OH_PAGE);
}

int main(int argc, char **argv)
{
  try_start(argc, argv);
  setenv("OUTHEAP", "thp=off", 1);
  TRY(on_a_signal);
  TRY(at_intervals);
  TRY(on_a_descriptor);
  TRY(stopped);
  TRY(quiet);
  TRY(on_lost_descriptors);
  TRY(to_pipes);
  TRY(to_a_full_device);
  TRY(slices);
  TRY(usage);
  return try_end();
}
