/* SPDX-License-Identifier: MIT */
#include "settings.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define M ((size_t)1 << 20)

extern char const outheap_defaults[] __attribute__((weak)); /* of the executable, which may have none */
#ifndef OH_DEFAULTS
#define OH_DEFAULTS "" /* outheap-build --defaults */
#endif

struct oh_settings oh_settings = {
#define DEFAULT(name, kind, thp) [OH_SPACE_##name] = OH_SETTINGS_THP_##thp,
  .thp = { OH_SPACES_LIST(DEFAULT) },
#undef DEFAULT
  .thp_from = 8 * M,
  .small = { .keep = 32 * M, .share = 10, .slack = 100 },
  .huge = { .keep = 4 * M, .share = 5, .slack = 7 },
  .minor_least = (size_t)32 << 10,
  .minor_most = (size_t)8 << 20,
  .reclaim = true,
  .compact_pause = 10000000,
  .idle = 2000000000,
  .idle_pause = 30000000,
  .check = { .every = 2, .cycle = 20, .seed = 1, .ring = 1024 * M, .large = 1024 * M },
};

/* The readers change oh_settings also where they fail: then oh_settings_read has them undone. They may cut up what they
   read. */

static bool is(char const *name, char const *wanted) { return strcmp(name, wanted) == 0; }

/* Ends a text at the first such character. Result: what follows it; NULL: there is none. */
static char *cut(char *text, char at)
{
  char *found = strchr(text, at);
  if (found != NULL) *found++ = 0;
  return found;
}

/* The place of a word among these; -1: it is none of them. */
static int place_of(char const *word, char const *words)
{
  size_t length = strlen(word);
  for (int i = 0; *words != 0; i++) {
    size_t n = strcspn(words, " ");
    if (n == length && memcmp(word, words, n) == 0) return i;
    words += n + (words[n] == ' ');
  }
  return -1;
}

/* One of two words: the second one is true. */
static bool read_choice(char const *text, char const *words, bool *result)
{
  int i = place_of(text, words);
  return *result = i == 1, i >= 0;
}

static bool read_bool(char const *text, bool *result) { return read_choice(text, "0 1", result); }

static bool read_size(char const *text, size_t *result)
{
  static char const units[] = "KMGT";
  char *end;
  if (*text < '0' || *text > '9') return false; /* no blanks, no sign */
  errno = 0;
  unsigned long long n = strtoull(text, &end, 10);
  char const *unit = *end == 0 ? NULL : strchr(units, *end == 'k' ? 'K' : *end);
  unsigned shift = unit == NULL ? 0 : 10 * (unsigned)(unit - units + 1);
  if (end[unit != NULL] != 0 || errno != 0 || n > SIZE_MAX >> shift) return false;
  *result = (size_t)n << shift;
  return true;
}

/* From 0% to 100%. */
static bool read_percent(char const *text, size_t *result)
{
  size_t digits = strspn(text, "0123456789");
  return digits >= 1 && digits <= 3 && is(text + digits, "%") && (*result = strtoul(text, NULL, 10)) <= 100;
}

/* A number of at most seven digits, and a unit. */
static bool read_time(char const *text, uint64_t *result)
{
  static uint64_t const units[] = { 1000, 1000000, 1000000000 };
  size_t digits = strspn(text, "0123456789");
  if (digits == 0 || digits > 7) return false;
  uint64_t n = strtoull(text, NULL, 10);
  int unit = place_of(text + digits, "us ms s");
  return n != 0 && unit >= 0 && (*result = n * units[unit], true);
}

static bool read_name(char const *text, char *result, size_t room)
{
  size_t length = strlen(text);
  if (length == 0 || length >= room) return false;
  memcpy(result, text, length + 1);
  return true;
}

