/* nn/keras/hdf5.h - the little of HDF5 that weights need: groups, float datasets, names as
 * attributes. Knows no models.
 *
 * HDF5's library brings some thirty others with it, which take twice as long to load as hpc-train
 * itself; so it is loaded at the first call here. Not for several threads at a time. */
#ifndef HPCT_NN_KERAS_HDF5_H
#define HPCT_NN_KERAS_HDF5_H

#include "nn/shape.h"

typedef struct hpct_hdf5 hpct_hdf5;

/* Loads the library; HPCT_ERR_CONFIG where it is not on this machine. The others do so themselves.
 */
hpct_status hpct_hdf5_available(void);

/* A new file in memory, and what it has become, written to `fd` (`path` is for messages). HDF5's
 * own writing is not used: where a disk is full, 1.10 crashes later, when the process ends. */
hpct_status hpct_hdf5_create(hpct_hdf5 **out);
hpct_status hpct_hdf5_save(hpct_hdf5 *file, int fd, const char *path);
/* For reading alone. HPCT_ERR_DATA when it is not an HDF5 file. */
hpct_status hpct_hdf5_open(hpct_hdf5 **out, const char *path);
void hpct_hdf5_close(hpct_hdf5 *file); /* NULL is allowed */

/* The group's parents must be there. `name` becomes its attribute "name"; NULL for none. */
hpct_status hpct_hdf5_make_group(hpct_hdf5 *file, const char *path, const char *name);
hpct_status hpct_hdf5_write(hpct_hdf5 *file, const char *path, const hpct_shape *shape,
                            const float *values);

/* Whether every part of the path is there. */
bool hpct_hdf5_has(hpct_hdf5 *file, const char *path);

/* What a group holds: how many, and the name of one. */
hpct_status hpct_hdf5_count(hpct_hdf5 *file, const char *group, size_t *count);
hpct_status hpct_hdf5_name(hpct_hdf5 *file, const char *group, size_t index, char *name,
                           size_t size);

/* Checks that it is there, has this shape, and is 32-bit floats, all in this file and neither
 * compressed nor in pieces, so that reading it needs nothing but its own bytes. */
hpct_status hpct_hdf5_check(hpct_hdf5 *file, const char *path, const hpct_shape *shape);
/* After a check: as many floats as the shape has. */
hpct_status hpct_hdf5_read(hpct_hdf5 *file, const char *path, float *values);

/* An attribute that is a list of strings. *out is the caller's, to be freed with free(): *count
 * pointers and what they point to, in one piece. */
hpct_status hpct_hdf5_strings(hpct_hdf5 *file, const char *group, const char *attribute,
                              char ***out, size_t *count);
bool hpct_hdf5_has_attribute(hpct_hdf5 *file, const char *group, const char *attribute);

#endif
