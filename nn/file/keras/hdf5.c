/* Groups, datasets and attributes of HDF5 files. Files are untrusted: sizes are compared with the
 * expected ones before anything is allocated. */
#include "nn/file/keras/hdf5.h"

#include "base/file.h"
#include "base/status.h"
#include "nn/file/keras/hdf5_library.h"

#include <stdlib.h>
#include <string.h>

#define READ_ONLY 0x0000u /* H5F_ACC_RDONLY, _TRUNC: their macros call into the library */
#define TRUNCATE 0x0002u
#define GROWTH ((size_t) 1 << 20) /* of a file in memory, in bytes */
#define MAX_RANK 8
#define MAX_STRINGS 100000
#define MAX_STRING 4096    /* bytes of a fixed-size string */
#define MAX_TEXT (1 << 20) /* of a variable-length one */

struct hpct_keras_hdf5 {
    const hpct_keras_hdf5_library *h;
    hid_t id;
};

/* A handle without a file; loads the library. */
static hpct_status new_file(hpct_keras_hdf5 **out)
{
    hpct_keras_hdf5 *file = calloc(1, sizeof *file);
    if (file == NULL)
        return hpct_fail_memory(sizeof *file);
    hpct_status status = hpct_keras_hdf5_load(&file->h);
    if (status != HPCT_OK) {
        free(file);
        return status;
    }
    file->h->H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* no messages from HDF5; per thread */
    *out = file;
    return HPCT_OK;
}

hpct_status hpct_keras_hdf5_available(void)
{
    const hpct_keras_hdf5_library *library;
    return hpct_keras_hdf5_load(&library);
}

hpct_status hpct_keras_hdf5_open(hpct_keras_hdf5 **out, const char *path)
{
    HPCT_TRY(new_file(out));
    (*out)->id = (*out)->h->H5Fopen(path, READ_ONLY, H5P_DEFAULT);
    if ((*out)->id >= 0)
        return HPCT_OK;
    free(*out);
    *out = NULL;
    return hpct_fail(HPCT_ERR_DATA, "not an HDF5 file, or a damaged one");
}

void hpct_keras_hdf5_close(hpct_keras_hdf5 *file)
{
    if (file != NULL)
        file->h->H5Fclose(file->id);
    free(file);
}

/* ---- writing ---- */

/* Creation properties without timestamps, so that equal weights give equal files. */
static hid_t without_times(const hpct_keras_hdf5_library *h, hid_t class)
{
    hid_t plain = h->H5Pcreate(class);
    if (h->H5Pset_obj_track_times(plain, false) >= 0)
        return plain;
    h->H5Pclose(plain);
    return -1;
}

hpct_status hpct_keras_hdf5_create(hpct_keras_hdf5 **out)
{
    HPCT_TRY(new_file(out));
    hpct_keras_hdf5 *file = *out;
    hid_t access = file->h->H5Pcreate(file->h->file_access);
    hid_t plain = without_times(file->h, file->h->file_create);
    file->id = -1;
    if (file->h->H5Pset_fapl_core(access, GROWTH, false) >= 0)
        file->id = file->h->H5Fcreate("weights.h5", TRUNCATE, plain, access);
    file->h->H5Pclose(plain);
    file->h->H5Pclose(access);
    if (file->id >= 0)
        return HPCT_OK;
    free(file);
    *out = NULL;
    return hpct_fail(HPCT_ERR_INTERNAL, "HDF5 cannot make a file in memory");
}

hpct_status hpct_keras_hdf5_save(hpct_keras_hdf5 *file, int fd, const char *path)
{
    const hpct_keras_hdf5_library *h = file->h;
    ssize_t bytes =
        h->H5Fflush(file->id, H5F_SCOPE_GLOBAL) >= 0 ? h->H5Fget_file_image(file->id, NULL, 0) : -1;
    if (bytes < 0)
        return hpct_fail(HPCT_ERR_INTERNAL, "%s: HDF5 cannot return the file's contents", path);
    void *image = malloc((size_t) bytes);
    if (image == NULL)
        return hpct_fail_memory((size_t) bytes);
    hpct_status status =
        h->H5Fget_file_image(file->id, image, (size_t) bytes) == bytes
            ? hpct_file_write_all(fd, image, (size_t) bytes, path)
            : hpct_fail(HPCT_ERR_INTERNAL, "%s: HDF5 cannot return the file's contents", path);
    free(image);
    return status;
}

