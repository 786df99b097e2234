/* Puts the checksum of a safetensors file's header into the header, and compares it. */
#include "io/safetensors_sum.h"

#include "base/fail.h"
#include "io/safetensors.h"
#include "io/sha256.h"
#include <string.h>

enum { DIGITS = LK_SHA256_TEXT - 1 };

const char lk_safetensors_no_sum[] =
    "0000000000000000000000000000000000000000000000000000000000000000";

/* Where the digits begin; NULL: nowhere. Texts of the header cannot be mistaken for the key,
 * since quotation marks within them have a backslash before them. */
static char *find_digits(char *header)
{
    static const char key[] = "\"" LK_SAFETENSORS_SUM "\":\"";
    char *at = strstr(header, key);
    return at && strlen(at) >= sizeof key + DIGITS ? at + sizeof key - 1 : NULL;
}

enum lk_status lk_safetensors_add_sum(char *header, size_t bytes)
{
    char sum[LK_SHA256_TEXT];
    char *digits = find_digits(header);
    if (!digits)
        return LK_OK;
    LK_TRY(lk_sha256_of(header, bytes, sum));
    memcpy(digits, sum, DIGITS);
    return LK_OK;
}

enum lk_status lk_safetensors_check_sum(char *header, size_t bytes)
{
    char expected[LK_SHA256_TEXT] = "", found[LK_SHA256_TEXT];
    char *digits = find_digits(header);
    if (!digits)
        return lk_fail(LK_E_DATA, "damaged: '%s' is not as it was written", LK_SAFETENSORS_SUM);
    memcpy(expected, digits, DIGITS);
    memcpy(digits, lk_safetensors_no_sum, DIGITS);
    LK_TRY(lk_sha256_of(header, bytes, found));
    if (strcmp(found, expected) != 0)
        return lk_fail(LK_E_DATA,
                       "damaged: the header has the SHA-256 sum %.12s..., expected %.12s...",
                       found, expected);
    return LK_OK;
}
