/* hpc-train top: reads a file, draws it, waits a second. */
#include "agent/report/run.h"
#include "agent/top/find.h"
#include "agent/top/screen.h"
#include "agent/top/terminal.h"
#include "base/status.h"

#include <hpctrain/top.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define REDRAW_SECONDS 1
#define PLAIN_WIDTH 80

static bool is_utf8(void)
{
    locale_t user = newlocale(LC_CTYPE_MASK, "", (locale_t) 0);
    if (user == (locale_t) 0)
        return false;
    const char *set = nl_langinfo_l(CODESET, user);
    bool utf8 = strcasecmp(set, "UTF-8") == 0 || strcasecmp(set, "UTF8") == 0;
    freelocale(user);
    return utf8;
}

/* https://no-color.org */
static bool has_colour(void)
{
    const char *none = getenv("NO_COLOR");
    return none == NULL || none[0] == '\0';
}

static hpct_status show(const hpct_top_screen *screen, const hpct_report_run *run)
{
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);
    if (memory == NULL)
        return hpct_fail_memory(0);
    hpct_top_screen_draw(memory, screen, &run->status);
    if (fclose(memory) == 0)
        hpct_top_terminal_show(text);
    free(text);
    return HPCT_OK;
}

/* What cannot be read leaves the run as it was, and is said below. */
static hpct_status redraw(hpct_top_screen *screen, hpct_report_run *run, const char *path)
{
    hpct_report_run next;
    bool read = hpct_report_run_read_status(&next, path) == HPCT_OK;
    if (read) {
        hpct_report_run_free(run);
        *run = next;
    }
    screen->remark = read ? NULL : hpct_last_error();
    screen->now = (int64_t) time(NULL);
    hpct_top_terminal_size(&screen->width, &screen->height);
    return show(screen, run);
}

static hpct_status watch(hpct_top_screen *screen, hpct_report_run *run, const char *path,
                         FILE *stream)
{
    hpct_status status;
    hpct_top_terminal_open(stream);
    do
        status = redraw(screen, run, path);
    while (status == HPCT_OK && hpct_top_terminal_wait(REDRAW_SECONDS) == HPCT_TOP_TERMINAL_DRAW);
    hpct_top_terminal_close();
    return status;
}

hpct_status hpct_top(const hpct_top_options *o, FILE *stream)
{
    char *path;
    hpct_report_run run;
    hpct_top_screen screen = {.width = PLAIN_WIDTH, .utf8 = is_utf8(), .now = (int64_t) time(NULL)};
    if (o->run != NULL && o->job != NULL)
        return hpct_fail(HPCT_ERR_USAGE, "top: a run and --job are both given: give one");
    HPCT_TRY(o->job != NULL ? hpct_top_find_job(&path, o->job) : hpct_top_find_run(&path, o->run));
    hpct_status status = hpct_report_run_read_status(&run, path);
    bool live = !o->once && hpct_top_terminal_is(stream);
    if (status == HPCT_OK && !live)
        hpct_top_screen_draw(stream, &screen, &run.status);
    screen.colour = live && has_colour();
    if (status == HPCT_OK && live)
        status = watch(&screen, &run, path, stream);
    hpct_report_run_free(&run);
    free(path);
    return status;
}
