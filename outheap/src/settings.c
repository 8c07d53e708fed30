/* SPDX-License-Identifier: MIT */
#include "settings.h"
#include "log.h"
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
  .minor_most = (size_t)4 << 20,
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

static bool read_signal(char const *text)
{
  static struct { char const *name; int number; } const known[] = {
    { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "HUP", SIGHUP }, { "URG", SIGURG }, { "WINCH", SIGWINCH }
  };
  size_t number;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (is(text, known[i].name)) return oh_settings.stats_signal = known[i].number, true;
  if (!read_size(text, &number) || number == 0 || number > 64) return false;
  return oh_settings.stats_signal = (int)number, true;
}

static bool read_name(char const *text)
{
  size_t length = strlen(text);
  if (length == 0 || length >= sizeof oh_settings.stats_to) return false;
  memcpy(oh_settings.stats_to, text, length + 1);
  return true;
}

/* adaptive, or adaptive:MIN-MAX */
static bool read_minor(char *text)
{
  if (is(text, "fixed")) return oh_settings.minor_adaptive = false, true;
  char *range = strchr(text, ':'), *to = range == NULL ? NULL : strchr(range, '-');
  if (range != NULL) *range++ = 0;
  if (to != NULL) *to++ = 0;
  size_t least = oh_settings.minor_least, most = oh_settings.minor_most;
  bool good = is(text, "adaptive");
  if (range != NULL) good = good && to != NULL && read_size(range, &least) && read_size(to, &most);
  good = good && least >= OH_SETTINGS_MINOR_LEAST && least <= most && most <= OH_SETTINGS_MINOR_MOST;
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

static bool read_one(char const *name, char *value)
{
  enum { YOUNG = 1 << OH_SPACE_YOUNG, POOLS = 1 << OH_SPACE_POOLS, BLOCKS = 1 << OH_SPACE_BLOCKS };
  if (is(name, "thp")) return read_thp(value, YOUNG | POOLS | BLOCKS);
  if (is(name, "thp.young")) return read_thp(value, YOUNG);
  if (is(name, "thp.pools")) return read_thp(value, POOLS);
  if (is(name, "thp.blocks")) return read_thp(value, BLOCKS);
  if (is(name, "thp_from")) return read_size(value, &oh_settings.thp_from);
  if (is(name, "reserve")) return read_size(value, &oh_settings.reserve);
  if (is(name, "keep")) return read_both(value, &oh_settings.small.keep, &oh_settings.huge.keep);
  if (is(name, "keep_share")) return read_both(value, &oh_settings.small.keep_share, &oh_settings.huge.keep_share);
  if (is(name, "slack")) return read_both(value, &oh_settings.small.slack, &oh_settings.huge.slack);
  if (is(name, "report")) return read_size(value, &oh_settings.report);
  if (is(name, "minor")) return read_minor(value);
  if (is(name, "marking") && (is(value, "range") || is(value, "table")))
    return oh_settings.marking_table = *value == 't', true;
  if (is(name, "base")) return read_number(value, 16, &oh_settings.base);
  if (is(name, "opaque") && (is(value, "0") || is(value, "1"))) return oh_settings.opaque = *value == '1', true;
  if (is(name, "region-faults") && is(value, "report")) return true; /* the library outheap.region reads it */
  if (is(name, "stats") && (is(value, "0") || is(value, "1"))) return oh_settings.stats = *value == '1', true;
  if (is(name, "stats_signal")) return read_signal(value);
  if (is(name, "stats_every")) return read_size(value, &oh_settings.stats_every);
  if (is(name, "stats_to")) return read_name(value);
  if (is(name, "slices") && (is(value, "0") || is(value, "1"))) return oh_settings.slices = *value == '1', true;
  if (is(name, "warn") && (is(value, "0") || is(value, "1"))) return oh_settings.warn = *value == '1', true;
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
      char *value = strchr(item, '=');
      if (value != NULL) *value = 0;
      if (!whole || value == NULL || !read_one(item, value + 1)) {
        if (value != NULL) *value = '=';
        oh_log("OUTHEAP: ignored: %s", item);
      }
    }
    list += length + (list[length] == ',');
  }
  errno = error;
}
