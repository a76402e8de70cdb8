/* nn/file/keras/hdf5.h - the part of HDF5 that weights need: groups, float datasets, lists of names
 * as attributes. Independent of models.
 *
 * libhdf5 has some thirty dependencies, which take twice as long to load as hpc-train itself; so it
 * is loaded at the first call here. Not thread-safe. */
#ifndef HPCT_NN_FILE_KERAS_HDF5_H
#define HPCT_NN_FILE_KERAS_HDF5_H

#include "nn/graph/shape.h"

typedef struct hpct_keras_hdf5 hpct_keras_hdf5;

/* Loads the library; HPCT_ERR_CONFIG if it is not installed. The other functions do the same. */
hpct_status hpct_keras_hdf5_available(void);

/* Creates a file in memory; save writes it to `fd` (`path` is for messages). HDF5's own file I/O is
 * not used: on a full disk 1.10 crashes at process exit. */
hpct_status hpct_keras_hdf5_create(hpct_keras_hdf5 **out);
hpct_status hpct_keras_hdf5_save(hpct_keras_hdf5 *file, int fd, const char *path);
/* Opens read-only. HPCT_ERR_DATA if it is not an HDF5 file. */
hpct_status hpct_keras_hdf5_open(hpct_keras_hdf5 **out, const char *path);
void hpct_keras_hdf5_close(hpct_keras_hdf5 *file); /* NULL is allowed */

/* The group's parents must exist. `name` is stored as its attribute "name"; NULL: none. */
hpct_status hpct_keras_hdf5_make_group(hpct_keras_hdf5 *file, const char *path, const char *name);
/* A string attribute of the root group. */
hpct_status hpct_keras_hdf5_write_attribute(hpct_keras_hdf5 *file, const char *name,
                                            const char *text);
hpct_status hpct_keras_hdf5_write(hpct_keras_hdf5 *file, const char *path, const hpct_shape *shape,
                                  const float *values);

/* Whether every component of the path exists. */
bool hpct_keras_hdf5_has(hpct_keras_hdf5 *file, const char *path);

/* Number of a group's members, and the name of one. */
hpct_status hpct_keras_hdf5_count(hpct_keras_hdf5 *file, const char *group, size_t *count);
bool hpct_keras_hdf5_is_group(hpct_keras_hdf5 *file, const char *path);
hpct_status hpct_keras_hdf5_name(hpct_keras_hdf5 *file, const char *group, size_t index, char *name,
                                 size_t size);

/* Checks that the dataset exists, has this shape and 32-bit floats, is in this file, and is neither
 * compressed nor chunked, so that only its own bytes are read. */
hpct_status hpct_keras_hdf5_check(hpct_keras_hdf5 *file, const char *path, const hpct_shape *shape);
/* After a check: reads as many floats as the shape has. */
hpct_status hpct_keras_hdf5_read(hpct_keras_hdf5 *file, const char *path, float *values);

/* Reads an attribute that is a list of strings; Keras splits long ones into NAME0, NAME1, ... The
 * caller frees *out with free(): *count pointers and the strings, in one allocation. */
hpct_status hpct_keras_hdf5_strings(hpct_keras_hdf5 *file, const char *group, const char *attribute,
                                    char ***out, size_t *count);
bool hpct_keras_hdf5_has_attribute(hpct_keras_hdf5 *file, const char *group, const char *attribute);
bool hpct_keras_hdf5_has_strings(hpct_keras_hdf5 *file, const char *group, const char *attribute);

#endif
