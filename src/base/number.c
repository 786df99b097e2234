/* Reads and prints numbers in the C locale, whatever locale the program has set. */
#include "base/number.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* The C locale; 0 if it cannot be made: the thread's locale then stays. */
static locale_t plain;

static void open_plain(void)
{
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* Switches this thread to the C locale and returns the one before, to be restored. */
static locale_t enter(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_plain);
    return uselocale(plain);
}

double lk_number_read(const char *text, char **end)
{
    const locale_t before = enter();
    const double number = strtod(text, end);
    uselocale(before);
    return number;
}

void lk_number_print(double number, char *text, size_t bytes)
{
    const locale_t before = enter();
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, bytes, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    uselocale(before);
}