/* off, advise, advise:SIZE or always. */
static bool read_thp(char *text)
{
  char *from = cut(text, ':');
  int thp = place_of(text, "off advise always");
  if (thp < 0 || (from != NULL && (thp != OH_SETTINGS_THP_ADVISE || !read_size(from, &oh_settings.thp_from))))
    return false;
  static enum oh_space_id const heap[] = { OH_SPACE_YOUNG, OH_SPACE_POOLS, OH_SPACE_BLOCKS };
  for (size_t i = 0; i < sizeof heap / sizeof *heap; i++) oh_settings.thp[heap[i]] = (enum oh_settings_thp)thp;
  oh_settings.thp_asked = thp != OH_SETTINGS_THP_OFF;
  return true;
}

static bool read_hugetlb(char const *text, char const **why)
{
  if (is(text, "1G"))
    *why = "hugetlb has no pages of 1G: the heap takes memory and gives it back in pieces of 2M; say 2M";
  return read_choice(text, "off 2M", &oh_settings.hugetlb);
}

/* SIZE, or SIZE:PERCENT%. */
static bool read_keep(char *text)
{
  struct oh_settings_free *both[] = { &oh_settings.small, &oh_settings.huge };
  char *share = cut(text, ':');
  for (int i = 0; i < 2; i++) {
    if (!read_size(text, &both[i]->keep)) return false;
    if (share == NULL) continue;
    if (!read_percent(share, &both[i]->share)) return false;
    both[i]->slack = both[i]->share;
  }
  return true;
}

/* fixed, adaptive, or adaptive with :MIN-MAX, :TIME or both. A range that cannot be has its reason in `why`. */
static bool read_minor(char *text, char const **why)
{
  char *part = cut(text, ':');
  if (!read_choice(text, "fixed adaptive", &oh_settings.minor_adaptive)) return false;
  if (part != NULL && !oh_settings.minor_adaptive) return false;
  for (char *next; part != NULL; part = next) {
    next = cut(part, ':');
    char *to = cut(part, '-');
    if (to == NULL ? !read_time(part, &oh_settings.pause)
                   : !read_size(part, &oh_settings.minor_least) || !read_size(to, &oh_settings.minor_most))
      return false;
  }
  size_t least = oh_settings.minor_least, most = oh_settings.minor_most;
  char const *not = least < OH_SETTINGS_MINOR_LEAST ? "MIN is too small: the runtime has no minor heap below 4k words"
                    : most > OH_SETTINGS_MINOR_MOST ? "MAX is too large: the runtime has no minor heap above 256M words"
                    : least > most ? "MIN is more than MAX" : NULL;
  if (not != NULL) *why = not;
  return not == NULL;
}

static bool read_memory(char const *text)
{
  int kind = place_of(text, "stock follow small");
  oh_settings.frugal = kind == 2;
  return oh_settings.reclaim = kind != 0, kind >= 0;
}

/* off, TIME, or TIME:TIME. */
static bool read_idle(char *text)
{
  if (is(text, "off")) return oh_settings.idle = 0, true;
  char *pause = cut(text, ':');
  return read_time(text, &oh_settings.idle) && (pause == NULL || read_time(pause, &oh_settings.idle_pause));
}

/* Bytes, of which there are as many as that, or a share from 1% to 100%. */
static bool read_part(char const *text, size_t least, size_t most, size_t *n, bool *percent)
{
  *percent = read_percent(text, n);
  return *percent ? *n != 0 : read_size(text, n) && *n >= least && *n <= most;
}

/* All addresses that a process may have, and a number of OCaml's. */
#define LIMIT_MOST (sizeof(size_t) == 8 ? SIZE_MAX / 128 + 1 : SIZE_MAX / 4)

static bool read_limit(char const *text)
{
  size_t n;
  bool percent;
  struct oh_settings_limit *limit = &oh_settings.limit;
  if (is(text, "cgroup")) return limit->kind = OH_SETTINGS_LIMIT_CGROUP, true;
  if (!read_part(text, M, LIMIT_MOST, &n, &percent)) return false;
  *limit = (struct oh_settings_limit){ percent ? OH_SETTINGS_LIMIT_PERCENT : OH_SETTINGS_LIMIT_BYTES, n };
  return true;
}

