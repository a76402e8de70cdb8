/* hpctrain/export.h - models with their weights in files of other frameworks. */
#ifndef HPCTRAIN_EXPORT_H
#define HPCTRAIN_EXPORT_H

#include <hpctrain/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes an ONNX file (opset 18) for inference, atomically: input [batch][height][width][channels]
 * with any number of samples, as for hpct_model_predict(); output the same as its; weights in fp32.
 * Random layers are left out, BatchNormalization uses the moving statistics. Class names are in
 * metadata_props, "class_names", a JSON list. After compile.
 *
 * Returns HPCT_ERR_USAGE, naming it, for a layer that cannot be written, for weights that are not
 * set, and for more than 2 GB, the format's limit; HPCT_ERR_IO if the file cannot be written. */
HPCT_API hpct_status hpct_model_save_onnx(const hpct_model *model, const char *path);

/* Writes a .keras archive for keras.saving.load_model of Keras 3, atomically: model and weights,
 * not compiled. Files of its size are made in $TMPDIR meanwhile. Returns HPCT_ERR_CONFIG without
 * HDF5.
 */
HPCT_API hpct_status hpct_model_save_keras(const hpct_model *model, const char *path);

#ifdef __cplusplus
}
#endif
#endif
