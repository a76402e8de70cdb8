# agent/: libhpctrain and the hpc-train command.
hpctrain_HEADERS += include/hpctrain/hpctrain.h include/hpctrain/context.h \
	include/hpctrain/dataset.h include/hpctrain/train.h
include agent/cluster/local.mk
