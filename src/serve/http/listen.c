/* The socket that a server listens on. */
#include "serve/http/listen.h"

#include "base/fail.h"
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef __linux__
#include <asm/socket.h>
#include <linux/filter.h>
#endif

enum { BACKLOG = 1024, PORT_TEXT = 16 };

static enum lk_status open_socket(const struct addrinfo *at, int *listening)
{
    const int made = socket(at->ai_family, SOCK_STREAM, 0);
    if (made < 0)
        return lk_fail(LK_E_IO, "no socket: %s", strerror(errno));
    (void)setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(made, at->ai_addr, at->ai_addrlen) != 0 || listen(made, BACKLOG) != 0) {
        const int why = errno;
        close(made);
        return lk_fail(LK_E_IO, "%s%s", strerror(why),
                       why == EADDRINUSE ? ": take another port, or 0 for any that is free"
                                         : "");
    }
    *listening = made;
    return LK_OK;
}

static int find_port(int listening)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    char port[PORT_TEXT] = "0";
    if (getsockname(listening, (struct sockaddr *)&address, &length) == 0)
        (void)getnameinfo((struct sockaddr *)&address, length, NULL, 0, port, sizeof port,
                          NI_NUMERICSERV);
    return atoi(port);
}

enum lk_status lk_listen(const char *bind, int port, int *listening, int *found)
{
    const struct addrinfo wanted = {.ai_family = AF_UNSPEC,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
    char number[PORT_TEXT];
    struct addrinfo *list = NULL;
    snprintf(number, sizeof number, "%d", port);
    const int wrong = getaddrinfo(bind, number, &wanted, &list);
    if (wrong)
        return lk_fail(LK_E_ARGUMENT, "'%s' is no address to listen at: %s", bind,
                       gai_strerror(wrong));
    const enum lk_status status = open_socket(list, listening);
    freeaddrinfo(list);
    if (status != LK_OK)
        return lk_fail_within(status, "cannot listen at %s, port %d", bind, port);
    *found = find_port(*listening);
    return LK_OK;
}

void lk_listen_to_nobody(int listening)
{
#ifdef __linux__
    struct sock_filter nothing[] = {{.code = BPF_RET | BPF_K, .k = 0}}; /* passes no packet */
    const struct sock_fprog filter = {.len = 1, .filter = nothing};
    (void)setsockopt(listening, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
#else
    (void)listening;
#endif
}

void lk_address_print(const struct sockaddr *address, char *text, size_t bytes)
{
    const socklen_t length = sizeof(struct sockaddr_storage);
    if (!address ||
        getnameinfo(address, length, text, (socklen_t)bytes, NULL, 0, NI_NUMERICHOST) != 0)
        *text = '\0';
}
