/* Results are in shared memory, so that no read can be blocked by a user's process. */
#include <config.h>

#include "spank/timed_child.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/status.h"

struct hpct_spank_timed_child_page {
    atomic_bool done;
    hpct_status status;
    char message[1024];
    atomic_size_t size; /* bytes used in `said` */
    char said[65536];   /* repeated: 'E' or 'I', a line, '\0' */
};

static struct hpct_spank_timed_child_page *own_page; /* set in the child only */

void hpct_spank_timed_child_print(bool error, const char *format, ...)
{
    char text[2048];
    va_list args;
    size_t at = own_page == NULL ? sizeof own_page->said : atomic_load(&own_page->size);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t room = sizeof own_page->said - at, size = strlen(text) + 2;
    if (size > room)
        return;
    own_page->said[at] = error ? 'E' : 'I';
    memcpy(own_page->said + at + 1, text, size - 1);
    atomic_store(&own_page->size, at + size);
}

/* Closes all descriptors, as the child may be left behind and others wait for end of file. Replaces
 * them by /dev/null so that a log's number is not reused for another file. */
static void let_go_of_files(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), fd;
    DIR *open_files = opendir("/proc/self/fd");
    for (struct dirent *entry; open_files != NULL && (entry = readdir(open_files)) != NULL;) {
        fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != null && fd != dirfd(open_files))
            dup3(null, fd, O_CLOEXEC);
    }
    if (null < 0 || open_files == NULL || closedir(open_files) != 0)
        _exit(HPCT_ERR_INTERNAL);
}

static void do_it(const hpct_spank_timed_child *timed_child, pid_t parent)
{
    struct hpct_spank_timed_child_page *page = timed_child->page;
    own_page = page;
    let_go_of_files();
    if (timed_child->as != NULL && !hpct_spank_person_become(timed_child->as))
        _exit(HPCT_ERR_INTERNAL);
    hpct_spank_forked_begin(SIGKILL, parent);
    page->status = timed_child->work(timed_child->context);
    if (page->status != HPCT_OK)
        snprintf(page->message, sizeof page->message, "%s", hpct_last_error());
    atomic_store(&page->done, true);
    _exit(0);
}

void hpct_spank_timed_child_start(hpct_spank_timed_child *timed_child)
{
    pid_t parent = getpid();
    timed_child->start = hpct_spank_forked_now();
    timed_child->pid = -1;
    timed_child->page = mmap(NULL, sizeof *timed_child->page, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (timed_child->page == MAP_FAILED)
        timed_child->page = NULL;
    else
        timed_child->pid = fork();
    if (timed_child->pid == 0)
        do_it(timed_child, parent);
}

/* A process of the user may have written to this memory: it is validated. */
static void pass_on(const hpct_spank_timed_child *timed_child)
{
    struct hpct_spank_timed_child_page *page = timed_child->page;
    size_t size = atomic_load(&page->size);
    page->said[sizeof page->said - 1] = '\0';
    page->message[sizeof page->message - 1] = '\0';
    for (size_t at = 0; timed_child->line != NULL && at + 1 < size && size <= sizeof page->said;
         at += strlen(page->said + at) + 1)
        timed_child->line(timed_child->line_context, page->said[at] == 'E', page->said + at + 1);
}

hpct_status hpct_spank_timed_child_await(hpct_spank_timed_child *timed_child)
{
    struct hpct_spank_timed_child_page *page = timed_child->page;
    const hpct_spank_forked_limits limits = {.seconds = timed_child->seconds};
    int state = 0;
    if (timed_child->pid < 0) {
        if (page != NULL)
            munmap(page, sizeof *page);
        return hpct_fail(HPCT_ERR_INTERNAL, "%s: no memory, or no process for it",
                         timed_child->what);
    }
    hpct_spank_forked_end how =
        hpct_spank_forked_await(timed_child->pid, timed_child->start, &limits, &state);
    hpct_status status;
    pass_on(timed_child);
    if (atomic_load(&page->done))
        status = page->status == HPCT_OK ? HPCT_OK : hpct_fail(page->status, "%s", page->message);
    else if (how == HPCT_SPANK_FORKED_OUT_OF_TIME)
        status = hpct_fail(HPCT_ERR_STOPPED, "%s was not done after %d seconds", timed_child->what,
                           timed_child->seconds);
    else
        status = hpct_fail(HPCT_ERR_IO, "%s: its process was ended", timed_child->what);
    munmap(page, sizeof *page);
    return status;
}

hpct_status hpct_spank_timed_child_run(hpct_spank_timed_child timed_child)
{
    hpct_spank_timed_child_start(&timed_child);
    return hpct_spank_timed_child_await(&timed_child);
}
