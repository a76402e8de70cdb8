/* Fuzz target: tensors of a safetensors file as those of a state_dict of torchvision. Each line is
 * a tensor: its name, and sizes after blanks. */
#include "nn/file/torchvision.h"
#include "tests/fuzz/fuzz.h"

#define MAX_ENTRIES 64

static void read_line(char *line, hpct_weights_st_entry *entry)
{
    char *state = NULL, *name = strtok_r(line, " ", &state);
    entry->name = strdup(name != NULL ? name : "");
    for (char *word;
         (word = strtok_r(NULL, " ", &state)) != NULL && entry->rank < HPCT_WEIGHTS_ST_MAX_RANK;
         entry->rank++)
        entry->shape[entry->rank] = strtoll(word, NULL, 10);
}

static void read_lines(char *text, hpct_weights_st_index *index)
{
    char *state = NULL;
    index->entries = calloc(MAX_ENTRIES, sizeof *index->entries);
    for (char *line = strtok_r(text, "\n", &state); line != NULL && index->count < MAX_ENTRIES;
         line = strtok_r(NULL, "\n", &state))
        read_line(line, &index->entries[index->count++]);
}

/* All have names, and those of the model have ranks that can be compared. */
static void check(const hpct_weights_st_index *index)
{
    for (size_t i = 0; i < index->count; i++) {
        const hpct_weights_st_entry *entry = &index->entries[i];
        if (entry->name == NULL || entry->rank < 0 || entry->rank > HPCT_WEIGHTS_ST_MAX_RANK)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"resnet50", "densenet121-torchvision", "vgg16",
                                        "mnist-cnn"};
    char *text = size > 0 ? strndup((const char *) data + 1, size - 1) : NULL;
    hpct_weights_st_index index = {0};
    hpct_weights_torch torch = {0};
    hpct_model *model = NULL;
    if (text == NULL)
        return 0;
    read_lines(text, &index);
    if (hpct_model_builtin(&model, names[data[0] % 4]) == HPCT_OK &&
        hpct_weights_torch_adopt(&torch, model, &index, "x", data[0] % 8 >= 4) == HPCT_OK)
        check(&index);
    hpct_weights_torch_free(&torch);
    hpct_weights_st_free(&index);
    hpct_model_free(model);
    free(text);
    return 0;
}
