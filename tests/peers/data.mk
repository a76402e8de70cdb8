# Data sets, read by us and by numpy, Keras and TensorFlow.
check_PROGRAMS += tests/peers/data_dump
tests_peers_data_dump_SOURCES = tests/peers/data_dump.c
tests_peers_data_dump_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
tests_peers_data_dump_LDADD = $(hpct_parts)
EXTRA_DIST += tests/peers/data.t tests/peers/data_peers.py
# Augmentation against Keras' layers.
check_PROGRAMS += tests/peers/augment
tests_peers_augment_SOURCES = tests/peers/augment.c tests/peers/peers.h
tests_peers_augment_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
tests_peers_augment_LDADD = $(hpct_parts)
EXTRA_DIST += tests/peers/augment.py