static bool write_string(const hpct_keras_hdf5_library *h, hid_t object, const char *name,
                         const char *text)
{
    hid_t space = h->H5Screate(H5S_SCALAR), type = h->H5Tcopy(h->string), attribute = -1;
    bool good = type >= 0 && h->H5Tset_size(type, H5T_VARIABLE) >= 0 &&
                h->H5Tset_cset(type, H5T_CSET_UTF8) >= 0;
    if (good)
        attribute = h->H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    good = attribute >= 0 && h->H5Awrite(attribute, type, &text) >= 0;
    h->H5Aclose(attribute);
    h->H5Tclose(type);
    h->H5Sclose(space);
    return good;
}

hpct_status hpct_keras_hdf5_make_group(hpct_keras_hdf5 *file, const char *path, const char *name)
{
    const hpct_keras_hdf5_library *h = file->h;
    hid_t plain = without_times(h, h->group_create);
    hid_t group = h->H5Gcreate2(file->id, path, H5P_DEFAULT, plain, H5P_DEFAULT);
    bool good = group >= 0 && (name == NULL || write_string(h, group, "name", name));
    h->H5Gclose(group);
    h->H5Pclose(plain);
    return good ? HPCT_OK : hpct_fail(HPCT_ERR_INTERNAL, "HDF5 cannot write the group %s", path);
}

hpct_status hpct_keras_hdf5_write_attribute(hpct_keras_hdf5 *file, const char *name,
                                            const char *text)
{
    return write_string(file->h, file->id, name, text)
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_INTERNAL, "HDF5 cannot write the attribute %s", name);
}

/* Keras' only variables without a shape, such as Normalization's count, are integers. */
static bool is_counter(const hpct_shape *shape)
{
    return shape->rank == 0;
}

