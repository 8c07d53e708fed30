/* SPDX-License-Identifier: MIT */
#include "settings.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define M ((size_t)1 << 20)

struct oh_settings oh_settings = {
#define DEFAULT(name, kind, thp) [OH_SPACE_##name] = OH_SETTINGS_THP_##thp,
  .thp = { OH_SPACES_LIST(DEFAULT) },
#undef DEFAULT
  .thp_from = 8 * M,
  .small = { .keep = 32 * M, .keep_share = 10, .slack = 100 },
  .huge = { .keep = 4 * M, .keep_share = 5, .slack = 7 },
  .minor_least = (size_t)32 << 10,
  .minor_most = (size_t)8 << 20,
  .reclaim = true,
  .compact_pause = 10000000,
  .idle = 2000000000,
  .idle_pause = 30000000,
  .check = { .every = 2, .cycle = 20, .seed = 1, .ring = 1024 * M, .large = 1024 * M },
};

static bool is(char const *name, char const *wanted) { return strcmp(name, wanted) == 0; }

static bool read_number(char const *text, int base, uintptr_t *result)
{
  char *end;
  if (*text == 0 || strchr("0123456789abcdefABCDEF", *text) == NULL) return false; /* no blanks, no sign */
  errno = 0;
  unsigned long long n = strtoull(text, &end, base);
  unsigned shift = 0;
  if (base == 10) {
    static char const units[] = "KMGT";
    char const *unit = *end == 0 ? NULL : strchr(units, *end);
    if (unit != NULL) {
      shift = 10 * (unsigned)(unit - units + 1);
      end++;
    }
    else if (*end == 'k') {
      shift = 10;
      end++;
    }
  }
  if (end == text || *end != 0 || errno != 0 || n > UINTPTR_MAX >> shift) return false;
  *result = (uintptr_t)n << shift;
  return true;
}

static bool read_size(char const *text, size_t *result) { return read_number(text, 10, result); }

static bool read_both(char const *text, size_t *a, size_t *b)
{
  if (!read_size(text, a)) return false;
  *b = *a;
  return true;
}

static bool read_thp(char const *text, unsigned spaces)
{
  enum oh_settings_thp thp;
  if (is(text, "off")) thp = OH_SETTINGS_THP_OFF;
  else if (is(text, "advise")) thp = OH_SETTINGS_THP_ADVISE;
  else if (is(text, "always")) thp = OH_SETTINGS_THP_ALWAYS;
  else return false;
  for (int i = 0; i < OH_SPACES; i++)
    if (spaces >> i & 1) oh_settings.thp[i] = thp;
  oh_settings.thp_asked = thp != OH_SETTINGS_THP_OFF;
  return true;
}

static bool read_hugetlb(char const *text, char const **why)
{
  if (is(text, "1G"))
    *why = "hugetlb has no pages of 1G: the heap takes memory and gives it back in pieces of 2M; say 2M";
  if (!is(text, "off") && !is(text, "2M")) return false;
  return oh_settings.hugetlb = is(text, "2M"), true;
}

/* The kernel sends some signals for what an instruction did: where a handler returns, the instruction runs again, for
   ever, or its effect is lost. Others have no handlers. */
static bool is_for_handlers(int number)
{
  static int const others[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGKILL, SIGSTOP };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (number == others[i]) return false;
  return true;
}

static bool read_signal(char const *text)
{
  static struct { char const *name; int number; } const known[] = {
    { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "HUP", SIGHUP }, { "URG", SIGURG }, { "WINCH", SIGWINCH }
  };
  size_t number;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (is(text, known[i].name)) return oh_settings.stats_signal = known[i].number, true;
  if (!read_size(text, &number) || number == 0 || number > 64 || !is_for_handlers((int)number)) return false;
  return oh_settings.stats_signal = (int)number, true;
}

static bool read_name(char const *text, char *result, size_t room)
{
  size_t length = strlen(text);
  if (length == 0 || length >= room) return false;
  memcpy(result, text, length + 1);
  return true;
}

