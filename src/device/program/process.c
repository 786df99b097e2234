/* Starts and ends the processes that compile kernels ahead, and tells them what to compile. */
#include "base/text.h"
#include "device/pocl.h"
#include "device/program/ahead.h"
#include "device/program/kernel.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_PROCESSES = 3, MOST_KERNELS = 512, SECONDS_TO_SEND = 2 };

extern char **environ;

static struct {
    pthread_mutex_t mutex;
    const char *path;               /* NULL: none may be started */
    const struct lk_device *device; /* for which the processes below were started */
    int count;
    pid_t pids[MOST_PROCESSES];
    int sockets[MOST_PROCESSES]; /* a process ends when its socket is closed */
} ahead = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void lk_device_set_compiler(const char *path)
{
    pthread_mutex_lock(&ahead.mutex);
    ahead.path = path;
    pthread_mutex_unlock(&ahead.mutex);
}

/* A request is a list of strings, each with its zero byte, the last of them empty: the device's
 * name, options, source, kernels. Returns NULL where it is not worth a process. */
static char *make_request(const struct lk_device *device, const char *const *head, int from,
                          int every, size_t *bytes)
{
    const char *words[3 + MOST_KERNELS];
    int count = 0, seen = 0;
    char names[MOST_KERNELS][96];
    for (; count < 3; count++)
        words[count] = head[count];
    for (const struct lk_kernel *k = device->pending; k && count < 3 + MOST_KERNELS;
         k = k->next_pending)
        if (k->program->is_wanted && seen++ % every == from) {
            snprintf(names[count - 3], sizeof names[0], "%s_%d", k->name, k->program->unit);
            words[count] = names[count - 3];
            count++;
        }
    size_t most = 1;
    for (int i = 0; i < count; i++)
        most += strlen(words[i]) + 1;
    char *request = count > 3 ? malloc(most) : NULL;
    size_t at = 0;
    for (int i = 0; request && i < count; i++) {
        const size_t length = strlen(words[i]) + 1;
        memcpy(request + at, words[i], length);
        at += length;
    }
    if (request)
        request[at] = '\0';
    *bytes = most;
    return request;
}

/* Its input is the socket and it says nothing: what it does not manage the caller does. */
static bool spawn(int input, pid_t *pid)
{
    char *const words[] = {(char *)ahead.path, LK_COMPILE_AHEAD, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    if (posix_spawn_file_actions_init(&files) != 0)
        return false;
    bool started = false;
    if (posix_spawnattr_init(&attributes) == 0) {
        started = posix_spawn_file_actions_adddup2(&files, input, 0) == 0 &&
                  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0) == 0 &&
                  posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0) == 0 &&
                  posix_spawnattr_setsigmask(&attributes, &none) == 0 &&
                  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK) == 0 &&
                  posix_spawn(pid, ahead.path, &files, &attributes, words, environ) == 0;
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return started;
}

/* A process that died or does not read is not waited for long, and gives no SIGPIPE. */
static bool send_all(int to, const char *data, size_t bytes)
{
    const struct timeval patience = {.tv_sec = SECONDS_TO_SEND};
    setsockopt(to, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    while (bytes > 0) {
        const ssize_t sent = send(to, data, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        data += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

/* The sockets of processes that were started before must not be inherited by later ones, which
 * would keep them open. */
static bool open_sockets(int ends[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return false;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    return true;
}

static void start_one(const char *request, size_t bytes)
{
    int ends[2];
    pid_t pid;
    if (!open_sockets(ends))
        return;
    const bool started = spawn(ends[1], &pid);
    close(ends[1]);
    if (!started) {
        close(ends[0]);
        return;
    }
    (void)!send_all(ends[0], request, bytes);
    ahead.pids[ahead.count] = pid;
    ahead.sockets[ahead.count++] = ends[0];
}

/* PoCL writes its files under other names and renames them, so a process may end at any moment;
 * one that hangs must. A process that is gone is not signalled: its number may be another's. */
static void end_all(void)
{
    for (int i = 0; i < ahead.count; i++) {
        close(ahead.sockets[i]);
        if (waitpid(ahead.pids[i], NULL, WNOHANG) != 0)
            continue;
        kill(ahead.pids[i], SIGKILL);
        while (waitpid(ahead.pids[i], NULL, 0) < 0 && errno == EINTR)
            ;
    }
    ahead.count = 0;
    ahead.device = NULL;
}

void lk_ahead_start(const struct lk_device *device, const char *options, const char *source)
{
    const char *const head[] = {device->info.name, options, source};
    long count = lk_build_thread_count() - 1;
    count = count < MOST_PROCESSES ? count : MOST_PROCESSES;
    pthread_mutex_lock(&ahead.mutex);
    const bool wanted = ahead.path && lk_pocl_compiles_late(&device->info) &&
                        (!ahead.device || ahead.device == device);
    if (wanted && count > 0) {
        end_all(); /* of an earlier build of this device */
        ahead.device = device;
        for (int i = 0; i < count; i++) {
            size_t bytes = 0;
            char *request = make_request(device, head, i, (int)count, &bytes);
            if (request)
                start_one(request, bytes);
            free(request);
        }
    }
    pthread_mutex_unlock(&ahead.mutex);
}

void lk_ahead_end(const struct lk_device *device)
{
    pthread_mutex_lock(&ahead.mutex);
    if (ahead.device == device)
        end_all();
    pthread_mutex_unlock(&ahead.mutex);
}
