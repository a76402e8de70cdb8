/* tests/unit/base/net/name_service.h - a name service that answers when the test says so. Included
 * once per program: defines getaddrinfo, which numbers reach, and of names these:
 *   hung…    no answer until open_names()
 *   two      127.0.0.1 and 127.0.0.2
 *   full     EAI_SYSTEM: there are too many open files
 * The others are not known. */
#ifndef HPCT_TESTS_UNIT_BASE_NET_NAME_SERVICE_H
#define HPCT_TESTS_UNIT_BASE_NET_NAME_SERVICE_H

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t name_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t name_changed = PTHREAD_COND_INITIALIZER;
static bool names_open;
static int names_asked; /* lookups of names so far */

static void open_names(bool open)
{
    pthread_mutex_lock(&name_lock);
    names_open = open;
    pthread_cond_broadcast(&name_changed);
    pthread_mutex_unlock(&name_lock);
}

static int names_so_far(void)
{
    pthread_mutex_lock(&name_lock);
    int asked = names_asked;
    pthread_mutex_unlock(&name_lock);
    return asked;
}

typedef struct name_entry {
    struct addrinfo info;
    struct sockaddr_in address;
} name_entry;

static struct addrinfo *name_add(const char *number, struct addrinfo *next)
{
    name_entry *e = calloc(1, sizeof *e);
    if (e == NULL || inet_pton(AF_INET, number, &e->address.sin_addr) != 1) {
        free(e);
        return next;
    }
    e->address.sin_family = AF_INET;
    e->info = (struct addrinfo){.ai_family = AF_INET,
                                .ai_socktype = SOCK_STREAM,
                                .ai_addrlen = sizeof e->address,
                                .ai_addr = (struct sockaddr *) &e->address,
                                .ai_next = next};
    return &e->info;
}

static void name_wait(void)
{
    pthread_mutex_lock(&name_lock);
    while (!names_open)
        pthread_cond_wait(&name_changed, &name_lock);
    pthread_mutex_unlock(&name_lock);
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
    struct in_addr number;
    (void) service;
    *out = NULL;
    if (inet_pton(AF_INET, host, &number) == 1)
        *out = name_add(host, NULL);
    if (*out != NULL || (hints->ai_flags & AI_NUMERICHOST) != 0)
        return *out != NULL ? 0 : EAI_NONAME;
    pthread_mutex_lock(&name_lock);
    names_asked++;
    pthread_mutex_unlock(&name_lock);
    if (strcmp(host, "full") == 0) {
        errno = EMFILE;
        return EAI_SYSTEM;
    }
    if (strncmp(host, "hung", 4) == 0) {
        name_wait();
        *out = name_add("127.0.0.1", NULL);
    }
    if (strcmp(host, "two") == 0)
        *out = name_add("127.0.0.1", name_add("127.0.0.2", NULL));
    return *out != NULL ? 0 : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *list)
{
    while (list != NULL) {
        struct addrinfo *next = list->ai_next;
        free(list); /* the first member of a name_entry */
        list = next;
    }
}

#endif
