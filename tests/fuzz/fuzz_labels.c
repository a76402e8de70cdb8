/* --labels: the first byte says what the loss takes; of what is taken each number is finite, and
 * each class one of the names. */
#include <math.h>

#include "agent/data/labels.h"
#include "tests/fuzz/fuzz.h"

#define PICTURES 3
#define OUTPUTS 2

static char *copy_of(const void *text, size_t size)
{
    char *copy = malloc(size + 1);
    must(copy != NULL);
    memcpy(copy, text, size);
    return copy;
}

static hpct_dataset *new_dataset(void)
{
    static const char *const names[PICTURES] = {"a.png", "b/c.png", "d,\"e\".png"};
    hpct_dataset *dataset = calloc(1, sizeof *dataset);
    must(dataset != NULL);
    dataset->format = &hpct_data_format_folder;
    dataset->options.unlabelled = true;
    dataset->size = PICTURES;
    dataset->stored = HPCT_SHAPE(1, 1, 3);
    dataset->path = copy_of("pictures", sizeof "pictures");
    dataset->labels = calloc(PICTURES, sizeof *dataset->labels);
    dataset->encoded.entries = calloc(PICTURES, sizeof *dataset->encoded.entries);
    if (dataset->labels == NULL || dataset->encoded.entries == NULL)
        abort();
    for (int i = 0; i < PICTURES; i++)
        dataset->encoded.entries[i].name = copy_of(names[i], strlen(names[i]) + 1);
    return dataset;
}

static void check(const hpct_dataset *dataset)
{
    for (int i = 0; i < PICTURES * dataset->num_targets; i++) {
        must(isfinite(dataset->targets[i]));
    }
    for (int i = 0; i < PICTURES; i++) {
        if (dataset->labels[i] < 0 || dataset->labels[i] >= dataset->num_classes)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    hpct_data_label_form form = {.kind = (hpct_target_kind) (data[0] % 3), .outputs = OUTPUTS};
    hpct_dataset *dataset = new_dataset();
    char *text = copy_of(data + 1, size - 1);
    if (hpct_data_labels_take(dataset, &form, "labels", text, size - 1) == HPCT_OK)
        check(dataset);
    hpct_dataset_free(dataset);
    free(text);
    return 0;
}
