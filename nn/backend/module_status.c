/* Module side of nn/backend/module.h: implements base/status.h, base/debug.h and base/progress.h by
 * calling the process that has loaded the module. */
#include "config.h"

#include "nn/backend/module.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const hpct_backend_module_host *process;

bool hpct_backend_module_attach(const hpct_backend_module_host *host)
{
    if (host->bytes != sizeof *host + sizeof(hpct_backend) ||
        strcmp(host->version, PACKAGE_VERSION) != 0)
        return false;
    process = host;
    return true;
}

void hpct_count_progress(void)
{
    process->progress();
}

hpct_waits hpct_enter_wait(hpct_waits waits)
{
    return process->enter_wait(waits);
}

bool hpct_debugs(hpct_debug_topic topic)
{
    return process->debugs(topic);
}

void hpct_debug(hpct_debug_topic topic, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    process->debug(topic, "%s", text);
}

const char *hpct_last_error(void)
{
    return process->last_error();
}

hpct_status hpct_fail(hpct_status status, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return process->fail(status, text);
}

hpct_status hpct_fail_within(hpct_status status, const char *prefix)
{
    return hpct_fail(status, "%s: %s", prefix, hpct_last_error());
}

hpct_status hpct_fail_memory(size_t bytes)
{
    if (bytes == 0)
        return hpct_fail(HPCT_ERR_INTERNAL, "out of memory");
    return hpct_fail(HPCT_ERR_INTERNAL, "out of memory: %zu bytes were needed", bytes);
}
