/* saver save DIR FIRST COUNT: saves so many checkpoints, the value FIRST at step 10 FIRST and so
 * on; keeps 2; every second one is the best. Prints a line for each. saver load DIR: prints the
 * value of the newest; damaged ones on stderr. */
#include "base/status.h"
#include "tests/unit/agent/checkpoint/folder.h"

#include <unistd.h>

static int save(const char *dir, int first, int count)
{
    hpct_ckpt_store *store;
    hpct_status worst = hpct_ckpt_store_open(&store, dir, 2, folder_note, NULL);
    if (worst != HPCT_OK) {
        dprintf(STDOUT_FILENO, "failed to open: %s\n", hpct_last_error());
        return (int) worst;
    }
    for (int i = first; i < first + count; i++) {
        hpct_status status = folder_save(store, dir, 10 * i, i, i % 2 == 0);
        if (status == HPCT_OK)
            dprintf(STDOUT_FILENO, "saved %d\n", i);
        else
            dprintf(STDOUT_FILENO, "failed %d: %s\n", i, hpct_last_error());
        worst = status != HPCT_OK ? status : worst;
    }
    hpct_ckpt_store_close(store);
    fputs(folder_notes, stderr);
    return (int) worst;
}

static int load(const char *dir)
{
    int value = folder_load(dir, NULL);
    fputs(folder_notes, stderr);
    if (value < 0)
        fprintf(stderr, "%s\n", hpct_last_error());
    else
        printf("%d\n", value);
    return value < 0 ? -value : 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "save") == 0)
        return save(argv[2], atoi(argv[3]), atoi(argv[4]));
    if (argc == 3 && strcmp(argv[1], "load") == 0)
        return load(argv[2]);
    return HPCT_ERR_USAGE;
}
