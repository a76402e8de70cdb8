# nn/: tensors, the model graph, layers, losses, optimizers, models. Knows nothing of ranks.
nobase_include_HEADERS += include/hpctrain/model.h
