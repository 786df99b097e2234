/* Keeps the status line on the terminal: what it shows, and that it fits the window. */
#include "terminal/status.h"

#include "terminal/outlet.h"
#include "terminal/scene.h"
#include "terminal/terminal.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct layer {
    void (*draw)(const void *from, int columns, char text[STATUS_TEXT]); /* NULL: hidden */
    char from[STATUS_BYTES];
    int shown_at; /* the higher, the later */
};

static const struct timespec pause = {.tv_nsec = 100000000};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static struct layer layers[STATUS_LAYERS];
static int shows;
static bool has_thread;
static void (*tick)(void);
static char on_screen[STATUS_TEXT];
static int screen_columns; /* when it was written */
static long lost;          /* messages that were left out */

static bool is_idle(void)
{
    bool idle = true;
    for (int i = 0; i < STATUS_LAYERS; i++)
        idle &= !layers[i].draw;
    return idle;
}

/* The text of the layer that was shown last and has one. */
static void find_text(int columns, char text[STATUS_TEXT])
{
    int best = 0;
    char drawn[STATUS_TEXT];
    text[0] = '\0';
    for (int i = 0; i < STATUS_LAYERS; i++) {
        const struct layer *layer = &layers[i];
        drawn[0] = '\0';
        if (layer->draw && layer->shown_at > best && columns > 0)
            layer->draw(layer->from, columns, drawn);
        if (drawn[0]) {
            best = layer->shown_at;
            strcpy(text, drawn);
        }
    }
}

/* All below the cursor belongs to the line: a narrower window has broken it. */
static void redraw(void)
{
    char text[STATUS_TEXT];
    if (!terminal_has_status())
        return;
    const int columns = terminal_columns();
    find_text(columns - 1, text);
    if (strcmp(text, on_screen) == 0 && (columns == screen_columns || !*text))
        return;
    char line[STATUS_TEXT + 8];
    const int bytes = snprintf(line, sizeof line, "\r%s\x1b[J\r", text);
    if (!outlet_write(outlet_message, line, (size_t)bytes, 0))
        return;
    strcpy(on_screen, text);
    screen_columns = columns;
}

static void *keep(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (is_idle())
            pthread_cond_wait(&news, &mutex);
        redraw();
        void (*const call)(void) = tick;
        pthread_mutex_unlock(&mutex);
        if (call)
            call();
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* Without the thread, where there can be none, the line is drawn only when it is shown. */
static void start_thread(void)
{
    pthread_t thread;
    if (!has_thread && pthread_create(&thread, NULL, keep, NULL) == 0) {
        pthread_detach(thread);
        has_thread = true;
    }
    pthread_cond_signal(&news);
}

void status_show(enum status_layer layer,
                 void (*draw)(const void *from, int columns, char text[STATUS_TEXT]),
                 const void *from, size_t bytes)
{
    if (bytes > STATUS_BYTES)
        return;
    pthread_mutex_lock(&mutex);
    layers[layer].draw = draw;
    memcpy(layers[layer].from, from, bytes);
    layers[layer].shown_at = ++shows;
    redraw();
    start_thread();
    pthread_mutex_unlock(&mutex);
}

void status_hide(enum status_layer layer)
{
    pthread_mutex_lock(&mutex);
    layers[layer].draw = NULL;
    redraw();
    pthread_mutex_unlock(&mutex);
}

void status_set_tick(void (*call)(void))
{
    pthread_mutex_lock(&mutex);
    tick = call;
    pthread_mutex_unlock(&mutex);
}

/* Tells how many messages were left out before, now that somebody reads again. */
static void tell_lost(void)
{
    char text[128];
    const int bytes =
        snprintf(text, sizeof text, "lockstep: %ld message%s left out: nobody read on\n", lost,
                 lost == 1 ? " was" : "s were");
    if (lost > 0 && outlet_write(outlet_message, text, (size_t)bytes, 0))
        lost = 0;
}

void status_message(const char *text, size_t bytes)
{
    static const char clear[] = "\r\x1b[J";
    pthread_mutex_lock(&mutex);
    if (*on_screen)
        (void)outlet_write(outlet_message, clear, sizeof clear - 1, 0);
    on_screen[0] = '\0';
    tell_lost();
    lost += !outlet_write(outlet_message, text, bytes, OUTLET_PATIENCE);
    pthread_mutex_unlock(&mutex);
}

void status_print(const struct scene *scene)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *lines = open_memstream(&text, &bytes);
    if (!lines)
        return;
    for (int i = 0; i < scene->count; i++)
        fprintf(lines, "%s\n", scene->lines[i].text);
    if (fclose(lines) == 0)
        status_message(text, bytes);
    free(text);
}
