/* nn/file/keras/hdf5_library.h - HDF5's functions, loaded on demand with dlopen. Types are from its
 * header; the library must have the version that configure found. */
#ifndef HPCT_NN_FILE_KERAS_HDF5_LIBRARY_H
#define HPCT_NN_FILE_KERAS_HDF5_LIBRARY_H

#include <hdf5.h>
#include <hpctrain/status.h>

#define HPCT_KERAS_HDF5_FUNCTIONS(X)                                                               \
    X(H5open)                                                                                      \
    X(H5Acreate2)                                                                                  \
    X(H5Aclose)                                                                                    \
    X(H5Aexists_by_name)                                                                           \
    X(H5Aget_space)                                                                                \
    X(H5Aget_type)                                                                                 \
    X(H5Aopen_by_name)                                                                             \
    X(H5Aread)                                                                                     \
    X(H5Awrite)                                                                                    \
    X(H5Dclose)                                                                                    \
    X(H5Dcreate2)                                                                                  \
    X(H5Dget_create_plist)                                                                         \
    X(H5Dget_space)                                                                                \
    X(H5Dget_storage_size)                                                                         \
    X(H5Dget_type)                                                                                 \
    X(H5Dopen2)                                                                                    \
    X(H5Dread)                                                                                     \
    X(H5Dvlen_reclaim)                                                                             \
    X(H5Dwrite)                                                                                    \
    X(H5Eset_auto2)                                                                                \
    X(H5Fclose)                                                                                    \
    X(H5Fcreate)                                                                                   \
    X(H5Fflush)                                                                                    \
    X(H5Fget_file_image)                                                                           \
    X(H5Fget_name)                                                                                 \
    X(H5Fopen)                                                                                     \
    X(H5Gclose)                                                                                    \
    X(H5Gcreate2)                                                                                  \
    X(H5Gget_info_by_name)                                                                         \
    X(H5Lexists)                                                                                   \
    X(H5Lget_name_by_idx)                                                                          \
    X(H5Pclose)                                                                                    \
    X(H5Pcreate)                                                                                   \
    X(H5Pget_external_count)                                                                       \
    X(H5Pget_layout)                                                                               \
    X(H5Pset_fapl_core)                                                                            \
    X(H5Pset_obj_track_times)                                                                      \
    X(H5Sclose)                                                                                    \
    X(H5Screate)                                                                                   \
    X(H5Screate_simple)                                                                            \
    X(H5Sget_simple_extent_dims)                                                                   \
    X(H5Sget_simple_extent_ndims)                                                                  \
    X(H5Sget_simple_extent_npoints)                                                                \
    X(H5Tclose)                                                                                    \
    X(H5Tcopy)                                                                                     \
    X(H5Tequal)                                                                                    \
    X(H5Tget_class)                                                                                \
    X(H5Tget_size)                                                                                 \
    X(H5Tis_variable_str)                                                                          \
    X(H5Tset_cset)                                                                                 \
    X(H5Tset_size)

typedef struct hpct_keras_hdf5_library {
#define DECLARE(name) __typeof__(name) *name;
    HPCT_KERAS_HDF5_FUNCTIONS(DECLARE)
#undef DECLARE
    hid_t float32, int32, native_float, string, dataset_create, file_access, file_create,
        group_create; /* identifiers H5T_... and H5P_... */
} hpct_keras_hdf5_library;

/* Loads the library once; HPCT_ERR_CONFIG if it is not installed. */
hpct_status hpct_keras_hdf5_load(const hpct_keras_hdf5_library **out);

#endif
