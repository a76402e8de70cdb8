# base/: what every part stands on (status and message, headway, loops for each instruction set); depends on libc alone.
noinst_LTLIBRARIES += base/libbase.la
base_libbase_la_SOURCES = base/fp16.h base/headway.c base/headway.h base/status.c base/status.h base/variants.h
hpctrain_HEADERS += include/hpctrain/status.h