/* adaptive, or adaptive:MIN-MAX. A range that cannot be has its reason in `why`. */
static bool read_minor(char *text, char const **why)
{
  if (is(text, "fixed")) return oh_settings.minor_adaptive = false, true;
  char *range = strchr(text, ':'), *to = range == NULL ? NULL : strchr(range, '-');
  if (range != NULL) *range++ = 0;
  if (to != NULL) *to++ = 0;
  size_t least = oh_settings.minor_least, most = oh_settings.minor_most;
  bool good = is(text, "adaptive");
  if (range != NULL) good = good && to != NULL && read_size(range, &least) && read_size(to, &most);
  char const *not = !good ? NULL
                    : least < OH_SETTINGS_MINOR_LEAST ? "MIN is too small: the runtime has no minor heap below 4k words"
                    : most > OH_SETTINGS_MINOR_MOST ? "MAX is too large: the runtime has no minor heap above 256M words"
                    : least > most ? "MIN is more than MAX" : NULL;
  if (not != NULL) *why = not;
  good = good && not == NULL;
  if (good) {
    oh_settings.minor_adaptive = true;
    oh_settings.minor_least = least;
    oh_settings.minor_most = most;
  }
  /* as it was, for the message */
  if (range != NULL) range[-1] = ':';
  if (to != NULL) to[-1] = '-';
  return good;
}

/* A number of at most seven digits, and a unit. */
static bool read_time(char const *text, uint64_t *result)
{
  static struct { char const *name; uint64_t nanoseconds; } const units[] = {
    { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 }
  };
  size_t digits = strspn(text, "0123456789");
  if (digits == 0 || digits > 7) return false;
  uint64_t n = strtoull(text, NULL, 10);
  for (size_t i = 0; n != 0 && i < sizeof units / sizeof *units; i++)
    if (is(text + digits, units[i].name)) return *result = n * units[i].nanoseconds, true;
  return false;
}

/* The moment of the next statistics is a number of nanoseconds. */
static bool read_seconds(char const *text, size_t *result)
{
  size_t n;
  return read_size(text, &n) && n <= 31536000 && (*result = n, true);
}

static bool read_bool(char const *text, bool *result)
{
  if (!is(text, "0") && !is(text, "1")) return false;
  return *result = *text == '1', true;
}

static bool read_memory(char const *text)
{
  bool small = is(text, "small");
  if (!small && !is(text, "follow") && !is(text, "stock")) return false;
  oh_settings.frugal = small;
  return oh_settings.reclaim = small || is(text, "follow"), true;
}

/* Bytes, of which there are as many as that, or a share from 1% to 100%. */
static bool read_part(char *text, size_t least, size_t most, size_t *n, bool *percent)
{
  size_t length = strlen(text);
  *percent = length > 1 && text[length - 1] == '%';
  if (*percent) text[length - 1] = 0;
  bool good = read_size(text, n) && (*percent ? *n >= 1 && *n <= 100 : *n >= least && *n <= most);
  if (*percent) text[length - 1] = '%'; /* as it was, for the message */
  return good;
}

/* All addresses that a process may have, and a number of OCaml's. */
#define LIMIT_MOST (sizeof(size_t) == 8 ? SIZE_MAX / 128 + 1 : SIZE_MAX / 4)

static bool read_limit(char *text)
{
  size_t n;
  bool percent;
  struct oh_settings_limit *limit = &oh_settings.limit;
  if (is(text, "cgroup")) return limit->kind = OH_SETTINGS_LIMIT_CGROUP, true;
  if (!read_part(text, M, LIMIT_MOST, &n, &percent)) return false;
  *limit = (struct oh_settings_limit){ percent ? OH_SETTINGS_LIMIT_PERCENT : OH_SETTINGS_LIMIT_BYTES, n };
  return true;
}

