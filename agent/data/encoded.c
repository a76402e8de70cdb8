/* Encoded pictures. Opening reads and decodes them with all threads. */
#include "agent/data/encoded.h"

#include "agent/data/notes.h"
#include "base/alloc.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB(bytes) ((double) (bytes) / (1024.0 * 1024.0))

void hpct_data_room_free(hpct_data_room *room)
{
    hpct_data_decoder_free(room->decoder);
    free(room->file);
    *room = (hpct_data_room){0};
}

/* ---- in parallel ---- */

typedef hpct_status each_function(hpct_dataset *dataset, size_t index, hpct_data_room *room);

/* Calls `each` for all samples. Returns the error of the first sample that failed. */
static hpct_status for_all(hpct_dataset *dataset, each_function *each)
{
    size_t failed_at = SIZE_MAX;
    hpct_status failed = HPCT_OK;
    char *message = NULL;
#pragma omp parallel
    {
        hpct_data_room room = {0};
#pragma omp for schedule(dynamic, 64)
        for (size_t i = 0; i < dataset->size; i++) {
            size_t seen;
#pragma omp atomic read
            seen = failed_at;
            hpct_status status = i < seen ? each(dataset, i, &room) : HPCT_OK;
            if (status == HPCT_OK)
                continue;
#pragma omp critical(hpct_encoded_failure)
            if (i < failed_at) {
#pragma omp atomic write
                failed_at = i;
                failed = status;
                free(message);
                message = strdup(hpct_last_error());
            }
        }
        hpct_data_room_free(&room);
    }
    if (failed != HPCT_OK)
        hpct_fail(failed, "%s", message != NULL ? message : "out of memory");
    free(message);
    return failed;
}

/* ---- files ---- */

/* "FOLDER/NAME"; the caller frees it. */
static hpct_status full_name(char **name, const hpct_dataset *dataset, size_t index)
{
    return hpct_alloc_text(name, "%s/%s", dataset->path, dataset->encoded.entries[index].name);
}

