/* PMIx_Put on rank 0, PMIx_Get on the others, which blocks until then. */
#include "config.h"

#include "agent/comm/pmix_key.h"

#include <stddef.h>

#ifndef HAVE_PMIX

hpct_status hpct_comm_pmix_key_share(hpct_auth_key **out, int rank, int seconds)
{
    (void) rank;
    (void) seconds;
    *out = NULL;
    return HPCT_OK;
}

void hpct_comm_pmix_key_end(void)
{
}

#else

#include "base/status.h"

#include <dlfcn.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AGAIN_MS 20

static char name[] = "hpc-train.key";

static struct {
    __typeof__(PMIx_Init) *init;
    __typeof__(PMIx_Put) *put;
    __typeof__(PMIx_Commit) *commit;
    __typeof__(PMIx_Get) *get;
    __typeof__(PMIx_Finalize) *finalize;
} pmix;
static bool entered;

/* The library that Open MPI loads as well. */
static bool load(void)
{
    const struct {
        void *place;
        const char *symbol;
    } all[] = {{&pmix.init, "PMIx_Init"},
               {&pmix.put, "PMIx_Put"},
               {&pmix.commit, "PMIx_Commit"},
               {&pmix.get, "PMIx_Get"},
               {&pmix.finalize, "PMIx_Finalize"}};
    void *library = dlopen("libpmix.so.2", RTLD_LAZY | RTLD_LOCAL);
    for (size_t i = 0; library != NULL && i < sizeof all / sizeof *all; i++) {
        void *found = dlsym(library, all[i].symbol);
        if (found == NULL)
            return false;
        memcpy(all[i].place, &found, sizeof found);
    }
    return library != NULL;
}

static hpct_status give(const hpct_auth_key *key)
{
    char text[HPCT_AUTH_KEY_TEXT];
    pmix_value_t value = {.type = PMIX_STRING, .data = {.string = text}};
    hpct_auth_key_to_text(text, key);
    pmix_status_t status = pmix.put(PMIX_GLOBAL, name, &value);
    if (status == PMIX_SUCCESS)
        status = pmix.commit();
    explicit_bzero(text, sizeof text);
    return status == PMIX_SUCCESS
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_INTERNAL, "PMIx does not take the step's key: error %d",
                           (int) status);
}

static hpct_status get_key(hpct_auth_key *key, const pmix_proc_t *self, int seconds)
{
    pmix_proc_t zero = *self;
    pmix_info_t limit = {.value = {.type = PMIX_INT, .data = {.integer = seconds}}};
    pmix_value_t *value = NULL;
    zero.rank = 0;
    snprintf(limit.key, sizeof limit.key, "%s", PMIX_TIMEOUT);
    pmix_status_t status = pmix.get(&zero, name, &limit, 1, &value);
    /* does not block on the node of rank 0 */
    for (int i = 0; status == PMIX_ERR_NOT_FOUND && i < seconds * (1000 / AGAIN_MS); i++) {
        usleep(AGAIN_MS * 1000);
        status = pmix.get(&zero, name, &limit, 1, &value);
    }
    bool good = status == PMIX_SUCCESS && value != NULL && value->type == PMIX_STRING &&
                hpct_auth_key_from_text(key, value->data.string);
    if (value != NULL && value->type == PMIX_STRING && value->data.string != NULL) {
        explicit_bzero(value->data.string, strlen(value->data.string));
        free(value->data.string);
    }
    free(value);
    return good ? HPCT_OK
                : hpct_fail(HPCT_ERR_PEER,
                            "rank 0 was lost: PMIx has had no key of it for %d s (error %d)",
                            seconds, (int) status);
}

hpct_status hpct_comm_pmix_key_share(hpct_auth_key **out, int rank, int seconds)
{
    const char *number = getenv("PMIX_RANK");
    pmix_proc_t self;
    hpct_auth_key *key = NULL;
    *out = NULL;
    if (number == NULL || getenv("PMIX_NAMESPACE") == NULL || atoi(number) != rank || !load() ||
        pmix.init(&self, NULL, 0) != PMIX_SUCCESS)
        return HPCT_OK;
    entered = true;
    hpct_status status = hpct_auth_key_new(&key);
    if (status == HPCT_OK && rank == 0)
        status = hpct_auth_key_draw(key);
    if (status == HPCT_OK)
        status = rank == 0 ? give(key) : get_key(key, &self, seconds);
    if (status == HPCT_OK)
        *out = key;
    else
        hpct_auth_key_free(key);
    return status;
}

void hpct_comm_pmix_key_end(void)
{
    if (entered)
        pmix.finalize(NULL, 0);
    entered = false;
}

#endif