static bool read_floor(char *text)
{
  size_t n = 6;
  bool automatic = is(text, "auto"), percent = true;
  if (!automatic && !read_part(text, 0, SIZE_MAX, &n, &percent)) return false;
  oh_settings.floor = percent ? 0 : n;
  oh_settings.floor_percent = percent ? n : 0;
  oh_settings.floor_most = automatic ? 512 * M : SIZE_MAX;
  return true;
}

static bool read_idle(char const *text)
{
  if (is(text, "off")) return oh_settings.idle = 0, true;
  return read_time(text, &oh_settings.idle);
}

static bool read_helper(char const *text)
{
  enum oh_settings_helper helper;
  if (is(text, "off")) helper = OH_SETTINGS_HELPER_OFF;
  else if (is(text, "auto")) helper = OH_SETTINGS_HELPER_AUTO;
  else if (is(text, "on")) helper = OH_SETTINGS_HELPER_ON;
  else return false;
  return oh_settings.helper = helper, true;
}

static bool read_clock(char const *text)
{
  if (!is(text, "machine") && !is(text, "step")) return false;
  return oh_settings.steps = *text == 's', true;
}

/* All domains that there may be have such a ring each. */
static bool read_ring(char const *text)
{
  size_t n;
  return read_size(text, &n) && n <= (size_t)16 << 30 && (oh_settings.check.ring = n, true);
}

/* move, move:N or off. */
static bool read_check(char const *text, char const **why)
{
#if OH_CHECKING
  (void)why;
  if (is(text, "off")) return oh_settings.check.off = true;
  size_t n = oh_settings.check.every;
  bool good = is(text, "move") || (strncmp(text, "move:", 5) == 0 && read_size(text + 5, &n) && n != 0 && n <= M);
  return good && (oh_settings.check.every = n, true);
#else
  *why = "the program has to be linked with -runtime-variant _outheap_check: see outheap-check --help";
  return is(text, "off");
#endif
}

static bool read_marking(char const *text)
{
  if (!is(text, "range") && !is(text, "table")) return false;
  return oh_settings.marking_table = *text == 't', true;
}

enum { YOUNG = 1 << OH_SPACE_YOUNG, POOLS = 1 << OH_SPACE_POOLS, BLOCKS = 1 << OH_SPACE_BLOCKS };
#define SIZE "a number of bytes, or one with K, M, G or T"
#define PERCENT "a number of percent"
#define SECONDS "a number of seconds, a year (31536000) at most"
#define SIGNAL "USR1, USR2, HUP, URG, WINCH or a number from 1 to 64, but of no fault, KILL or STOP"