static bool read_floor(char const *text)
{
  size_t n = 6;
  bool automatic = is(text, "auto"), percent = true;
  if (!automatic && !read_part(text, 0, SIZE_MAX, &n, &percent)) return false;
  oh_settings.floor = percent ? 0 : n;
  oh_settings.floor_percent = percent ? n : 0;
  oh_settings.floor_most = automatic ? 512 * M : SIZE_MAX;
  return true;
}

static bool read_helper(char const *text)
{
  int helper = place_of(text, "off auto on");
  return helper >= 0 && (oh_settings.helper = (enum oh_settings_helper)helper, true);
}

/* off, or moments with a plus between. */
static bool read_stats(char *when)
{
  oh_settings.stats = false, oh_settings.stats_signals = oh_settings.stats_every = 0;
  if (is(when, "off")) return true;
  static int const signals[] = { SIGUSR1, SIGUSR2, SIGHUP, SIGURG, SIGWINCH };
  for (char *next; when != NULL; when = next) {
    next = cut(when, '+');
    int i = place_of(when, "USR1 USR2 HUP URG WINCH");
    if (i >= 0) oh_settings.stats_signals |= (uint64_t)1 << signals[i];
    else if (is(when, "exit")) oh_settings.stats = true;
    else if (!read_time(when, &oh_settings.stats_every)) return false;
  }
  return true;
}

/* All domains that there may be have such a ring each. */
static bool read_ring(char const *text)
{
  return read_size(text, &oh_settings.check.ring) && oh_settings.check.ring <= (size_t)16 << 30;
}

/* move, move:N or off. */
static bool read_check(char *text, char const **why)
{
#if OH_CHECKING
  (void)why;
  size_t *every = &oh_settings.check.every;
  char *n = cut(text, ':');
  if (!read_choice(text, "move off", &oh_settings.check.off)) return false;
  return n == NULL || (!oh_settings.check.off && read_size(n, every) && *every != 0 && *every <= M);
#else
  *why = "the program has to be linked with -runtime-variant _outheap_check: see outheap-check --help";
  return is(text, "off");
#endif
}

#define SIZE "a number of bytes, or one with K, M, G or T"
#define KEEP "a number of bytes, such as 8M, or that and a share, such as 8M:5%"
#define MINOR "fixed or adaptive[:MIN-MAX][:TIME], with words from 4k to 256M and a pause such as 5ms"
#define TIME "a time from 1us to 9999999s, such as 10ms"
#define IDLE "a time from 1us to 9999999s, such as 2s, or that and a pause, such as 2s:30ms, or off"
#define LIMIT "a number of bytes from 1M to 131072T, such as 2G, a share such as 75%, or cgroup"
#define STATS "off, exit, USR1, USR2, HUP, URG, WINCH or a time such as 60s, or several with + between"

