# Fuzz targets of agent/data and agent/comm.
fuzz_targets += tests/fuzz/fuzz_frame tests/fuzz/fuzz_idx tests/fuzz/fuzz_npy tests/fuzz/fuzz_npz
agent_fuzz_cppflags = $(AM_CPPFLAGS) -D_GNU_SOURCE $(LIBARCHIVE_CFLAGS)
agent_fuzz_libs = $(hpct_parts) $(LIBARCHIVE_LIBS)

tests_fuzz_fuzz_frame_SOURCES = tests/fuzz/fuzz_frame.c $(fuzz_driver)
tests_fuzz_fuzz_frame_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_frame_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_frame_LDADD = $(agent_fuzz_libs)
tests_fuzz_fuzz_idx_SOURCES = tests/fuzz/fuzz_idx.c $(fuzz_driver)
tests_fuzz_fuzz_idx_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_idx_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_idx_LDADD = $(agent_fuzz_libs)
tests_fuzz_fuzz_npy_SOURCES = tests/fuzz/fuzz_npy.c $(fuzz_driver)
tests_fuzz_fuzz_npy_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_npy_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_npy_LDADD = $(agent_fuzz_libs)
tests_fuzz_fuzz_npz_SOURCES = tests/fuzz/fuzz_npz.c $(fuzz_driver)
tests_fuzz_fuzz_npz_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_npz_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_npz_LDADD = $(agent_fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_cifar
tests_fuzz_fuzz_cifar_SOURCES = tests/fuzz/fuzz_cifar.c $(fuzz_driver)
tests_fuzz_fuzz_cifar_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_cifar_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_cifar_LDADD = $(agent_fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_picture
tests_fuzz_fuzz_picture_SOURCES = tests/fuzz/fuzz_picture.c $(fuzz_driver)
tests_fuzz_fuzz_picture_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_picture_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_picture_LDADD = $(agent_fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_pickle
tests_fuzz_fuzz_pickle_SOURCES = tests/fuzz/fuzz_pickle.c $(fuzz_driver)
tests_fuzz_fuzz_pickle_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_pickle_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_pickle_LDADD = $(agent_fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_slurm_text
tests_fuzz_fuzz_slurm_text_SOURCES = tests/fuzz/fuzz_slurm_text.c $(fuzz_driver)
tests_fuzz_fuzz_slurm_text_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_slurm_text_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_slurm_text_LDADD = $(agent_fuzz_libs)
fuzz_targets += tests/fuzz/fuzz_labels
tests_fuzz_fuzz_labels_SOURCES = tests/fuzz/fuzz_labels.c $(fuzz_driver)
tests_fuzz_fuzz_labels_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_labels_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_labels_LDADD = $(agent_fuzz_libs)
fuzz_targets += tests/fuzz/fuzz_listing
tests_fuzz_fuzz_listing_SOURCES = tests/fuzz/fuzz_listing.c $(fuzz_driver)
tests_fuzz_fuzz_listing_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_listing_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_listing_LDADD = $(agent_fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_tar
tests_fuzz_fuzz_tar_SOURCES = tests/fuzz/fuzz_tar.c $(fuzz_driver)
tests_fuzz_fuzz_tar_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_tar_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_tar_LDADD = $(agent_fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_manifest tests/fuzz/fuzz_part
tests_fuzz_fuzz_manifest_SOURCES = tests/fuzz/fuzz_manifest.c $(fuzz_driver)
tests_fuzz_fuzz_manifest_CPPFLAGS = $(agent_fuzz_cppflags) $(JANSSON_CFLAGS)
tests_fuzz_fuzz_manifest_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_manifest_LDADD = $(agent_fuzz_libs) $(JANSSON_LIBS)
tests_fuzz_fuzz_part_SOURCES = tests/fuzz/fuzz_part.c $(fuzz_driver)
tests_fuzz_fuzz_part_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_part_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_part_LDADD = $(agent_fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_node_text
tests_fuzz_fuzz_node_text_SOURCES = tests/fuzz/fuzz_node_text.c $(fuzz_driver)
tests_fuzz_fuzz_node_text_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_node_text_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_node_text_LDADD = $(agent_fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_ps_message
tests_fuzz_fuzz_ps_message_SOURCES = tests/fuzz/fuzz_ps_message.c $(fuzz_driver)
tests_fuzz_fuzz_ps_message_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_ps_message_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_ps_message_LDADD = $(agent_fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_proof
tests_fuzz_fuzz_proof_SOURCES = tests/fuzz/fuzz_proof.c $(fuzz_driver)
tests_fuzz_fuzz_proof_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_proof_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_proof_LDADD = $(agent_fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_class_weights
tests_fuzz_fuzz_class_weights_SOURCES = tests/fuzz/fuzz_class_weights.c $(fuzz_driver)
tests_fuzz_fuzz_class_weights_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_class_weights_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_class_weights_LDADD = $(agent_fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_rate_file
tests_fuzz_fuzz_rate_file_SOURCES = tests/fuzz/fuzz_rate_file.c $(fuzz_driver)
tests_fuzz_fuzz_rate_file_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_rate_file_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_rate_file_LDADD = $(agent_fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_live_report
tests_fuzz_fuzz_live_report_SOURCES = tests/fuzz/fuzz_live_report.c $(fuzz_driver)
tests_fuzz_fuzz_live_report_CPPFLAGS = $(agent_fuzz_cppflags)
tests_fuzz_fuzz_live_report_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_live_report_LDADD = $(agent_fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_report
tests_fuzz_fuzz_report_SOURCES = tests/fuzz/fuzz_report.c $(fuzz_driver)
tests_fuzz_fuzz_report_CPPFLAGS = $(agent_fuzz_cppflags) $(JANSSON_CFLAGS)
tests_fuzz_fuzz_report_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_report_LDADD = $(agent_fuzz_libs)
