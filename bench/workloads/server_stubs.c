/* SPDX-License-Identifier: MIT */
/* An event loop (epoll) and the server's side of the Redis protocol, for OCaml closures: RESP requests come in, each
   calls the closure of its command, and what that returns goes out. */
#define _GNU_SOURCE
#include "checked_root.h"
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/memory.h>
#include <caml/signals.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  MOST_COMMANDS = 32,
  MOST_ARGUMENTS = 64,
  MOST_EVENTS = 64,
  BUCKETS = 1 << 17,
  MOST_PIECES = 64,
  LEAST_ROOM = 16384
};

typedef struct {
  int fd;
  boxroot session;
  char *input; /* bytes start to end are still to be read */
  size_t start, end, size;
  boxroot *replies; /* those still to be sent */
  size_t count, room;
} connection;

typedef struct entry {
  struct entry *next;
  boxroot record;
  size_t length;
  char key[];
} entry;

static struct {
  char name[16];
  boxroot closure;
} commands[MOST_COMMANDS];
static int commands_count;
static boxroot connect_closure;
static entry *table[BUCKETS];
static long requests;
static int listener = -1, events = -1;
static char socket_path[sizeof((struct sockaddr_un *)0)->sun_path];

static _Noreturn void fail(char const *what)
{
  perror(what);
  exit(1);
}

static void *checked(void *block)
{
  if (!block) fail("memory");
  return block;
}

/* The table. */

static entry **find(char const *key, size_t length)
{
  size_t hash = 14695981039346656037u;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)key[i]) * 1099511628211u;
  entry **link = &table[(hash ^ hash >> 32) % BUCKETS];
  while (*link && ((*link)->length != length || memcmp((*link)->key, key, length))) link = &(*link)->next;
  return link;
}

value server_find(value key)
{
  entry *e = *find(String_val(key), caml_string_length(key));
  if (!e) return Val_long(0);
  value some = caml_alloc_small(1, 0); /* may move what the root holds */
  Field(some, 0) = boxroot_get(e->record);
  return some;
}

value server_store(value key, value record)
{
  size_t length = caml_string_length(key);
  entry **link = find(String_val(key), length), *e = *link;
  if (e) {
    checked_modify(&e->record, record);
    return Val_unit;
  }
  e = *link = checked(malloc(sizeof *e + length));
  *e = (entry){.record = checked_create(record), .length = length};
  memcpy(e->key, String_val(key), length);
  return Val_unit;
}

/* What is called. */

value server_on(value name, value closure)
{
  if (!boxroot_setup() || commands_count == MOST_COMMANDS || caml_string_length(name) >= sizeof commands->name) abort();
  strcpy(commands[commands_count].name, String_val(name));
  commands[commands_count++].closure = checked_create(closure);
  return Val_unit;
}

value server_on_connect(value closure)
{
  if (!boxroot_setup()) abort();
  connect_closure = checked_create(closure);
  return Val_unit;
}

static boxroot closure_of(char const *name, size_t length)
{
  for (int i = 0; i < commands_count; i++)
    if (strlen(commands[i].name) == length && !strncasecmp(commands[i].name, name, length)) return commands[i].closure;
  return NULL;
}

/* Connections. */

static void watch(int fd, void *owner)
{
  struct epoll_event e = {.events = EPOLLIN, .data.ptr = owner};
  if (epoll_ctl(events, EPOLL_CTL_ADD, fd, &e)) fail("epoll_ctl");
}

static void add_reply(connection *c, value reply)
{
  if (c->count == c->room) c->replies = checked(realloc(c->replies, (c->room = 2 * c->room + 32) * sizeof *c->replies));
  c->replies[c->count++] = checked_create(reply);
}

static void end_connection(connection *c)
{
  while (c->count) boxroot_delete(c->replies[--c->count]);
  boxroot_delete(c->session);
  close(c->fd);
  free(c->input);
  free(c->replies);
  free(c);
}

static void begin_connection(void)
{
  int fd = accept(listener, NULL, NULL);
  if (fd < 0) fail("accept");
  connection *c = checked(calloc(1, sizeof *c));
  c->fd = fd;
  c->session = checked_create(caml_callback(boxroot_get(connect_closure), Val_unit));
  watch(fd, c);
}

/* Sends replies straight from OCaml's heap: nothing here runs the collector, so no string moves. False: the other side
   has gone. */
static bool send_replies(connection *c)
{
  size_t first = 0, sent = 0; /* bytes of the first one */
  bool good = true;
  while (good && first < c->count) {
    struct iovec pieces[MOST_PIECES];
    int n = 0;
    for (; n < MOST_PIECES && first + n < c->count; n++) {
      value text = boxroot_get(c->replies[first + n]);
      size_t skip = n == 0 ? sent : 0;
      pieces[n] = (struct iovec){(char *)String_val(text) + skip, caml_string_length(text) - skip};
    }
    ssize_t written = writev(c->fd, pieces, n);
    good = written >= 0 || errno == EINTR;
    for (int i = 0; i < n && written > 0; i++) {
      size_t part = (size_t)written < pieces[i].iov_len ? (size_t)written : pieces[i].iov_len;
      written -= part;
      if (part < pieces[i].iov_len) {
        sent = (i == 0 ? sent : 0) + part;
        break;
      }
      sent = 0;
      first++;
    }
  }
  while (c->count) boxroot_delete(c->replies[--c->count]);
  return good;
}