/* Each setting: its name, its possible values in words, what reads one from `value`. */
#define SETTINGS_LIST(S) \
  S("thp", "off, advise, advise:SIZE or always", read_thp(value)) \
  S("hugetlb", "off or 2M", read_hugetlb(value, wanted)) \
  S("reserve", SIZE, read_size(value, &oh_settings.reserve)) \
  S("keep", KEEP, read_keep(value)) \
  S("minor", MINOR, read_minor(value, wanted)) \
  S("memory", "follow, small or stock", read_memory(value)) \
  S("memory.pause", TIME, read_time(value, &oh_settings.compact_pause)) \
  S("memory.idle", IDLE, read_idle(value)) \
  S("memory.floor", "a number of bytes, such as 64M, a share such as 5%, or auto", read_floor(value)) \
  S("limit", LIMIT, read_limit(value)) \
  S("helper", "off, auto or on", read_helper(value)) \
  S("opaque", "0 or 1", read_bool(value, &oh_settings.opaque)) \
  S("stats", STATS, read_stats(value)) \
  S("stats.to", "a file, or fd:N", read_name(value, oh_settings.stats_to, sizeof oh_settings.stats_to)) \
  S("warn", "0 or 1", read_bool(value, &oh_settings.warn)) \
  S("check", "move, move:N (N up to 1048576) or off", read_check(value, wanted)) \
  S("check.seed", "a number", read_size(value, &oh_settings.check.seed)) \
  S("check.cycle", "a number of collections, or 0", read_size(value, &oh_settings.check.cycle)) \
  S("check.go", "0 or 1", read_bool(value, &oh_settings.check.go)) \
  S("check.report", "a file", read_name(value, oh_settings.check.report, sizeof oh_settings.check.report)) \
  S("check.large", "a number of bytes", read_size(value, &oh_settings.check.large)) \
  S("check.ring", "a number of bytes up to 16G", read_ring(value)) \
  S("debug.settings", "0 or 1", read_bool(value, &oh_settings.show)) \
  S("debug.report", "a number N: every Nth pointer is printed", read_size(value, &oh_settings.report)) \
  S("debug.faults", "off or report", place_of(value, "off report") >= 0) /* the library outheap.region reads it */ \
  S("debug.slices", "0 or 1", read_bool(value, &oh_settings.slices)) \
  S("debug.marking", "range or table", read_choice(value, "range table", &oh_settings.marking_table)) \
  S("debug.clock", "machine or step", read_choice(value, "machine step", &oh_settings.steps)) \
  S("debug.compact", "0 or 1", read_bool(value, &oh_settings.compact)) \
  S("debug.stack", SIZE, read_size(value, &oh_settings.helper_stack))

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

void oh_settings_read(char const *list, char const *from)
{
  int error = errno;
  while (list != NULL && *list != 0) {
    char item[256], name[sizeof item], none[] = "";
    size_t length = strcspn(list, ",");
    if (length != 0) {
      bool whole = length < sizeof item;
      size_t n = whole ? length : sizeof item - 1;
      memcpy(item, list, n);
      item[n] = 0;
      char *value = cut(strcpy(name, item), '=');
      char const *wanted;
      struct oh_settings before = oh_settings;
      bool good = read_one(name, whole && value != NULL ? value : none, &wanted);
      if (!whole || value == NULL || !good) {
        oh_settings = before;
        oh_log("%s: ignored: %s (%s)", from, item, wanted);
      }
    }
    list += length + (list[length] == ',');
  }
  errno = error;
}

static struct { char const *list, *from; } lists[] = {
  { OH_DEFAULTS, "defaults of this variant" }, { NULL, "outheap_defaults" }, { NULL, "OUTHEAP" }
};
#define LISTS (sizeof lists / sizeof *lists)

void oh_settings_start(char const *of_caller)
{
  lists[1].list = outheap_defaults;
  lists[2].list = of_caller;
  for (size_t i = 0; i < LISTS; i++) oh_settings_read(lists[i].list, lists[i].from);
}

/* The last value in one list. */
static char const *value_in(char const *list, char const *name, size_t *length)
{
  char const *found = NULL;
  size_t named = strlen(name);
  while (list != NULL && *list != 0) {
    size_t n = strcspn(list, ",");
    if (n > named && list[named] == '=' && memcmp(list, name, named) == 0)
      found = list + named + 1, *length = n - named - 1;
    list += n + (list[n] == ',');
  }
  return found;
}

static char const *value_of(char const *name, size_t *length, char const **from)
{
  for (size_t i = LISTS; i-- > 0;) {
    char const *found = value_in(lists[i].list, name, length);
    if (found != NULL) return *from = lists[i].from, found;
  }
  return NULL;
}

char const *oh_settings_value(char const *name, size_t *length)
{
  char const *from;
  return value_of(name, length, &from);
}

void oh_settings_show(void)
{
  char const *from, *value;
  size_t length;
#define SHOW(name, values, read) \
  if ((value = value_of(name, &length, &from)) != NULL) oh_log("%s=%.*s (%s)", name, (int)length, value, from);
  SETTINGS_LIST(SHOW)
#undef SHOW
}