hpct_status hpct_keras_hdf5_write(hpct_keras_hdf5 *file, const char *path, const hpct_shape *shape,
                                  const float *values)
{
    const hpct_keras_hdf5_library *h = file->h;
    hsize_t sizes[HPCT_MAX_RANK];
    for (int i = 0; i < shape->rank; i++)
        sizes[i] = (hsize_t) shape->size[i];
    hid_t plain = without_times(h, h->dataset_create);
    hid_t space = h->H5Screate_simple(shape->rank, sizes, NULL);
    hid_t type = is_counter(shape) ? h->int32 : h->float32;
    hid_t set = h->H5Dcreate2(file->id, path, type, space, H5P_DEFAULT, plain, H5P_DEFAULT);
    bool good =
        set >= 0 && h->H5Dwrite(set, h->native_float, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
    h->H5Dclose(set);
    h->H5Sclose(space);
    h->H5Pclose(plain);
    return good ? HPCT_OK : hpct_fail(HPCT_ERR_INTERNAL, "HDF5 cannot write %s", path);
}

/* ---- reading ---- */

bool hpct_keras_hdf5_has(hpct_keras_hdf5 *file, const char *path)
{
    char part[512];
    size_t length = strlen(path);
    if (length >= sizeof part)
        return false;
    for (size_t end = 1; end <= length; end++) {
        if (path[end] != '/' && path[end] != '\0')
            continue;
        memcpy(part, path, end);
        part[end] = '\0';
        if (file->h->H5Lexists(file->id, part, H5P_DEFAULT) <= 0)
            return false;
    }
    return true;
}

bool hpct_keras_hdf5_is_group(hpct_keras_hdf5 *file, const char *path)
{
    H5G_info_t info;
    return file->h->H5Gget_info_by_name(file->id, path, &info, H5P_DEFAULT) >= 0;
}

hpct_status hpct_keras_hdf5_count(hpct_keras_hdf5 *file, const char *group, size_t *count)
{
    H5G_info_t info;
    if (file->h->H5Gget_info_by_name(file->id, group, &info, H5P_DEFAULT) < 0)
        return hpct_fail(HPCT_ERR_DATA, "%s is not a group, or a damaged one", group);
    *count = (size_t) info.nlinks;
    return HPCT_OK;
}

hpct_status hpct_keras_hdf5_name(hpct_keras_hdf5 *file, const char *group, size_t index, char *name,
                                 size_t size)
{
    ssize_t length = file->h->H5Lget_name_by_idx(file->id, group, H5_INDEX_NAME, H5_ITER_NATIVE,
                                                 index, name, size, H5P_DEFAULT);
    if (length < 0 || (size_t) length >= size)
        return hpct_fail(HPCT_ERR_DATA, "%s has a name that cannot be read", group);
    return HPCT_OK;
}

/* Links may point to other files. */
static bool in_this_file(hpct_keras_hdf5 *file, hid_t object)
{
    char ours[4096], its[4096];
    return file->h->H5Fget_name(file->id, ours, sizeof ours) >= 0 &&
           file->h->H5Fget_name(object, its, sizeof its) >= 0 && strcmp(ours, its) == 0;
}

static bool same_shape(const hpct_keras_hdf5_library *h, hid_t space, const hpct_shape *shape)
{
    hsize_t sizes[MAX_RANK];
    int rank = h->H5Sget_simple_extent_ndims(space);
    if (rank != shape->rank || h->H5Sget_simple_extent_dims(space, sizes, NULL) != rank)
        return false;
    for (int i = 0; i < rank; i++) {
        if (sizes[i] != (hsize_t) shape->size[i])
            return false;
    }
    return true;
}

static hpct_status check_dataset(hpct_keras_hdf5 *file, hid_t set, const char *path,
                                 const hpct_shape *shape)
{
    const hpct_keras_hdf5_library *h = file->h;
    char text[HPCT_GRAPH_SHAPE_TEXT];
    hid_t space = h->H5Dget_space(set), type = h->H5Dget_type(set);
    hid_t plain = h->H5Dget_create_plist(set);
    hpct_graph_shape_format(shape, text);
    H5D_layout_t layout = h->H5Pget_layout(plain);
    bool whole = is_counter(shape) && h->H5Tget_class(type) == H5T_INTEGER;
    hsize_t bytes = hpct_graph_shape_count(shape) * (whole ? h->H5Tget_size(type) : sizeof(float));
    hpct_status status = HPCT_OK;
    if (!same_shape(h, space, shape))
        status = hpct_fail(HPCT_ERR_DATA, "%s does not have the model's shape %s", path, text);
    else if (!whole && h->H5Tequal(type, h->float32) <= 0)
        status = hpct_fail(HPCT_ERR_DATA, "%s is not of 32-bit floats", path);
    else if (!in_this_file(file, set) || h->H5Pget_external_count(plain) != 0)
        status = hpct_fail(HPCT_ERR_DATA, "%s lies in another file", path);
    else if (layout != H5D_CONTIGUOUS && layout != H5D_COMPACT)
        status = hpct_fail(HPCT_ERR_DATA, "%s is chunked or compressed: not supported", path);
    else if (h->H5Dget_storage_size(set) != bytes)
        status = hpct_fail(HPCT_ERR_DATA, "%s has no data for its shape", path);
    h->H5Pclose(plain);
    h->H5Tclose(type);
    h->H5Sclose(space);
    return status;
}

hpct_status hpct_keras_hdf5_check(hpct_keras_hdf5 *file, const char *path, const hpct_shape *shape)
{
    if (!hpct_keras_hdf5_has(file, path))
        return hpct_fail(HPCT_ERR_DATA, "%s is missing", path);
    hid_t set = file->h->H5Dopen2(file->id, path, H5P_DEFAULT);
    if (set < 0)
        return hpct_fail(HPCT_ERR_DATA, "%s is not a data set, or a damaged one", path);
    hpct_status status = check_dataset(file, set, path, shape);
    file->h->H5Dclose(set);
    return status;
}

hpct_status hpct_keras_hdf5_read(hpct_keras_hdf5 *file, const char *path, float *values)
{
    const hpct_keras_hdf5_library *h = file->h;
    hid_t set = h->H5Dopen2(file->id, path, H5P_DEFAULT);
    bool good =
        set >= 0 && h->H5Dread(set, h->native_float, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
    h->H5Dclose(set);
    return good ? HPCT_OK
                : hpct_fail(HPCT_ERR_DATA, "%s cannot be read: the file is damaged", path);
}

/* ---- attributes ---- */

bool hpct_keras_hdf5_has_attribute(hpct_keras_hdf5 *file, const char *group, const char *attribute)
{
    return file->h->H5Aexists_by_name(file->id, group, attribute, H5P_DEFAULT) > 0;
}

/* `count` strings of `width` bytes each, or pointers to strings (width 0), in one allocation. */
static hpct_status gather(char ***out, size_t count, const char *flat, size_t width)
{
    size_t bytes = count * sizeof(char *);
    const char *const *pointers = (const char *const *) (const void *) flat;
    for (size_t i = 0; i < count; i++) {
        const char *text = width > 0 ? flat + i * width : pointers[i];
        bytes += (text == NULL ? 0 : strnlen(text, width > 0 ? width : MAX_TEXT)) + 1;
    }
    char **list = malloc(bytes > 0 ? bytes : 1), *to;
    if (list == NULL)
        return hpct_fail_memory(bytes);
    to = (char *) (list + count);
    for (size_t i = 0; i < count; i++) {
        const char *text = width > 0 ? flat + i * width : pointers[i];
        size_t length = text == NULL ? 0 : strnlen(text, width > 0 ? width : MAX_TEXT);
        list[i] = to;
        if (length > 0)
            memcpy(to, text, length);
        to[length] = '\0';
        to += length + 1;
    }
    *out = list;
    return HPCT_OK;
}

static hpct_status read_strings(const hpct_keras_hdf5_library *h, hid_t attribute, hid_t type,
                                hid_t space, char ***out, size_t *count)
{
    bool is_string = h->H5Tget_class(type) == H5T_STRING;
    bool variable = is_string && h->H5Tis_variable_str(type) > 0;
    size_t width = variable ? 0 : h->H5Tget_size(type);
    hssize_t points = h->H5Sget_simple_extent_npoints(space);
    if (points == 0) { /* numpy writes an empty list as an array of floats */
        *count = 0;
        return gather(out, 0, NULL, 1);
    }
    if (!is_string || points < 0 || points > MAX_STRINGS || width > MAX_STRING)
        return hpct_fail(HPCT_ERR_DATA, "not a list of names");
    *count = (size_t) points;
    size_t bytes = *count * (variable ? sizeof(char *) : width);
    char *flat = calloc(1, bytes);
    if (flat == NULL)
        return hpct_fail_memory(bytes);
    hpct_status status;
    if (h->H5Aread(attribute, type, flat) < 0)
        status = hpct_fail(HPCT_ERR_DATA, "it cannot be read: the file is damaged");
    else
        status = gather(out, *count, flat, width);
    if (variable)
        h->H5Dvlen_reclaim(type, space, H5P_DEFAULT, flat);
    free(flat);
    return status;
}

static hpct_status read_attribute(hpct_keras_hdf5 *file, const char *group, const char *attribute,
                                  char ***out, size_t *count)
{
    const hpct_keras_hdf5_library *h = file->h;
    hid_t id = h->H5Aopen_by_name(file->id, group, attribute, H5P_DEFAULT, H5P_DEFAULT);
    if (id < 0)
        return hpct_fail(HPCT_ERR_DATA, "%s has no %s", group, attribute);
    hid_t type = h->H5Aget_type(id), space = h->H5Aget_space(id);
    hpct_status status = read_strings(h, id, type, space, out, count);
    h->H5Sclose(space);
    h->H5Tclose(type);
    h->H5Aclose(id);
    return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, attribute);
}

/* Name of chunk `which`; false if there is none. */
static bool name_piece(hpct_keras_hdf5 *file, const char *group, const char *attribute,
                       size_t which, char piece[64])
{
    snprintf(piece, 64, "%.40s%zu", attribute, which);
    return hpct_keras_hdf5_has_attribute(file, group, piece);
}

bool hpct_keras_hdf5_has_strings(hpct_keras_hdf5 *file, const char *group, const char *attribute)
{
    char piece[64];
    return hpct_keras_hdf5_has_attribute(file, group, attribute) ||
           name_piece(file, group, attribute, 0, piece);
}

/* Concatenates both lists; frees them. */
static hpct_status join(char ***list, size_t *count, char **more, size_t added)
{
    size_t all = *count + added;
    const char **pointers = calloc(all + 1, sizeof *pointers);
    char **joined = NULL;
    hpct_status status = pointers == NULL ? hpct_fail_memory(all * sizeof *pointers) : HPCT_OK;
    for (size_t i = 0; i < all && status == HPCT_OK; i++)
        pointers[i] = i < *count ? (*list)[i] : more[i - *count];
    if (status == HPCT_OK)
        status = gather(&joined, all, (const char *) pointers, 0);
    free(pointers);
    free(more);
    free(*list);
    *list = joined;
    *count = all;
    return status;
}

hpct_status hpct_keras_hdf5_strings(hpct_keras_hdf5 *file, const char *group, const char *attribute,
                                    char ***out, size_t *count)
{
    char piece[64];
    if (hpct_keras_hdf5_has_attribute(file, group, attribute) ||
        !name_piece(file, group, attribute, 0, piece))
        return read_attribute(file, group, attribute, out, count);
    hpct_status status = HPCT_OK;
    *out = NULL;
    *count = 0;
    for (size_t i = 0; status == HPCT_OK && name_piece(file, group, attribute, i, piece); i++) {
        char **more;
        size_t added;
        status = read_attribute(file, group, piece, &more, &added);
        if (status == HPCT_OK && *count + added > MAX_STRINGS) {
            free(more);
            status = hpct_fail(HPCT_ERR_DATA, "%s: too many names", attribute);
        } else if (status == HPCT_OK)
            status = join(out, count, more, added);
    }
    if (status != HPCT_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}
