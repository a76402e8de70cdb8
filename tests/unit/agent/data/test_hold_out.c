/* agent/data: which samples --validation-split holds out, and that both parts are whole. Beside
 * Keras: tests/peers/data.t. */
#include "agent/data/dataset.h"
#include "agent/data/encoded.h"
#include "tests/unit/agent/data/pictures.h"
#include "tests/unit/agent/data/trees.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hpct_dataset *numbers(size_t samples)
{
    hpct_dataset *all = NULL;
    assert_int_equal(hpct_dataset_synthetic(&all, HPCT_SHAPE(4, 4), 3, samples, HPCT_TRAIN, NULL),
                     HPCT_OK);
    for (size_t i = 0; i < samples; i++)
        all->pixels[16 * i] = (uint8_t) i;
    return all;
}

TEST(last_samples_of_arrays_are_held_out)
{
    static const struct {
        size_t samples;
        double share;
        size_t held; /* of train_validation_split in keras/src/trainers/data_adapters */
    } cases[] = {{10, 0.2, 2}, {10, 0.25, 3}, {10, 0.01, 1}, {7, 0.5, 4}, {2, 0.5, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        hpct_dataset *all = numbers(cases[c].samples), *part = NULL;
        assert_int_equal(hpct_dataset_hold_out(all, cases[c].share, &part), HPCT_OK);
        assert_int_equal(hpct_dataset_size(part), cases[c].held);
        assert_int_equal(hpct_dataset_size(all), cases[c].samples - cases[c].held);
        for (size_t i = 0; i < cases[c].samples; i++) {
            const hpct_dataset *of = i < all->size ? all : part;
            size_t at = i < all->size ? i : i - all->size;
            assert_int_equal(of->pixels[16 * at], (uint8_t) i);
            assert_int_equal(of->labels[at], i % 3);
        }
        hpct_dataset_free(part);
        hpct_dataset_free(all);
    }
}

TEST(empty_parts_are_refused)
{
    static const double shares[] = {0, 1, -0.1, 1.5, NAN};
    hpct_dataset *all = numbers(10), *part = NULL;
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        assert_int_equal(hpct_dataset_hold_out(all, shares[i], &part), HPCT_ERR_USAGE);
        assert_null(part);
    }
    assert_int_equal(hpct_dataset_hold_out(all, 0.99, &part), HPCT_ERR_DATA);
    assert_string_equal(
        hpct_last_error(),
        "--validation-split 0.99: of the 10 samples in synthetic, 10 would be held out and 0 "
        "trained: both parts need at least one");
    assert_int_equal(hpct_dataset_size(all), 10);
    hpct_dataset_free(all);
}

#define COUNT 30

/* 30 pictures in three folders, each with its number behind the picture. */
static const char *folder_of_pictures(void)
{
    const char *folder = pictures_folder();
    char name[64];
    for (int i = 0; i < COUNT; i++) {
        size_t size = pictures_seed("picture/png", tree_seed, sizeof tree_seed - 1);
        tree_seed[size] = (uint8_t) i;
        snprintf(name, sizeof name, "%c/%02d.png", 'a' + i / 10, i);
        pictures_write(folder, name, tree_seed, size + 1, false);
    }
    return folder;
}

/* Number of the picture by its name; its label, and its encoded bytes if there are some, fit. */
static int number_of(const hpct_dataset *part, size_t i)
{
    const hpct_data_entry *entry = &part->encoded.entries[i];
    int number = atoi(entry->name + 2);
    if (part->encoded.bytes != NULL)
        assert_int_equal(part->encoded.bytes[entry->at + entry->bytes - 1], number);
    return number;
}

static void count_parts(hpct_dataset *all, hpct_dataset *part, int seen[COUNT])
{
    for (int p = 0; p < 2; p++) {
        hpct_dataset *of = p == 0 ? all : part;
        int before = -1;
        for (size_t i = 0; i < of->size; i++) {
            int number = number_of(of, i);
            hpct_data_room room = {0};
            hpct_data_picture picture;
            assert_true(number > before); /* in their order */
            assert_int_equal(of->labels[i], number / 10);
            assert_int_equal(hpct_dataset_fetch(of, i, &room, &picture), HPCT_OK);
            hpct_data_room_free(&room);
            seen[number] += p == 0 ? 1 : 100;
            before = number;
        }
    }
}

/* Of pictures that stay encoded, in memory or in their files (`memory` 1). */
static void draw(size_t memory, int seen[COUNT])
{
    hpct_dataset *all = NULL, *part = NULL;
    hpct_dataset_options options = {.height = 8, .width = 8, .memory = memory};
    assert_int_equal(hpct_dataset_open_as(&all, folder_of_pictures(), HPCT_TRAIN, &options),
                     HPCT_OK);
    assert_null(all->pixels);
    assert_int_equal(hpct_dataset_hold_out(all, 0.35, &part), HPCT_OK);
    assert_int_equal(part->size, 10); /* 10.5: rounded down, as image_dataset_from_directory does */
    assert_int_equal(all->size, 20);
    assert_int_equal(part->encoded.bytes == NULL, memory == 1);
    assert_int_equal(hpct_dataset_num_classes(part), 3);
    assert_non_null(strstr(hpct_dataset_source(part), "(35 % drawn from it)"));
    memset(seen, 0, COUNT * sizeof *seen);
    count_parts(all, part, seen);
    hpct_dataset_free(part);
    hpct_dataset_free(all);
}

TEST(pictures_in_folders_are_drawn)
{
    int once[COUNT], again[COUNT], of_class[3] = {0};
    tree_needs_pictures();
    draw(1, once);
    draw(1, again);
    assert_memory_equal(once, again, sizeof once); /* of another folder: the number decides */
    for (int i = 0; i < COUNT; i++) {
        assert_true(once[i] == 1 || once[i] == 100);
        of_class[i / 10] += once[i] == 100;
    }
    for (int class = 0; class < 3; class ++)
        assert_true(of_class[class] > 0 && of_class[class] < 10);
    draw(8000, again); /* too little for what is decoded */
    assert_memory_equal(once, again, sizeof once);
}
