/* Folders of checkpoints for tests. */
#include "tests/unit/agent/checkpoint/folder.h"

#include "base/status.h"

#include <dirent.h>
#include <ftw.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROWS 5
#define COLUMNS 3

char folder_notes[8192];

void folder_note(void *context, const char *text)
{
    (void) context;
    size_t used = strlen(folder_notes);
    snprintf(folder_notes + used, sizeof folder_notes - used, "%s\n", text);
}

void folder_make(char dir[64])
{
    snprintf(dir, 64, "%s/hpc-train-store.XXXXXX", unit_folder());
    assert_non_null(mkdtemp(dir));
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void) info;
    (void) type;
    (void) at;
    return remove(path);
}

void folder_remove(const char *dir)
{
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

bool folder_has(const char *dir, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

int folder_count(const char *dir, const char *part)
{
    int count = 0;
    const struct dirent *entry;
    DIR *all = opendir(dir);
    while (all != NULL && (entry = readdir(all)) != NULL)
        count += entry->d_name[0] != '.' && strstr(entry->d_name, part) != NULL;
    if (all != NULL)
        closedir(all);
    return count;
}

char *folder_read(const char *dir, const char *name, size_t *size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *data = calloc(1, 1 << 20);
    assert_non_null(data);
    *size = fread(data, 1, (1 << 20) - 1, file);
    fclose(file);
    return data;
}

void folder_write(const char *dir, const char *name, const char *data, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* ---- checkpoints ---- */

static float weight(int value, int i)
{
    return (float) (value * 100 + i);
}

static double slot(int value, int i)
{
    return value + i / 1024.0;
}

hpct_status folder_save(hpct_ckpt_store *store, const char *dir, int64_t step, int value, bool best)
{
    float w[ROWS * COLUMNS];
    double m[ROWS * COLUMNS];
    char state[64];
    hpct_ckpt_store_file files[2];
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        w[i] = weight(value, i);
        m[i] = slot(value, i);
    }
    const hpct_ckpt_store_tensor first[] = {
        {"optimizer/m", HPCT_CKPT_STORE_F64, 2, {2, COLUMNS}, 0, ROWS, m},
        {"weights/w", HPCT_CKPT_STORE_F32, 2, {ROWS, COLUMNS}, 0, 0, w},
    };
    const hpct_ckpt_store_tensor second[] = {
        {"optimizer/m", HPCT_CKPT_STORE_F64, 2, {ROWS - 2, COLUMNS}, 2, ROWS, m + 2 * COLUMNS}};
    HPCT_TRY(hpct_ckpt_store_write_part(dir, step, 0, first, 2, &files[0]));
    HPCT_TRY(hpct_ckpt_store_write_part(dir, step, 1, second, 1, &files[1]));
    snprintf(state, sizeof state, "{\"value\": %d, \"epoch\": %d}", value, value / 10);
    return hpct_ckpt_store_commit(store, step, state, files, 2, best);
}

int folder_value(hpct_ckpt *checkpoint)
{
    float w[ROWS * COLUMNS];
    double m[ROWS * COLUMNS];
    int value = -1;
    hpct_ckpt_store_tensor want = {"weights/w", HPCT_CKPT_STORE_F32, 2, {ROWS, COLUMNS}, 0, 0,
                                   NULL};
    if (hpct_ckpt_read(checkpoint, &want, w) != HPCT_OK)
        return -1;
    want.name = "optimizer/m";
    want.type = HPCT_CKPT_STORE_F64;
    if (hpct_ckpt_read(checkpoint, &want, m) != HPCT_OK ||
        sscanf(hpct_ckpt_state(checkpoint), "{\"value\": %d", &value) != 1)
        return -1;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        if (w[i] != weight(value, i) || m[i] != slot(value, i))
            return -1;
    }
    return value;
}

int folder_load(const char *path, int64_t *step)
{
    hpct_ckpt *checkpoint;
    folder_notes[0] = '\0';
    hpct_status status = hpct_ckpt_store_load(&checkpoint, path, folder_note, NULL);
    if (status != HPCT_OK)
        return -(int) status;
    int value = folder_value(checkpoint);
    if (step != NULL)
        *step = hpct_ckpt_step(checkpoint);
    hpct_ckpt_free(checkpoint);
    return value;
}
