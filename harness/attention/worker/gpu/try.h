/* Returns from the caller if a call of the library fails. */
#ifndef FACTS_WORKER_TRY_H
#define FACTS_WORKER_TRY_H

#define TRY(expr)                                                                                  \
    do {                                                                                           \
        fattn_status try_status = (expr);                                                          \
        if (try_status != FATTN_OK)                                                                \
            return try_status;                                                                     \
    } while (0)

#endif