/* A number after `mark`, and the end of its line: *at is after it. False: not all of it has come. */
static bool read_number(connection const *c, size_t *at, char mark, long *number)
{
  char const *line = c->input + *at, *end = memchr(line, '\n', c->end - *at);
  if (!end) return false;
  if (*line != mark) fail("not the Redis protocol");
  *number = strtol(line + 1, NULL, 10);
  *at = end + 1 - c->input;
  return true;
}

/* Reads one request, calls for it, and queues the reply. False: not all of it has come. */
static bool serve_one(connection *c)
{
  CAMLparam0();
  CAMLlocal2(arguments, text);
  size_t at = c->start, starts[MOST_ARGUMENTS];
  long count, lengths[MOST_ARGUMENTS];
  if (!read_number(c, &at, '*', &count)) CAMLreturnT(bool, false);
  if (count < 1 || count > MOST_ARGUMENTS) fail("not the Redis protocol");
  for (long i = 0; i < count; i++) {
    if (!read_number(c, &at, '$', &lengths[i])) CAMLreturnT(bool, false);
    starts[i] = at;
    at += lengths[i] + 2;
    if (at > c->end) CAMLreturnT(bool, false);
  }
  arguments = caml_alloc(count, 0);
  for (long i = 0; i < count; i++) {
    text = caml_alloc_initialized_string(lengths[i], c->input + starts[i]);
    Store_field(arguments, i, text);
  }
  boxroot closure = closure_of(c->input + starts[0], lengths[0]);
  c->start = at;
  requests++;
  if (closure) add_reply(c, caml_callback2(boxroot_get(closure), boxroot_get(c->session), arguments));
  else add_reply(c, caml_copy_string("-ERR unknown command\r\n"));
  CAMLreturnT(bool, true);
}

/* False: the connection has ended. */
static bool receive(connection *c)
{
  if (c->start) memmove(c->input, c->input + c->start, c->end - c->start);
  c->end -= c->start;
  c->start = 0;
  if (c->size - c->end < LEAST_ROOM) c->input = checked(realloc(c->input, c->size = 2 * c->size + LEAST_ROOM));
  ssize_t n = read(c->fd, c->input + c->end, c->size - c->end);
  if (n <= 0) return n < 0 && errno == EINTR;
  c->end += n;
  while (serve_one(c)) {}
  return send_replies(c);
}

value server_listen(value unit)
{
  (void)unit;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  signal(SIGPIPE, SIG_IGN);
  strcpy(socket_path, "/tmp/bench-server-XXXXXX");
  if (!mkdtemp(socket_path)) fail(socket_path);
  strcat(socket_path, "/socket");
  strcpy(address.sun_path, socket_path);
  listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 512))
    fail(socket_path);
  if ((events = epoll_create1(EPOLL_CLOEXEC)) < 0) fail("epoll_create1");
  watch(listener, &listener);
  return caml_copy_string(socket_path);
}

/* Starts a program, whose output can be read from *output. */
static pid_t start(value words, int *output)
{
  int ends[2];
  if (pipe(ends)) fail("pipe");
  char const *argv[MOST_ARGUMENTS + 1] = {0};
  for (size_t i = 0; i < Wosize_val(words) && i < MOST_ARGUMENTS; i++) argv[i] = String_val(Field(words, i));
  pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execvp(argv[0], (char **)argv);
    perror(argv[0]);
    _exit(127);
  }
  close(ends[1]);
  *output = ends[0];
  return child;
}

value server_run(value words)
{
  CAMLparam1(words);
  int output;
  pid_t child = start(words, &output);
  watch(output, &output);
  char *text = NULL;
  size_t length = 0;
  for (bool runs = true; runs;) {
    struct epoll_event happened[MOST_EVENTS];
    caml_enter_blocking_section();
    int n = epoll_wait(events, happened, MOST_EVENTS, -1);
    caml_leave_blocking_section();
    if (n < 0 && errno != EINTR) fail("epoll_wait");
    for (int i = 0; i < n; i++) {
      void *owner = happened[i].data.ptr;
      if (owner == &listener) {
        begin_connection();
      } else if (owner == &output) {
        text = checked(realloc(text, length + LEAST_ROOM));
        ssize_t got = read(output, text + length, LEAST_ROOM);
        if (got > 0) length += got;
        else runs = false;
      } else {
        if (!receive(owner)) end_connection(owner);
      }
    }
  }
  close(output);
  int status;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status)) length = 0;
  value result = caml_alloc_initialized_string(length, text ? text : "");
  free(text);
  CAMLreturn(result);
}

value server_requests(value unit)
{
  (void)unit;
  return Val_long(requests);
}

value server_close(value unit)
{
  close(listener);
  close(events);
  unlink(socket_path);
  *strrchr(socket_path, '/') = 0;
  rmdir(socket_path);
  for (size_t i = 0; i < BUCKETS; i++)
    for (entry *e = table[i], *next; e; e = next) {
      next = e->next;
      boxroot_delete(e->record);
      free(e);
    }
  while (commands_count) boxroot_delete(commands[--commands_count].closure);
  boxroot_delete(connect_closure);
  return unit;
}
