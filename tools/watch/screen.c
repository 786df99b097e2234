/* Takes over the terminal and gives it back: modes, signals, keys. */
#include "watch/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* The other screen, no cursor, no wrapping; and back. */
static const char enter_codes[] = "\x1b[?1049h\x1b[?25l\x1b[?7l";
static const char leave_codes[] = "\x1b[?7h\x1b[?25h\x1b[?1049l";

static struct termios before; /* of stdin */
static bool is_full, is_entered, has_keys;
static int bell[2] = {-1, -1}; /* a signal rings it, so that none is missed before poll() */

static void ring(int number)
{
    const int saved = errno;
    const char byte = (char)number;
    (void)!write(bell[1], &byte, 1);
    errno = saved;
}

/* A view that a resize interrupts is written to its end; what ends the program ends a write to
 * a terminal that takes nothing, too. */
static void catch (int number, void (*handler)(int))
{
    const bool goes_on = number == SIGTSTP || number == SIGWINCH;
    struct sigaction action = {.sa_handler = handler, .sa_flags = goes_on ? SA_RESTART : 0},
                     found;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &found) == 0 && found.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

static void take_terminal(void)
{
    struct termios keys;
    if (!is_full)
        return;
    fputs(enter_codes, stdout);
    fflush(stdout);
    has_keys = tcgetattr(STDIN_FILENO, &before) == 0;
    if (has_keys) {
        keys = before;
        keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        keys.c_cc[VMIN] = 1;
        keys.c_cc[VTIME] = 0;
        tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
    }
}

static void give_terminal(void)
{
    if (!is_full)
        return;
    if (has_keys)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    fputs(leave_codes, stdout);
    fflush(stdout);
}

void screen_enter(bool takes_all)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
    is_full = takes_all;
    if (pipe(bell) != 0)
        bell[0] = bell[1] = -1;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && bell[0] >= 0; i++)
        if (takes_all || (numbers[i] != SIGTSTP && numbers[i] != SIGWINCH))
            catch (numbers[i], ring);
    signal(SIGPIPE, SIG_IGN);
    is_entered = true;
    take_terminal();
}

void screen_leave(void)
{
    if (is_entered)
        give_terminal();
    is_entered = false;
}

/* Ctrl-Z: the shell gets its terminal, until this process goes on. */
static void suspend(void)
{
    give_terminal();
    raise(SIGSTOP);
    take_terminal();
}

static enum screen_news take_signal(void)
{
    char number;
    if (read(bell[0], &number, 1) != 1)
        return SCREEN_TIME;
    if (number == SIGTSTP)
        suspend();
    if (number == SIGTSTP || number == SIGWINCH)
        return SCREEN_WINDOW;
    return number == SIGHUP ? SCREEN_QUIT : SCREEN_INTERRUPTED;
}

/* A stdin that is at its end is asked no more. */
static enum screen_news take_key(void)
{
    char key;
    const ssize_t count = read(STDIN_FILENO, &key, 1);
    if (count < 0 && errno == EINTR)
        return SCREEN_TIME;
    if (count != 1) {
        has_keys = false;
        return SCREEN_QUIT;
    }
    return key == 'q' || key == 'Q' ? SCREEN_QUIT : SCREEN_WINDOW;
}

enum screen_news screen_wait(int ms)
{
    struct pollfd from[2] = {{.fd = bell[0], .events = POLLIN},
                             {.fd = has_keys && is_full ? STDIN_FILENO : -1, .events = POLLIN}};
    if (poll(from, 2, ms) <= 0 && errno != EINTR)
        return SCREEN_TIME;
    if (from[0].revents & POLLIN)
        return take_signal();
    return from[1].revents ? take_key() : SCREEN_TIME;
}

/* Line by line, so that nothing flickers. What stands there is erased before: behind a line
 * as wide as the window the cursor is still on its last column. */
void screen_draw(const char *const *lines, int count, int rows)
{
    fputs("\x1b[H", stdout);
    for (int i = 0; i < rows; i++)
        printf("%s\x1b[K%s", i ? "\r\n" : "", i < count ? lines[i] : "");
    fflush(stdout);
}
