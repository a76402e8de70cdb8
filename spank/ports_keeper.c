/* The file has a byte to lock and a record of the owner for each port. Locks are those of fcntl(2),
 * which belong to a process: they end with slurmstepd however it ends, and are not inherited. A
 * task's request is two numbers, checked here; nothing in this file waits for a task. */
#include <config.h>

#include "spank/ports_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cluster/ports.h"
#include "base/fd.h"
#include "base/status.h"
#include "base/thread.h"
#include "spank/agree/ports_agree.h"
#include "spank/parent.h"

#define FILE_NAME "ports"
#define MAX_REQUESTS 100000 /* of a step: some for each block of ports */
#define ANSWER_MS 20000

struct hpct_spank_ports_keeper {
    int file, socket, tasks_socket;
    pthread_t thread;
    bool serves;
    hpct_spank_ports_owner owner;
    int most, held; /* numbers of ports */
};

typedef struct request {
    int wish, low, high;
} request;

typedef struct answer {
    int refused, taken;
    hpct_spank_ports_owner owner;
} answer;

static struct flock lock_of(short type, int low, int high)
{
    return (struct flock){
        .l_type = type, .l_whence = SEEK_SET, .l_start = low, .l_len = high - low + 1};
}

/* ---- slurmstepd's side ----------------------------------------------------------------------- */

/* The record is written after the lock was taken: it counts only if it is of the lock's process. */
static void find_owner(const hpct_spank_ports_keeper *k, const struct flock *found, answer *a)
{
    const off_t at = (off_t) a->taken * (off_t) sizeof a->owner;
    if (pread(k->file, &a->owner, sizeof a->owner, at) != (ssize_t) sizeof a->owner ||
        a->owner.process != (uint32_t) found->l_pid)
        a->owner = (hpct_spank_ports_owner){0};
}

/* Components of a step that are on one node share its ports. */
static bool is_same_step(const hpct_spank_ports_owner *a, const hpct_spank_ports_owner *b)
{
    return a->process != 0 && a->uid == b->uid && a->job == b->job && a->step == b->step;
}

