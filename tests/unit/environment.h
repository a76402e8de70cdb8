/* tests/unit/environment.h - an environment made of "NAME=value" strings. */
#ifndef HPCT_TESTS_UNIT_ENVIRONMENT_H
#define HPCT_TESTS_UNIT_ENVIRONMENT_H

#include "base/cluster/config.h"

#include <string.h>

static inline const char *environment_get(void *context, const char *name)
{
    size_t size = strlen(name);
    for (const char *const *entry = context; *entry != NULL; entry++) {
        if (strncmp(*entry, name, size) == 0 && (*entry)[size] == '=')
            return *entry + size + 1;
    }
    return NULL;
}

#define ENV(...)                                                                                   \
    (&(hpct_cluster_environment){.get = environment_get,                                           \
                                 .context = (void *) (const char *[]){__VA_ARGS__, NULL}})
#define NO_ENV ENV(NULL)

#endif