static hpct_status read_all(int fd, uint8_t *out, size_t bytes, const char *name)
{
    for (size_t have = 0; have < bytes;) {
        ssize_t got = read(fd, out + have, bytes - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return hpct_fail(HPCT_ERR_IO, "%s: reading failed: %s", name, strerror(errno));
        if (got == 0)
            return hpct_fail(HPCT_ERR_DATA, "%s: it has become shorter", name);
        have += (size_t) got;
    }
    return HPCT_OK;
}

static hpct_status open_file(const hpct_dataset *dataset, size_t index, int *fd, char **name)
{
    HPCT_TRY(full_name(name, dataset, index));
    *fd = open(*name, O_RDONLY | O_CLOEXEC);
    if (*fd >= 0)
        return HPCT_OK;
    hpct_status status = hpct_fail(HPCT_ERR_NO_INPUT, "%s: %s", *name, strerror(errno));
    free(*name);
    return status;
}

static hpct_status measure_file(hpct_dataset *dataset, size_t index, hpct_data_room *room)
{
    (void) room;
    struct stat info;
    char *name;
    hpct_status status = HPCT_OK;
    HPCT_TRY(full_name(&name, dataset, index));
    if (stat(name, &info) != 0)
        status = hpct_fail(HPCT_ERR_NO_INPUT, "%s: %s", name, strerror(errno));
    else if (!S_ISREG(info.st_mode) || (uint64_t) info.st_size > HPCT_DATA_PICTURE_MAX_BYTES)
        status = hpct_fail(HPCT_ERR_DATA, "%s: it is not a picture's file", name);
    else
        dataset->encoded.entries[index].bytes = (size_t) info.st_size;
    free(name);
    return status;
}

/* Reads a file to its position in encoded->bytes. */
static hpct_status read_file(hpct_dataset *dataset, size_t index, hpct_data_room *room)
{
    (void) room;
    const hpct_data_entry *entry = &dataset->encoded.entries[index];
    int fd;
    char *name;
    HPCT_TRY(open_file(dataset, index, &fd, &name));
    hpct_status status = read_all(fd, dataset->encoded.bytes + entry->at, entry->bytes, name);
    close(fd);
    free(name);
    return status;
}

/* Reads a file into room->file. */
static hpct_status read_again(const hpct_dataset *dataset, size_t index, hpct_data_room *room)
{
    size_t bytes = dataset->encoded.entries[index].bytes;
    int fd;
    char *name;
    if (bytes > room->file_room) {
        free(room->file);
        room->file = malloc(bytes);
        room->file_room = room->file != NULL ? bytes : 0;
        if (room->file == NULL)
            return hpct_fail_memory(bytes);
    }
    HPCT_TRY(open_file(dataset, index, &fd, &name));
    hpct_status status = read_all(fd, room->file, bytes, name);
    close(fd);
    free(name);
    return status;
}

/* ---- one picture ---- */

hpct_status hpct_dataset_coded(const hpct_dataset *dataset, size_t index, hpct_data_room *room,
                               hpct_data_coded *coded)
{
    const hpct_data_encoded *encoded = &dataset->encoded;
    const hpct_data_entry *entry = &encoded->entries[index];
    hpct_status status = HPCT_OK;
    if (room->decoder == NULL)
        status = hpct_data_decoder_new(&room->decoder);
    if (status == HPCT_OK && encoded->bytes == NULL)
        status = read_again(dataset, index, room);
    *coded = (hpct_data_coded){
        .bytes = encoded->bytes != NULL ? encoded->bytes + entry->at : room->file,
        .num_bytes = entry->bytes,
        .name = entry->name,
    };
    return status;
}

static int channels_of(const hpct_dataset *dataset)
{
    return dataset->options.channels == 1 ? 1 : 3;
}

/* Prepends the folder or archive to the message, which has only the picture's name. */
static hpct_status with_path(const hpct_dataset *dataset, hpct_status status)
{
    if (status != HPCT_ERR_DATA)
        return status;
    char *prefix = NULL;
    HPCT_TRY(hpct_alloc_text(&prefix, "%s/%s", dataset->path, hpct_last_error()));
    hpct_fail(status, "%s", prefix);
    free(prefix);
    return status;
}

static hpct_status decode(const hpct_dataset *dataset, size_t index, hpct_data_room *room,
                          hpct_data_picture *out)
{
    hpct_data_coded coded;
    HPCT_TRY(hpct_dataset_coded(dataset, index, room, &coded)); /* its error has the path already */
    return with_path(dataset,
                     hpct_data_picture_decode(room->decoder, &coded, channels_of(dataset), out));
}

hpct_status hpct_dataset_fetch(const hpct_dataset *dataset, size_t index, hpct_data_room *room,
                               hpct_data_picture *out)
{
    const hpct_shape *stored = &dataset->stored;
    if (dataset->pixels == NULL)
        return decode(dataset, index, room, out);
    *out = (hpct_data_picture){
        .pixels = dataset->pixels + index * dataset->stored_elements,
        .height = stored->size[0],
        .width = stored->rank > 1 ? stored->size[1] : 1,
        .channels = stored->rank > 2 ? stored->size[2] : 1,
    };
    return HPCT_OK;
}

static void count_kind(hpct_dataset *dataset, const hpct_data_picture *header)
{
#pragma omp atomic
    dataset->encoded.seen++;
#pragma omp atomic
    dataset->encoded.colour += header->channels == 3;
#pragma omp atomic
    dataset->encoded.deep += header->deep;
}

/* Checks the header; records the first picture whose size differs from the first one's. */
static hpct_status check_header(hpct_dataset *dataset, size_t index, hpct_data_room *room)
{
    hpct_data_picture header;
    hpct_data_coded coded;
    hpct_status status = hpct_dataset_coded(dataset, index, room, &coded);
    if (status != HPCT_OK)
        return status;
    status = with_path(dataset, hpct_data_picture_size(room->decoder, &coded, &header));
    if (status != HPCT_OK)
        return status;
    count_kind(dataset, &header);
    if (header.height == dataset->stored.size[0] && header.width == dataset->stored.size[1])
        return HPCT_OK;
#pragma omp critical(hpct_encoded_odd)
    dataset->encoded.odd = index < dataset->encoded.odd ? index : dataset->encoded.odd;
    return HPCT_OK;
}

static hpct_status fetch_and_count(hpct_dataset *dataset, size_t index, hpct_data_room *room,
                                   hpct_data_picture *picture)
{
    hpct_data_encoded *encoded = &dataset->encoded;
    hpct_status status = decode(dataset, index, room, picture);
    if (status != HPCT_OK || !picture->suspect)
        return status;
#pragma omp critical(hpct_encoded_suspect)
    if (encoded->suspect++ == 0 || index < encoded->first_suspect)
        encoded->first_suspect = index;
    return HPCT_OK;
}

static hpct_status decode_one(hpct_dataset *dataset, size_t index, hpct_data_room *room)
{
    hpct_data_picture picture;
    HPCT_TRY(fetch_and_count(dataset, index, room, &picture));
    memcpy(dataset->pixels + index * dataset->stored_elements, picture.pixels,
           dataset->stored_elements);
    return HPCT_OK;
}

static hpct_status check_one(hpct_dataset *dataset, size_t index, hpct_data_room *room)
{
    hpct_data_picture picture;
    return fetch_and_count(dataset, index, room, &picture);
}

/* ---- opening ---- */

static hpct_status read_files(hpct_dataset *dataset, size_t memory)
{
    hpct_data_encoded *encoded = &dataset->encoded;
    HPCT_TRY(for_all(dataset, measure_file));
    for (size_t i = 0; i < dataset->size; i++) {
        encoded->entries[i].at = encoded->num_bytes;
        encoded->num_bytes += encoded->entries[i].bytes;
    }
    if (encoded->num_bytes > memory)
        return HPCT_OK; /* pictures are read when needed */
    encoded->bytes = malloc(encoded->num_bytes + 1);
    if (encoded->bytes == NULL)
        return hpct_fail_memory(encoded->num_bytes);
    return for_all(dataset, read_file);
}

static hpct_status set_stored_shape(hpct_dataset *dataset)
{
    hpct_data_picture header;
    hpct_data_coded coded;
    hpct_data_room room = {0};
    hpct_status status = hpct_dataset_coded(dataset, 0, &room, &coded);
    if (status == HPCT_OK)
        status = with_path(dataset, hpct_data_picture_size(room.decoder, &coded, &header));
    hpct_data_room_free(&room);
    if (status != HPCT_OK)
        return status;
    count_kind(dataset, &header);
    const uint64_t sizes[] = {(uint64_t) header.height, (uint64_t) header.width,
                              (uint64_t) channels_of(dataset)};
    return hpct_dataset_set_shape(dataset, 3, sizes, dataset->path);
}

/* Files that are read when needed and resized are not read here. */
static hpct_status check_headers(hpct_dataset *dataset)
{
    hpct_data_encoded *encoded = &dataset->encoded;
    bool resized = dataset->options.height > 0;
    encoded->odd = SIZE_MAX;
    if (encoded->bytes == NULL && resized) {
        encoded->odd = 0;
    } else {
        encoded->seen = encoded->colour = encoded->deep = 0;
        hpct_status status = for_all(dataset, check_header);
        if (status != HPCT_OK)
            return status;
    }
    if (encoded->odd != SIZE_MAX)
        dataset->stored = (hpct_shape){0};
    return HPCT_OK;
}

static hpct_status decode_each(hpct_dataset *dataset, each_function *each)
{
    const hpct_data_encoded *encoded = &dataset->encoded;
    hpct_status status = for_all(dataset, each);
    if (status != HPCT_OK || encoded->suspect == 0)
        return status;
    return hpct_data_note(&dataset->notes,
                          "%zu picture%s bytes that are not image data, and may be damaged (the "
                          "first: %s)",
                          encoded->suspect, encoded->suspect == 1 ? " has" : "s have",
                          encoded->entries[encoded->first_suspect].name);
}

/* After decoding: keeps the counts, and the names if they are wanted. */
static void drop_encoded(hpct_dataset *dataset)
{
    hpct_data_encoded *encoded = &dataset->encoded;
    hpct_data_encoded kept = {
        .seen = encoded->seen, .colour = encoded->colour, .deep = encoded->deep};
    if (dataset->options.unlabelled) {
        kept.entries = encoded->entries;
        encoded->entries = NULL;
    }
    hpct_data_encoded_free(encoded, dataset->size);
    *encoded = kept;
}

static hpct_status decode_all(hpct_dataset *dataset, size_t memory)
{
    hpct_data_encoded *encoded = &dataset->encoded;
    uint64_t bytes;
    HPCT_TRY(set_stored_shape(dataset));
    HPCT_TRY(check_headers(dataset));
    if (dataset->stored.rank == 0 || encoded->bytes == NULL ||
        __builtin_mul_overflow((uint64_t) dataset->size, dataset->stored_elements, &bytes) ||
        bytes > memory)
        return dataset->options.check ? decode_each(dataset, check_one) : HPCT_OK;
    dataset->pixels = malloc((size_t) bytes);
    if (dataset->pixels == NULL)
        return hpct_fail_memory((size_t) bytes);
    hpct_status status = decode_each(dataset, decode_one);
    if (status == HPCT_OK)
        drop_encoded(dataset);
    return status;
}

static hpct_status note_grey(hpct_dataset *dataset)
{
    const hpct_data_encoded *encoded = &dataset->encoded;
    if (channels_of(dataset) != 1 || encoded->colour == 0)
        return HPCT_OK;
    return hpct_data_note(
        &dataset->notes,
        "%zu of the %zu pictures looked at are in colour and are turned grey: the model "
        "reads one channel",
        encoded->colour, encoded->seen);
}

static hpct_status note_deep(hpct_dataset *dataset)
{
    const hpct_data_encoded *encoded = &dataset->encoded;
    if (encoded->deep == 0)
        return HPCT_OK;
    return hpct_data_note(
        &dataset->notes,
        "%zu of the %zu pictures looked at have 16 bits for each value, of which the "
        "upper 8 are read: those of 10 or 12 bits are nearly black then",
        encoded->deep, encoded->seen);
}

/* Sets what the split was read from. */
static hpct_status set_source(hpct_dataset *dataset, const char *split)
{
    if (split == NULL || split[0] == '\0')
        return HPCT_OK;
    char *source = NULL;
    HPCT_TRY(hpct_alloc_text(&source, "%s/%s", hpct_dataset_source(dataset), split));
    free(dataset->source);
    dataset->source = source;
    return HPCT_OK;
}

hpct_status hpct_data_encoded_take(hpct_dataset *dataset, hpct_data_listing *listing,
                                   uint8_t *bytes, size_t num_bytes)
{
    size_t memory = hpct_dataset_memory(dataset) / 2;
    dataset->size = listing->count;
    dataset->encoded = (hpct_data_encoded){
        .entries = listing->entries, .bytes = bytes, .num_bytes = num_bytes, .odd = SIZE_MAX};
    dataset->classes = listing->classes;
    dataset->num_classes = listing->num_classes;
    hpct_status status = set_source(dataset, listing->split);
    if (status == HPCT_OK && listing->notes != NULL)
        status = hpct_data_note(&dataset->notes, "%.*s", (int) strlen(listing->notes) - 1,
                                listing->notes);
    free(listing->notes);
    free(listing->split);
    free(listing->other);
    *listing = (hpct_data_listing){0};
    if (status != HPCT_OK)
        return status;
    dataset->labels = malloc((dataset->size + 1) * sizeof *dataset->labels);
    if (dataset->labels == NULL)
        return hpct_fail_memory(dataset->size * sizeof *dataset->labels);
    for (size_t i = 0; i < dataset->size; i++)
        dataset->labels[i] = dataset->encoded.entries[i].label;
    if (bytes == NULL)
        status = read_files(dataset, memory);
    if (status == HPCT_OK)
        status = hpct_data_fingerprint_encoded(dataset);
    if (status == HPCT_OK)
        status = decode_all(dataset, memory);
    if (status == HPCT_OK)
        status = note_grey(dataset);
    return status == HPCT_OK ? note_deep(dataset) : status;
}
