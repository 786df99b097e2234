/* files FOLDER NTH ERROR once|on LOG COMMAND...: runs a command whose NTH call that concerns a
 * file of a folder, named as /proc names it (open, write, sync, rename, mkdir, ...) fails with
 * that errno; on: and all such calls behind it. LOG gets "COUNT CALL PATH" of the first that
 * failed; where none did (NTH 0), of the last call. Exits as the command does.
 *
 * The kernel asks this program before each such call of the command (seccomp(2), user
 * notification), so that calls within the C library count too. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BY_PATH, BY_FOLDER_AND_PATH, BY_FILE, MOST_CALLS = 32 };

struct call {
    int number;
    const char *name;
    int how;  /* what it is about */
    int path; /* the argument that has it */
};

static const struct call calls[] = {
#ifdef SYS_open
    {SYS_open, "open", BY_PATH, 0},
    {SYS_mkdir, "mkdir", BY_PATH, 0},
    {SYS_rename, "rename", BY_PATH, 1},
    {SYS_link, "link", BY_PATH, 1},
#endif
    {SYS_openat, "open", BY_FOLDER_AND_PATH, 1},
    {SYS_mkdirat, "mkdir", BY_FOLDER_AND_PATH, 1},
    {SYS_renameat, "rename", BY_FOLDER_AND_PATH, 3},
    {SYS_renameat2, "rename", BY_FOLDER_AND_PATH, 3},
    {SYS_linkat, "link", BY_FOLDER_AND_PATH, 3},
    {SYS_write, "write", BY_FILE, 0},
    {SYS_pwrite64, "write", BY_FILE, 0},
    {SYS_writev, "write", BY_FILE, 0},
    {SYS_fsync, "fsync", BY_FILE, 0},
    {SYS_fdatasync, "fsync", BY_FILE, 0},
    {SYS_ftruncate, "ftruncate", BY_FILE, 0},
};
enum { CALLS = sizeof calls / sizeof *calls };

struct plan {
    char folder[PATH_MAX];
    long nth;
    int error;
    bool goes_on;
    const char *log;
    long count;
    bool has_failed;
};

static void die(const char *what)
{
    fprintf(stderr, "files: %s: %s\n", what, strerror(errno));
    exit(99);
}

/* --- the command ---------------------------------------------------------------------------
 */

static int install_filter(void)
{
    struct sock_filter filter[MOST_CALLS + 4];
    int used = 0;
    filter[used++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                  offsetof(struct seccomp_data, nr));
    for (int i = 0; i < CALLS; i++)
        filter[used++] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number, (uint8_t)(CALLS - i), 0);
    filter[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    const struct sock_fprog program = {(unsigned short)used, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                        &program);
}

union room {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static void send_file(int to, int file)
{
    union room room = {0};
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = room.bytes,
                             .msg_controllen = sizeof room.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(header), &file, sizeof file);
    if (sendmsg(to, &message, 0) < 0)
        die("sendmsg");
}

static int receive_file(int from)
{
    union room room = {0};
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = room.bytes,
                             .msg_controllen = sizeof room.bytes};
    int file = -1;
    if (recvmsg(from, &message, 0) > 0 && CMSG_FIRSTHDR(&message))
        memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
    return file;
}

static void run_command(int to, char **command)
{
    const int listener = install_filter();
    if (listener < 0) {
        fprintf(stderr, "files: seccomp: %s\n", strerror(errno));
        _exit(98);
    }
    send_file(to, listener);
    close(listener);
    close(to);
    execvp(command[0], command);
    die(command[0]);
}

/* --- watching it ---------------------------------------------------------------------------
 */

static void read_link(pid_t process, const char *what, char path[PATH_MAX])
{
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/%s", (int)process, what);
    const ssize_t length = readlink(name, path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = '\0';
}

static void read_text(pid_t process, uint64_t address, char text[PATH_MAX])
{
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/mem", (int)process);
    text[0] = '\0';
    const int memory = open(name, O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; memory >= 0 && i < PATH_MAX - 1; i++) {
        if (pread(memory, text + i, 1, (off_t)(address + i)) != 1)
            text[i] = '\0';
        text[i + 1] = '\0';
        if (!text[i])
            break;
    }
    if (memory >= 0)
        close(memory);
}

/* The path that a call is about. */
static void find_path(const struct seccomp_notif *asked, const struct call *call,
                      char path[2 * PATH_MAX])
{
    char text[PATH_MAX], folder[PATH_MAX], link[32];
    const pid_t process = (pid_t)asked->pid;
    const uint64_t *args = (const uint64_t *)asked->data.args;
    if (call->how == BY_FILE) {
        snprintf(link, sizeof link, "fd/%d", (int)args[0]);
        read_link(process, link, path);
        return;
    }
    read_text(process, args[call->path], text);
    const int at = call->how == BY_PATH ? AT_FDCWD : (int)args[call->path - 1];
    snprintf(link, sizeof link, at == AT_FDCWD ? "cwd" : "fd/%d", at);
    read_link(process, link, folder);
    snprintf(path, 2 * PATH_MAX, "%s%s%s", *text == '/' ? "" : folder, *text == '/' ? "" : "/",
             text);
}

static void note(const struct plan *plan, const char *name, const char *path)
{
    FILE *log = fopen(plan->log, "w");
    if (!log)
        die(plan->log);
    fprintf(log, "%ld %s %s\n", plan->count, name, path);
    fclose(log);
}

/* The errno with which the call fails; 0: it goes its way. */
static int decide(struct plan *plan, const struct seccomp_notif *asked)
{
    char path[2 * PATH_MAX];
    const struct call *call = calls;
    const size_t length = strlen(plan->folder);
    while (call->number != asked->data.nr)
        call++;
    find_path(asked, call, path);
    if (strncmp(path, plan->folder, length) != 0)
        return 0;
    plan->count++;
    const bool fails = plan->nth > 0 &&
                       (plan->count == plan->nth || (plan->goes_on && plan->count > plan->nth));
    if (plan->nth == 0 || (fails && !plan->has_failed))
        note(plan, call->name, path);
    plan->has_failed |= fails;
    return fails ? plan->error : 0;
}

static void watch(int listener, struct plan *plan)
{
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    while (poll(&wait, 1, -1) >= 0 && !(wait.revents & (POLLHUP | POLLERR))) {
        struct seccomp_notif asked;
        struct seccomp_notif_resp answer;
        memset(&asked, 0, sizeof asked);
        memset(&answer, 0, sizeof answer);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0)
            continue; /* it was killed meanwhile */
        const int error = decide(plan, &asked);
        answer.id = asked.id;
        answer.error = -error;
        answer.flags = error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
}

int main(int count, char **words)
{
    struct plan plan = {0};
    int ends[2], status;
    if (count < 7) {
        fprintf(stderr, "usage: files FOLDER NTH ERROR once|on LOG COMMAND...\n");
        return 99;
    }
    snprintf(plan.folder, sizeof plan.folder, "%s", words[1]);
    plan.nth = atol(words[2]);
    plan.error = atoi(words[3]);
    plan.goes_on = strcmp(words[4], "on") == 0;
    plan.log = words[5];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        die("socketpair");
    const pid_t child = fork();
    if (child == 0)
        run_command(ends[1], words + 6);
    close(ends[1]);
    const int listener = receive_file(ends[0]);
    if (listener >= 0)
        watch(listener, &plan);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