static void test(const hpct_spank_ports_keeper *k, const request *r, answer *a)
{
    struct flock lock = lock_of(F_WRLCK, r->low, r->high);
    if (fcntl(k->file, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
        return;
    a->taken = lock.l_start > r->low ? (int) lock.l_start : r->low;
    find_owner(k, &lock, a);
    if (is_same_step(&a->owner, &k->owner))
        a->taken = 0;
}

static void hold(hpct_spank_ports_keeper *k, const request *r, answer *a)
{
    struct flock lock = lock_of(F_WRLCK, r->low, r->high);
    a->refused = k->held + r->high - r->low + 1 > k->most;
    if (a->refused)
        return;
    if (fcntl(k->file, F_SETLK, &lock) != 0) {
        a->refused = errno != EAGAIN && errno != EACCES;
        test(k, r, a);
        return;
    }
    k->held += r->high - r->low + 1;
    for (int port = r->low; port <= r->high; port++) {
        const off_t at = (off_t) port * (off_t) sizeof k->owner;
        if (pwrite(k->file, &k->owner, sizeof k->owner, at) != (ssize_t) sizeof k->owner)
            return; /* others will not know whose it is */
    }
}

static void release(hpct_spank_ports_keeper *k)
{
    struct flock lock = lock_of(F_UNLCK, 0, HPCT_CLUSTER_HIGHEST_PORT);
    fcntl(k->file, F_SETLK, &lock);
    k->held = 0;
}

static answer serve_one(hpct_spank_ports_keeper *k, const request *r)
{
    answer a = {0};
    if (r->low < 1 || r->high < r->low || r->high > HPCT_CLUSTER_HIGHEST_PORT)
        a.refused = 1;
    else if (r->wish == HPCT_SPANK_PORTS_TEST)
        test(k, r, &a);
    else if (r->wish == HPCT_SPANK_PORTS_HOLD)
        hold(k, r, &a);
    else
        release(k);
    return a;
}

static void *serve(void *context)
{
    hpct_spank_ports_keeper *k = context;
    pthread_setname_np(pthread_self(), "hpc-train");
    for (int i = 0; i < MAX_REQUESTS; i++) {
        request r;
        ssize_t got = recv(k->socket, &r, sizeof r, 0);
        if (got <= 0)
            break;
        if (got != (ssize_t) sizeof r)
            continue;
        const answer a = serve_one(k, &r);
        if (send(k->socket, &a, sizeof a, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            continue; /* a task that does not read gets no answer */
    }
    return NULL;
}

hpct_status hpct_spank_ports_folder_make(const char *folder)
{
    int at = -1;
    HPCT_TRY(hpct_spank_parent_open(folder, true, &at));
    close(at);
    return HPCT_OK;
}

static hpct_status open_file(const char *folder, int *out)
{
    int at = -1;
    struct stat info;
    HPCT_TRY(hpct_spank_parent_open(folder, false, &at));
    errno = ENOENT;
    int fd = at < 0 ? -1 : openat(at, FILE_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool good = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
                info.st_uid == geteuid() && (info.st_mode & 077) == 0;
    hpct_status status =
        good ? HPCT_OK
             : hpct_fail(HPCT_ERR_IO, "%s/" FILE_NAME ", where ports are reserved: %s", folder,
                         fd < 0 ? strerror(errno) : "it is not root's alone: remove it");
    hpct_fd_close(at);
    if (!good)
        hpct_fd_close(fd);
    *out = good ? fd : -1;
    return status;
}

hpct_status hpct_spank_ports_keeper_start(const char *folder, const hpct_spank_ports_owner *owner,
                                          int most, hpct_spank_ports_keeper **out)
{
    int pair[2] = {-1, -1};
    hpct_spank_ports_keeper *k = calloc(1, sizeof *k);
    if (k == NULL)
        return hpct_fail_memory(sizeof *k);
    *k = (hpct_spank_ports_keeper){.owner = *owner, .most = most};
    hpct_status status = open_file(folder, &k->file);
    int error = 0;
    if (status == HPCT_OK && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        error = errno;
    k->socket = pair[0];
    k->tasks_socket = pair[1];
    if (status == HPCT_OK && error == 0)
        error = hpct_thread_start(&k->thread, serve, k);
    k->serves = status == HPCT_OK && error == 0;
    if (error != 0)
        status = hpct_fail(HPCT_ERR_INTERNAL, "ports cannot be reserved: %s", strerror(error));
    if (status != HPCT_OK)
        hpct_spank_ports_keeper_end(k);
    else
        *out = k;
    return status;
}

void hpct_spank_ports_keeper_in_task(hpct_spank_ports_keeper *k)
{
    if (k == NULL)
        return;
    close(k->file);
    close(k->socket);
    k->file = k->socket = -1;
    k->serves = false; /* the thread is slurmstepd's */
}

void hpct_spank_ports_keeper_end(hpct_spank_ports_keeper *k)
{
    if (k == NULL)
        return;
    if (k->serves) {
        shutdown(k->socket, SHUT_RDWR);
        pthread_join(k->thread, NULL);
    }
    const int open[] = {k->file, k->socket, k->tasks_socket};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        hpct_fd_close(open[i]);
    free(k);
}

/* ---- a task's side --------------------------------------------------------------------------- */

hpct_status hpct_spank_ports_ask_keeper(const hpct_spank_ports_keeper *keeper,
                                        hpct_spank_ports_wish wish, int low, int high, int *taken,
                                        hpct_spank_ports_owner *owner)
{
    const request r = {.wish = (int) wish, .low = low, .high = high};
    answer a;
    struct pollfd answered = {.fd = keeper->tasks_socket, .events = POLLIN};
    if (send(keeper->tasks_socket, &r, sizeof r, MSG_NOSIGNAL) != (ssize_t) sizeof r)
        return hpct_fail(HPCT_ERR_INTERNAL, "slurmstepd cannot be asked for ports: %s",
                         strerror(errno));
    if (poll(&answered, 1, ANSWER_MS) != 1 ||
        recv(keeper->tasks_socket, &a, sizeof a, 0) != (ssize_t) sizeof a)
        return hpct_fail(HPCT_ERR_INTERNAL, "slurmstepd has not answered for ports");
    if (a.refused)
        return hpct_fail(HPCT_ERR_INTERNAL, "slurmstepd does not reserve ports %d to %d", low,
                         high);
    *taken = a.taken;
    *owner = a.owner;
    return HPCT_OK;
}
