/* The socket that a server listens on. Floor 9. */
#ifndef LK_SERVE_LISTEN_H
#define LK_SERVE_LISTEN_H

#include <lockstep/status.h>
#include <stddef.h>

struct sockaddr;

/* Listens at an address, "127.0.0.1" or "::1", and port; 0: any that is free, which *port then
 * is. fails: LK_E_IO; LK_E_ARGUMENT no address */
LK_MUST_CHECK enum lk_status lk_listen(const char *bind, int port, int *listening, int *found);

/* From now on the kernel takes no new connection there; those that it has taken can still be
 * accepted. Without it one that comes right before the socket is closed is reset, perhaps with
 * a request in it. Where the system has no such thing, nothing happens. */
void lk_listen_to_nobody(int listening);

/* "127.0.0.1"; "" where there is none. */
void lk_address_print(const struct sockaddr *address, char *text, size_t bytes);

#endif
