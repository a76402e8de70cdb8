/* The arguments of the line in plugstack.conf, with blanks between them: what is accepted is what
 * root may use, the rest is refused with a message. */
#include "base/status.h"
#include "spank/settings.h"
#include "tests/fuzz/fuzz.h"

#define MAX_ARGUMENTS 16

static void check_path(const char *path)
{
    size_t size = strlen(path);
    if (size < 2 || path[0] != '/' || path[size - 1] == '/' || strstr(path, "//") != NULL)
        abort();
    for (const char *part = path; part != NULL; part = strchr(part + 1, '/')) {
        size_t length = strcspn(part + 1, "/");
        if (strncmp(part + 1, "..", length) == 0 && length <= 2)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *) data, size), *rest = NULL;
    char *arguments[MAX_ARGUMENTS];
    int count = 0;
    for (char *part = strtok_r(text, " \t", &rest); part != NULL && count < MAX_ARGUMENTS;
         part = strtok_r(NULL, " \t", &rest))
        arguments[count++] = part;
    hpct_spank_settings settings;
    hpct_fail(HPCT_ERR_CONFIG, "%s", "");
    if (hpct_spank_settings_read(count, arguments, &settings) != HPCT_OK &&
        strstr(hpct_last_error(), "plugstack.conf") == NULL)
        abort();
    /* whether or not: what is read later is whole */
    check_path(settings.tmpdir);
    check_path(settings.helper);
    for (int i = 0; i < settings.num_stage_src; i++)
        check_path(settings.stage_src[i]);
    if (settings.has_ports && (settings.ports.low < 1024 || settings.ports.high > 65535 ||
                               settings.ports.low > settings.ports.high))
        abort();
    hpct_spank_settings_free(&settings);
    free(text);
    return 0;
}
