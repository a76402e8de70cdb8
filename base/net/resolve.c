/* A thread per lookup that is not of a number: getaddrinfo cannot be interrupted. */
#include "base/net/resolve.h"

#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* In the list from its start until a caller has taken its answer. */
typedef struct lookup {
    struct lookup *next;
    char *host;
    pid_t process; /* which has the thread: a fork does not */
    pthread_cond_t changed;
    int waiting; /* number of callers */
    bool is_done, is_listed;
    int code, error; /* of getaddrinfo; of EAI_SYSTEM */
    hpct_net_addresses found;
} lookup;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* protects all lookups */
static lookup *lookups;

static void copy_list(hpct_net_addresses *out, const struct addrinfo *list)
{
    out->num = 0;
    for (const struct addrinfo *at = list; at != NULL && out->num < HPCT_NET_MAX_ADDRESSES;
         at = at->ai_next) {
        if (at->ai_addrlen > sizeof out->at[0])
            continue;
        memcpy(&out->at[out->num], at->ai_addr, at->ai_addrlen);
        out->size[out->num++] = at->ai_addrlen;
    }
}

static int ask(hpct_net_addresses *out, const char *host, int flags)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *list = NULL;
    int code = getaddrinfo(host, NULL, &hints, &list);
    if (code != 0)
        return code;
    copy_list(out, list);
    freeaddrinfo(list);
    return out->num > 0 ? 0 : EAI_NONAME;
}

static void set_port(hpct_net_addresses *addresses, int port)
{
    for (int i = 0; i < addresses->num; i++) {
        void *at = &addresses->at[i];
        if (addresses->at[i].ss_family == AF_INET6)
            ((struct sockaddr_in6 *) at)->sin6_port = htons((uint16_t) port);
        else
            ((struct sockaddr_in *) at)->sin_port = htons((uint16_t) port);
    }
}

/* ---- the thread ---- */

static void *look_up(void *argument)
{
    lookup *l = argument;
    hpct_net_addresses found = {0};
    int code = ask(&found, l->host, 0), error = errno;
    pthread_mutex_lock(&mutex);
    l->found = found;
    l->code = code;
    l->error = error;
    l->is_done = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static int start_thread(lookup *l)
{
    pthread_t thread;
    int error = hpct_thread_start(&thread, look_up, l);
    if (error == 0)
        pthread_detach(thread);
    return error;
}

/* ---- its callers, with the mutex ---- */

static void free_lookup(lookup *l)
{
    pthread_cond_destroy(&l->changed);
    free(l->host);
    free(l);
}

static hpct_status start(lookup **out, const char *host)
{
    lookup *l = calloc(1, sizeof *l);
    if (l == NULL || (l->host = strdup(host)) == NULL) {
        free(l);
        return hpct_fail_memory(sizeof *l);
    }
    hpct_thread_condition(&l->changed);
    int error = start_thread(l);
    if (error != 0) {
        free_lookup(l);
        return hpct_fail(HPCT_ERR_INTERNAL,
                         "no thread can be started to find the address of %s: %s", host,
                         strerror(error));
    }
    l->process = getpid();
    l->is_listed = true;
    l->next = lookups;
    lookups = l;
    *out = l;
    return HPCT_OK;
}

/* Without time none is started: of many names each would leave a thread behind. */
static hpct_status find_or_start(lookup **out, const char *host, int timeout_ms)
{
    pid_t process = getpid();
    for (lookup *l = lookups; l != NULL; l = l->next) {
        if (l->process == process && strcmp(l->host, host) == 0) {
            *out = l;
            return HPCT_OK;
        }
    }
    return timeout_ms > 0 ? start(out, host)
                          : hpct_fail(HPCT_ERR_PEER,
                                      "the address of %s cannot be found: there is no time left to "
                                      "ask the name service",
                                      host);
}

static void await(lookup *l, int timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanoseconds = until.tv_nsec + (int64_t) (timeout_ms % 1000) * 1000000;
    until.tv_sec += timeout_ms / 1000 + nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    l->waiting++;
    while (!l->is_done && pthread_cond_timedwait(&l->changed, &mutex, &until) != ETIMEDOUT)
        continue;
    l->waiting--;
}

/* An answer is taken once: addresses may change. Others that wait for it have it, too. */
static void let_go(lookup *l)
{
    if (!l->is_done)
        return;
    for (lookup **at = &lookups; *at != NULL && l->is_listed; at = &(*at)->next) {
        if (*at == l) {
            *at = l->next;
            l->is_listed = false;
            break;
        }
    }
    if (l->waiting == 0)
        free_lookup(l);
}

static hpct_status look_up_within(hpct_net_addresses *out, const char *host, int timeout_ms)
{
    lookup *l = NULL;
    pthread_mutex_lock(&mutex);
    hpct_status status = find_or_start(&l, host, timeout_ms);
    if (status == HPCT_OK) {
        await(l, timeout_ms);
        if (!l->is_done)
            status = hpct_fail(HPCT_ERR_PEER,
                               "the address of %s cannot be found: the name service does not "
                               "answer",
                               host);
        else if (l->code != 0)
            status = hpct_fail(HPCT_ERR_PEER, "the address of %s cannot be found: %s", host,
                               l->code == EAI_SYSTEM ? strerror(l->error) : gai_strerror(l->code));
        else
            *out = l->found;
        let_go(l);
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

hpct_status hpct_net_resolve(hpct_net_addresses *out, const char *host, int port, int timeout_ms)
{
    if (ask(out, host, AI_NUMERICHOST) != 0)
        HPCT_TRY(look_up_within(out, host, timeout_ms > 0 ? timeout_ms : 0));
    set_port(out, port);
    return HPCT_OK;
}