/* Each setting: its name, its possible values in words, what reads one from `value`. */
#define SETTINGS_LIST(S) \
  S("thp", "off, advise or always", read_thp(value, YOUNG | POOLS | BLOCKS)) \
  S("thp.young", "off, advise or always", read_thp(value, YOUNG)) \
  S("thp.pools", "off, advise or always", read_thp(value, POOLS)) \
  S("thp.blocks", "off, advise or always", read_thp(value, BLOCKS)) \
  S("hugetlb", "off or 2M", read_hugetlb(value, wanted)) \
  S("thp.from", SIZE, read_size(value, &oh_settings.thp_from)) \
  S("reserve", SIZE, read_size(value, &oh_settings.reserve)) \
  S("keep", SIZE, read_both(value, &oh_settings.small.keep, &oh_settings.huge.keep)) \
  S("keep.share", PERCENT, \
    read_both(value, &oh_settings.small.keep_share, &oh_settings.huge.keep_share)) \
  S("slack", PERCENT, read_both(value, &oh_settings.small.slack, &oh_settings.huge.slack)) \
  S("opaque", "0 or 1", read_bool(value, &oh_settings.opaque)) \
  S("minor", "fixed, adaptive or adaptive:MIN-MAX, in words from 4k to 256M", read_minor(value, wanted)) \
  S("minor.pause", "a time from 1us to 9999999s, such as 5ms", \
    read_time(value, &oh_settings.pause)) \
  S("memory", "follow, small or stock", read_memory(value)) \
  S("memory.pause", "a time from 1us to 9999999s, such as 10ms", \
    read_time(value, &oh_settings.compact_pause)) \
  S("memory.idle", "a time from 1us to 9999999s, such as 2s, or off", read_idle(value)) \
  S("memory.idle.pause", "a time from 1us to 9999999s, such as 30ms", \
    read_time(value, &oh_settings.idle_pause)) \
  S("memory.floor", "a number of bytes, such as 64M, a share such as 5%, or auto", read_floor(value)) \
  S("limit", "a number of bytes from 1M to 131072T, such as 2G, a share such as 75%, or cgroup", \
    read_limit(value)) \
  S("helper", "off, auto or on", read_helper(value)) \
  S("warn", "0 or 1", read_bool(value, &oh_settings.warn)) \
  S("stats", "0 or 1", read_bool(value, &oh_settings.stats)) \
  S("stats.signal", SIGNAL, read_signal(value)) \
  S("stats.every", SECONDS, read_seconds(value, &oh_settings.stats_every)) \
  S("stats.to", "a file, or fd:N", read_name(value, oh_settings.stats_to, sizeof oh_settings.stats_to)) \
  S("check", "move, move:N (from 1 to 1048576) or off", read_check(value, wanted)) \
  S("check.seed", "a number", read_size(value, &oh_settings.check.seed)) \
  S("check.cycle", "a number of collections, or 0", read_size(value, &oh_settings.check.cycle)) \
  S("check.go", "0 or 1", read_bool(value, &oh_settings.check.go)) \
  S("check.report", "a file", read_name(value, oh_settings.check.report, sizeof oh_settings.check.report)) \
  S("check.large", "a number of bytes", read_size(value, &oh_settings.check.large)) \
  S("check.ring", "a number of bytes up to 16G", read_ring(value)) \
  S("debug.report", "a number N: every Nth pointer is printed", read_size(value, &oh_settings.report)) \
  S("debug.faults", "off or report", /* the library outheap.region reads it */ \
    is(value, "off") || is(value, "report")) \
  S("debug.slices", "0 or 1", read_bool(value, &oh_settings.slices)) \
  S("debug.marking", "range or table", read_marking(value)) \
  S("debug.clock", "machine or step", read_clock(value)) \
  S("debug.compact", "0 or 1", read_bool(value, &oh_settings.compact)) \
  S("debug.stack", SIZE, read_size(value, &oh_settings.helper_stack)) \
  S("debug.base", "a hexadecimal address", read_number(value, 16, &oh_settings.base))

/* Reads one setting. False, and then what would have been possible in `wanted`, if there is no such setting, or if it
   has no such value. */
static bool read_one(char const *name, char *value, char const **wanted)
{
#define READ(known, values, read) \
  if (is(name, known)) return *wanted = known " is " values, (read);
  SETTINGS_LIST(READ)
#undef READ
#define NAME(known, values, read) " " known
  *wanted = "the settings are:" SETTINGS_LIST(NAME);
#undef NAME
  return false;
}

void oh_settings_read(char const *list)
{
  int error = errno;
  while (list != NULL && *list != 0) {
    char item[256];
    size_t length = strcspn(list, ",");
    if (length != 0) {
      bool whole = length < sizeof item;
      size_t n = whole ? length : sizeof item - 1;
      memcpy(item, list, n);
      item[n] = 0;
      char *value = strchr(item, '='), none[] = "";
      char const *wanted;
      if (value != NULL) *value = 0;
      bool good = read_one(item, whole && value != NULL ? value + 1 : none, &wanted);
      if (!whole || value == NULL || !good) {
        if (value != NULL) *value = '=';
        oh_log("OUTHEAP: ignored: %s (%s)", item, wanted);
      }
    }
    list += length + (list[length] == ',');
  }
  if (oh_settings.pause != 0 && !oh_settings.minor_adaptive)
    oh_log("OUTHEAP: minor.pause has no effect without minor=adaptive");
  errno = error;
}
