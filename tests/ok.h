/* Fails a test where a call does, and says what the call said. The includer has cmocka.h. */
#ifndef TESTS_OK_H
#define TESTS_OK_H

#include "base/fail.h"

#define ASSERT_OK(call)                                                                        \
    do {                                                                                       \
        if ((call) != LK_OK)                                                                   \
            fail_msg("%s: %s", #call, lk_error_text());                                        \
    } while (0)

#endif
