/* SPDX-License-Identifier: MIT */
/* Time that a test drives: it goes from deadline to deadline, and passes when nobody has anything more to do. */
#include "clock.h"
#include "settings.h"
#include "start.h"
#include "try_child.h"

#define MS ((uint64_t)1000000)
#define S (1000 * MS)

/* Threads that wait again and again, for so long each time; a slow one has work to do when it wakes. What they have
   seen, in its order. */
enum { THREADS = 3, MOST = 100 };
static struct sleeper {
  pthread_mutex_t lock;
  pthread_t thread;
  struct oh_clock_sleeper at;
  uint64_t every;
  bool ends, slow;
} all[THREADS];
static struct { uint64_t now, used; int who; } seen[MOST];
static size_t count;

static void *sleep_on(void *argument)
{
  struct sleeper *s = argument;
  pthread_mutex_lock(&s->lock);
  while (!s->ends) {
    uint64_t until = oh_clock_now() + s->every;
    while (!s->ends && oh_clock_sleep(&s->at, until)) {}
    if (s->ends) break;
    if (s->slow) oh_clock_await(&s->at, 20 * MS);
    size_t i = __atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST);
    EXPECT(i < MOST, "too many");
    seen[i].now = oh_clock_now();
    seen[i].used = oh_clock_used();
    seen[i].who = (int)(s - all);
  }
  oh_clock_leave(&s->at);
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

static void begin(int i, uint64_t every, bool slow)
{
  struct sleeper *s = &all[i];
  pthread_mutex_init(&s->lock, NULL);
  *s = (struct sleeper){ .lock = s->lock, .at = { .lock = &s->lock }, .every = every, .slow = slow };
  pthread_mutex_lock(&s->lock);
  oh_clock_enter(&s->at);
  pthread_mutex_unlock(&s->lock);
  EXPECT(pthread_create(&s->thread, NULL, sleep_on, s) == 0, "thread");
}

static void end(int i)
{
  struct sleeper *s = &all[i];
  pthread_mutex_lock(&s->lock);
  s->ends = true;
  oh_clock_call(&s->at);
  pthread_mutex_unlock(&s->lock);
  pthread_join(s->thread, NULL);
}

static void advance_in_order(void)
{
  oh_start();
  uint64_t from = oh_clock_now(), used = oh_clock_used();
  begin(0, 300 * MS, false);
  begin(1, 200 * MS, true);
  begin(2, OH_CLOCK_NEVER - from - S, false); /* far away */
  EXPECT(oh_clock_now() == from, "it stands still");
  EXPECT(oh_clock_advance(199 * MS, 0) && count == 0 && oh_clock_now() == from + 199 * MS, "nothing is due");
  EXPECT(oh_clock_advance(801 * MS, 801), "advanced");
  EXPECT(count == 8 && oh_clock_now() == from + S && oh_clock_used() == used + 801, "%zu", count);
  static struct { uint64_t now; int who; } const due[] = {
    { 200, 1 }, { 300, 0 }, { 400, 1 }, { 600, -1 }, { 600, -1 }, { 800, 1 }, { 900, 0 }, { 1000, 1 } };
  for (size_t i = 0; i < count; i++) {
    EXPECT(seen[i].now == from + due[i].now * MS, "%zu", i);
    EXPECT(seen[i].who == due[i].who || due[i].who < 0, "%zu: %d", i, seen[i].who);
    EXPECT(seen[i].used - used == due[i].now - 199, "%zu: %llu", i, (unsigned long long)seen[i].used);
  }
  for (int i = 0; i < THREADS; i++) end(i);
  EXPECT(oh_clock_advance(10 * S, 0) && count == 8, "nobody is there any more");
}
static void order(void) { in_child("debug.clock=step", advance_in_order); }

/* Who is called goes on at that time; a call does not get lost, and time waits for its answer. */
static void call(void)
{
  oh_start();
  uint64_t from = oh_clock_now();
  begin(0, S, false);
  oh_clock_advance(500 * MS, 0);
  for (int i = 0; i < 100; i++) {
    pthread_mutex_lock(&all[0].lock);
    oh_clock_call(&all[0].at);
    pthread_mutex_unlock(&all[0].lock);
  }
  EXPECT(oh_clock_advance(499 * MS, 0) && count == 0, "it sleeps again");
  EXPECT(oh_clock_advance(MS, 0) && count == 1 && seen[0].now == from + S, "until its time");
  end(0);
}
static void calls(void) { in_child("debug.clock=step", call); }

/* A child has its parent's time, no thread, and has used nothing. */
static void fork_it(void)
{
  int status;
  oh_start();
  begin(0, S, false);
  oh_clock_advance(1500 * MS, 7);
  uint64_t now = oh_clock_now();
  pid_t child = fork();
  if (child == 0) {
    bool good = oh_clock_now() == now && oh_clock_used() == 0 && oh_clock_advance(10 * S, 3) && count == 1;
    _exit(good && oh_clock_now() == now + 10 * S && oh_clock_used() == 3 ? 0 : 1);
  }
  EXPECT(waitpid(child, &status, 0) == child && status == 0, "child: %x", status);
  EXPECT(oh_clock_now() == now && oh_clock_used() == 7 && oh_clock_advance(S, 0) && count == 2, "the parent goes on");
  end(0);
}
static void forks(void)
{
  if (!TRY_SANITIZED) in_child("debug.clock=step", fork_it); /* they allow no threads in the child */
}

static void run_by_machine(void)
{
  oh_start();
  uint64_t from = oh_clock_now(), used = oh_clock_used();
  EXPECT(!oh_clock_advance(10 * S, 10 * S), "refused");
  begin(0, MS, false);
  while (__atomic_load_n(&count, __ATOMIC_SEQ_CST) < 3) usleep(100);
  end(0);
  EXPECT(oh_clock_now() >= from + 3 * MS && oh_clock_used() >= used, "it goes by itself");
}
static void machine(void) { in_child("", run_by_machine); }

int main(int argc, char **argv)
{
  try_start(argc, argv);
  TRY(order);
  TRY(calls);
  TRY(forks);
  TRY(machine);
  return try_end();
}
