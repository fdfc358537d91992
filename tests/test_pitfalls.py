"""What goes wrong with Kubernetes, its client, pytest and readers of JUnit, and what proves that we cope.

Each of the 70 known pitfalls has tests, or a reason why it cannot occur here, or both.
"""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Pitfall:
    title: str
    tests: tuple[str, ...] = ()  # module::function
    reason: str = ""


def known(title: str, *tests: str, reason: str = "") -> Pitfall:
    return Pitfall(title, tuple(f"tests/{each}" for each in tests), reason)


CLIENT, WATCH, LOGS = "cluster/test_client.py", "cluster/test_watch.py", "cluster/test_logs.py"
PODS, FAULTS, CLEANUP = "cluster/test_pods.py", "run/test_faults.py", "run/test_cleanup.py"
KINDS, RENDER = "run/test_kinds.py", "plan/test_render.py"
RENDER_KINDS, JUDGE = "plan/test_render_kinds.py", "judge/test_group.py"
XDIST, CERTIFY = "plugin/test_xdist.py", "plugin/test_certification.py"
METRICS, JUNIT, TEXT = (
    "report/test_metrics_junit.py", "report/test_junit.py", "report/test_text.py",
)  # fmt: skip
RECORDED, LOGTEXT = "cluster/workloads/test_recorded.py", "measure/test_logtext.py"
INDEXED, SPOOL = "cluster/workloads/test_indexed_job.py", "cluster/test_logspool.py"
CLIENTS = "integration/test_clients.py::test_run_gives_the_same_figures_through_each_client"

PITFALLS = {
    # The Python client
    1: known("a log comes as the text of its bytes", f"{CLIENT}::test_a_log_is_the_very_bytes_that_were_sent", CLIENTS),
    2: known("the client refuses manifests that servers take", f"{CLIENT}::test_a_manifest_reaches_the_server_unchanged", f"{RENDER}::test_render_holds_only_strings_where_kubernetes_wants_strings", CLIENTS),
    3: known("signatures change with each generation", CLIENTS, "test_pitfalls.py::test_client_is_used_in_one_place_and_only_for_its_connections"),
    4: known("an unexpected null or value breaks a whole list", f"{CLIENT}::test_an_object_with_null_lists_and_unknown_values_is_read_as_it_is", "cluster/test_inventory.py::test_facts_of_a_misshapen_node_are_empty_and_never_an_exception", "embedded/test_faults.py::test_objects_in_strange_shapes"),
    5: known("models make large lists slow", "cluster/test_inventory.py::test_thousand_nodes_are_read_in_seconds_and_kept_small", f"{WATCH}::test_the_bulk_of_a_node_is_not_kept"),
    6: known("a log line that is JSON is written anew", f"{CLIENT}::test_a_log_is_the_very_bytes_that_were_sent"),
    7: known("a log that is not UTF-8", f"{LOGS}::test_hostile_bytes_pass_unharmed", f"{LOGTEXT}::test_undecodable_bytes_are_counted_and_replaced"),
    8: known("a followed log that says nothing for long", f"{LOGS}::test_a_silent_container_is_not_a_dead_one", "embedded/test_faults.py::test_delay_is_before_the_headers"),
    9: known("a forgotten version is asked for without pause", f"{WATCH}::test_watches_that_break_at_once_do_not_storm_the_server", f"{WATCH}::test_after_any_break_a_new_list_tells_what_was_missed", f"{CLIENT}::test_list_starts_over_when_a_page_expired"),
    10: known("a dead connection that nobody notices", f"{WATCH}::test_a_black_hole_is_left_within_the_silence_allowed", f"{WATCH}::test_stop_ends_a_silent_watch_at_once"),
    11: known("a watch that just ends", f"{WATCH}::test_after_any_break_a_new_list_tells_what_was_missed"),
    12: known("a watch that breaks in mid line", f"{WATCH}::test_after_any_break_a_new_list_tells_what_was_missed", f"{CLIENT}::test_a_get_survives_503_resets_and_lost_answers"),
    13: known("error events without a code, and rubbish", f"{WATCH}::test_after_any_break_a_new_list_tells_what_was_missed", "embedded/test_faults.py::test_error_event_ends_a_watch_with_and_without_a_code"),
    14: known("a version from the future", f"{CLIENT}::test_too_large_a_resource_version_is_only_a_matter_of_time"),
    15: known("events twice, deletions missed, names that come again", f"{WATCH}::test_after_any_break_a_new_list_tells_what_was_missed", f"{FAULTS}::test_job_replaced_by_a_namesake_has_vanished_and_the_namesake_stays"),
    16: known("the client asks for a log with a watch's parameters", "test_pitfalls.py::test_client_is_used_in_one_place_and_only_for_its_connections"),
    17: known("a client that sends no credentials", f"{CLIENT}::test_every_request_carries_the_token", "embedded/test_process.py::test_request_without_the_token_is_unauthorized", "test_pitfalls.py::test_clients_that_lose_credentials_are_not_accepted"),
    18: known("tokens that expire", f"{CLIENT}::test_a_rotated_token_is_read_again_for_every_kind_of_request", f"{CLIENT}::test_refusal_of_credentials_that_passes_does_no_harm", f"{CLIENT}::test_kubeconfig_that_is_just_being_written_is_read_again", f"{FAULTS}::test_watch_that_is_refused_for_a_moment_does_no_harm", "plugin/test_outages.py::test_one_401_or_404_of_each_kind_costs_nothing"),
    19: known("what is tried again depends on the verb", f"{CLIENT}::test_a_create_whose_answer_was_lost_is_adopted", f"{CLIENT}::test_a_server_that_asks_for_patience_gets_it", f"{CLIENT}::test_a_server_that_stays_away_is_given_up_when_the_budget_ends", "integration/test_outages.py::test_api_server_killed_for_20_s_costs_nothing_of_the_evidence"),
    20: known("a last line without a newline is dropped", f"{LOGS}::test_a_last_line_without_newline_is_kept", f"{LOGTEXT}::test_last_line_without_newline_is_read"),
    21: known("pools that are too small, threads and sockets that stay", f"{CLIENT}::test_streams_leave_no_socket_behind", f"{CLIENT}::test_connections_are_used_again"),
    22: known("a client shared over a fork", f"{CLIENT}::test_a_forked_child_has_a_connection_of_its_own"),
    23: known("a discovery cache that processes write together", "test_pitfalls.py::test_client_is_used_in_one_place_and_only_for_its_connections", f"{CLIENT}::test_serves_asks_for_the_version_that_we_speak"),
    24: known("temporary certificates that a cleaner takes", f"{CLIENT}::test_certificate_files_that_vanish_are_written_again"),
    25: known("certificates that only a strict Python refuses", f"{CLIENT}::test_certificate_that_only_strict_checks_refuse_is_told_as_such", "embedded/test_process.py::test_certificate_passes_the_strictest_verification"),
    26: known("proxies", f"{CLIENT}::test_a_loopback_server_is_reached_past_a_dead_proxy", f"{CLIENT}::test_the_proxy_of_the_kubeconfig_is_used"),
    27: known("logs cannot be asked for from an exact moment", f"{LOGS}::test_a_stream_cut_at_random_a_hundred_times_gives_the_very_same_bytes", f"{SPOOL}::test_resume_after_a_clock_that_was_set_back_expects_all_later_times_too", f"{SPOOL}::test_join_is_the_source_or_says_that_it_may_not_be"),
    # Logs in Kubernetes itself
    28: known("long lines come in pieces", f"{LOGTEXT}::test_line_longer_than_the_runtimes_record_is_joined_again", f"{SPOOL}::test_join_takes_the_later_half_of_a_long_line_for_what_it_is", "simulator/test_logfaults.py::test_long_line_becomes_records_with_a_time_each"),
    29: known("rotation silences a follower", f"{LOGS}::test_a_stream_silenced_by_rotation_is_opened_anew", "simulator/test_logbuffer.py::test_log_that_is_stuck_starves_followers_but_not_new_reads"),
    30: known("the beginning is rotated away", f"{LOGS}::test_lines_lost_to_rotation_are_a_gap_that_is_known", f"{LOGS}::test_rotation_that_lost_nothing_is_a_gap_all_the_same_for_nothing_proves_it", "campaign/test_logs.py::test_log_is_the_source_or_the_item_is_inconclusive"),
    31: known("rotation inside a record", "simulator/test_logfaults.py::test_small_log_files_rotate_in_the_middle_of_a_burst", "campaign/test_logs.py::test_log_is_the_source_or_the_item_is_inconclusive"),
    32: known("a stream that ends early, or never", f"{LOGS}::test_a_stream_that_never_ends_is_left_once_the_container_has_ended", f"{LOGS}::test_a_final_read_that_ends_early_without_a_sign_is_repeated"),
    33: known("lines that come twice", f"{LOGS}::test_500_identical_lines_in_one_second_are_500_after_cuts", f"{SPOOL}::test_join_adds_what_is_new_and_never_doubts_too_little"),
    34: known("pod or log gone before it was read", f"{LOGS}::test_a_pod_that_is_gone_leaves_an_incomplete_log", f"{LOGS}::test_an_evicted_pod_has_no_log_left", f"{RENDER}::test_render_container_has_gpus_shared_memory_scripts_and_last_words", f"{FAULTS}::test_failed_job_that_deletes_its_other_pods_is_a_failure_not_a_loss"),
    35: known("a container that has not started, or a foreign one beside it", f"{LOGS}::test_a_container_that_has_not_started_is_waited_for", f"{PODS}::test_facts_of_a_pod_with_a_sidecar_are_those_of_the_main_container"),
    36: known("a restarted container", f"{LOGS}::test_a_restarted_container_is_read_as_the_previous_one", f"{LOGS}::test_a_container_that_restarted_twice_has_lost_its_first_log", f"{RENDER}::test_render_pods_run_once_on_exactly_the_groups_nodes"),
    37: known("a kubelet that does not answer", f"{LOGS}::test_a_sick_kubelet_makes_the_log_unavailable_and_names_the_node", f"{FAULTS}::test_log_that_cannot_be_read_is_a_problem_even_of_a_success"),
    38: known("output of several ranks mixed, buffered or doubled", "measure/test_bandwidth.py::test_prefixes_and_noise_change_no_number", "measure/test_bandwidth.py::test_ranks_of_a_launcher_that_each_print_a_table_are_several", f"{JUDGE}::test_judge_group_two_tables_are_inconclusive", f"{JUDGE}::test_judge_group_fewer_ranks_are_told_once_with_both_numbers"),
    39: known("stdout and stderr in any order", "measure/test_bandwidth.py::test_lines_of_a_table_are_found_in_noise_of_any_amount"),
    # Jobs, pods and nodes
    40: known("a Job ends in two steps", f"{FAULTS}::test_job_in_two_steps_is_over_only_at_the_second", f"{INDEXED}::test_only_a_terminal_condition_is_an_end"),
    41: known("counts of pods that prove nothing", f"{INDEXED}::test_counts_of_pods_are_no_end", f"{JUDGE}::test_judge_group_job_that_succeeded_at_a_second_try_passes_with_a_warning"),
    42: known("pods that wait for ever", f"{FAULTS}::test_bad_start_fails_long_before_the_start_deadline", f"{FAULTS}::test_unschedulable_pod_gives_the_schedulers_words_at_the_start_deadline", f"{FAULTS}::test_image_error_that_passes_is_no_problem"),
    43: known("eviction and preemption", f"{FAULTS}::test_evicted_pod_is_named_and_the_wait_is_bounded", f"{FAULTS}::test_eviction_explains_a_job_that_fails_after_it", f"{PODS}::test_what_was_taken_from_a_pod_is_told_apart_from_what_it_did"),
    44: known("retries that nobody sees", f"{RENDER}::test_render_job_is_indexed_and_never_retries_or_stays", f"{RENDER_KINDS}::test_render_no_operator_retries_and_no_log_is_deleted_early"),
    45: known("GPUs that are gone at admission, success that flips", f"{PODS}::test_an_admission_error_names_the_node_and_the_devices_missing", f"{FAULTS}::test_pod_that_flips_to_failed_after_success_keeps_its_success", f"{FAULTS}::test_job_that_fails_because_a_pod_flips_after_success_has_lost_that_pod"),
    46: known("MPIJob", f"{KINDS}::test_mpi_job_ends_with_its_launcher_while_workers_run_on", f"{RENDER_KINDS}::test_render_mpi_job_waits_for_its_workers_and_keeps_them", f"{RECORDED}::test_an_evicted_worker_fails_an_mpi_job_whose_launcher_still_runs"),
    47: known("JobSet", f"{RECORDED}::test_what_a_restart_made_has_the_place_of_what_went_before", f"{RECORDED}::test_a_set_keeps_its_own_words_beside_those_of_its_job"),
    48: known("TrainJob", f"{RECORDED}::test_a_resumed_train_job_with_a_condition_has_not_ended", f"{RECORDED}::test_a_train_job_without_its_runtime_never_gets_a_condition", f"{KINDS}::test_a_train_job_whose_runtime_never_gets_known_is_an_error"),
    49: known("a queue that holds the workload back", f"{FAULTS}::test_suspended_job_waits_without_a_deadline", f"{RECORDED}::test_a_suspended_workload_is_held_until_it_is_resumed"),
    50: known("host names of pods", f"{RENDER}::test_render_creates_scripts_and_service_before_the_job", f"{RENDER}::test_render_service_publishes_pods_before_they_are_ready", f"{RENDER_KINDS}::test_render_longest_pod_name_is_a_dns_label"),
    51: known("a Job that its time to live takes", f"{RENDER}::test_render_job_is_indexed_and_never_retries_or_stays", f"{FAULTS}::test_vanished_job_is_told", f"{CLIENT}::test_delete_of_what_is_gone_is_done"),
    52: known("a delete that leaves pods", f"{CLIENT}::test_delete_names_uid_and_propagation_in_body_and_query", f"{CLIENT}::test_delete_leaves_a_namesake_alone", f"{CLEANUP}::test_sweep_pods_that_keep_their_gpus_are_told_with_node_and_number", "plugin/test_outages.py::test_pod_that_will_not_go_makes_the_run_an_error_with_the_gpus_that_it_holds"),
    53: known("namespaces and finalizers that stick", "embedded/test_deletion.py::test_finalizer_holds_an_object_until_it_is_taken_off", reason="a run makes no namespace and takes off no finalizer; what sticks is left over and told"),
    54: known("events that expire, merge or lack a time", "run/test_facts.py::test_events_of_every_shape_have_count_and_time", "run/test_facts.py::test_events_of_other_objects_are_left_out"),
    55: known("nodes that change while they are tested", "run/test_health.py::test_change_of_a_node_while_it_runs_is_found", "run/test_health.py::test_cordon_while_it_runs_is_a_hardware_failure_by_the_default_rule"),
    # pytest
    56: known("Ctrl-C, once and again", f"{CERTIFY}::test_interrupt_writes_reports_and_leaves_nothing", "plugin/test_outages.py::test_ctrl_c_again_costs_neither_reports_nor_clean_up"),
    57: known("Ctrl-C while something is created", "run/test_workflow.py::test_workflow_object_is_in_the_ledger_before_it_is_created", f"{CLEANUP}::test_sweep_deletes_what_the_ledger_announced_though_its_create_was_never_answered"),
    58: known("SIGTERM ends pytest without a word", f"{CERTIFY}::test_interrupt_writes_reports_and_leaves_nothing"),
    59: known("time-outs of a plugin that end the process", f"{FAULTS}::test_job_that_never_ends_is_a_run_timeout_with_its_log_so_far", "run/test_ledger.py::test_ledger_survives_kill_of_its_process", "run/test_embedded.py::test_sweep_after_kill_minus_9_leaves_nothing_and_spares_another_run", reason="every item has deadlines of its own, so no such plugin is needed; a process that one ends is cleaned up after as one that was killed"),
    60: known("a worker that is killed", f"{XDIST}::test_killed_worker_is_an_error_everywhere_and_its_job_is_deleted", f"{CLEANUP}::test_sweep_of_one_process_spares_what_the_run_shares_and_what_others_made"),
    61: known("an interrupt that reaches workers and controller", f"{XDIST}::test_ctrl_c_reports_the_items_in_flight_and_leaves_nothing", f"{XDIST}::test_workers_whose_controller_was_killed_delete_what_they_made"),
    62: known("what workers do not hand on", f"{XDIST}::test_workers_give_the_report_of_one_process", f"{XDIST}::test_workers_give_the_junit_files_of_one_process", "run/test_leases.py::test_two_processes_of_one_run_never_hold_the_lease_together"),
    63: known("long silence, and output after capture has ended", "test_progress.py::test_display_elsewhere_writes_one_plain_line_a_minute"),
    # JUnit XML and its readers
    64: known("characters that XML cannot hold", f"{TEXT}::test_clean_any_text_is_legal_in_xml_and_cleaning_again_changes_nothing", f"{JUNIT}::test_case_properties_every_name_is_unique_and_of_the_allowed_alphabet", f"{METRICS}::test_render_metrics_junit_hostile_text_survives"),
    65: known("files that are too large", f"{TEXT}::test_clipped_any_text_fits_into_any_size", "report/test_failure.py::test_failure_text_hostile_log_and_reasons_stay_short_and_clean", "report/test_failure.py::test_failure_text_many_groups_are_counted_not_listed"),
    66: known("names that stand twice", "catalog/test_loader.py::test_name_that_stands_in_two_catalogs_is_refused_with_both_places", f"{METRICS}::test_render_metrics_junit_two_tests_of_one_entry_have_names_of_their_own", f"{CERTIFY}::test_junit_class_names_are_those_of_the_suites"),
    67: known("properties that readers ignore", f"{METRICS}::test_render_metrics_junit_failure_text_holds_the_numbers_itself", f"{METRICS}::test_three_files_agree_number_by_number"),
    68: known("times that readers trip over", f"{METRICS}::test_render_metrics_junit_every_case_has_a_time_and_no_suite_says_disabled"),
    69: known("limits of GitHub's summaries and annotations", reason="no summary and no annotation is written for GitHub; the terminal's summary is bounded by itself"),
    70: known("attachments that are not shown", reason="no report refers to an attachment; figures, reasons and the end of the log stand in the text"),
}  # fmt: skip


@cache
def functions_of(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(each.name for each in tree.body if isinstance(each, ast.FunctionDef))


def test_every_pitfall_is_there_once():
    assert sorted(PITFALLS) == list(range(1, 71))
    titles = [each.title for each in PITFALLS.values()]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("number", sorted(PITFALLS))
def test_pitfall_has_tests_that_exist_or_a_reason(number):
    pitfall = PITFALLS[number]

    assert pitfall.tests or len(pitfall.reason) > 40
    for each in pitfall.tests:
        path, _, function = each.partition("::")
        assert function.startswith("test_")
        assert function in functions_of(path), each


def imports_of(path):
    """Yield what a file imports of the Kubernetes client, and what it names of it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{each.name}" for each in node.names)


def test_client_is_used_in_one_place_and_only_for_its_connections():
    found = {
        (path.name, name)
        for path in (ROOT / "pytest_cre").rglob("*.py")
        for name in imports_of(path)
        if name.partition(".")[0] == "kubernetes"
    }

    assert {name for _, name in found} <= {"kubernetes.client", "kubernetes.config"}
    assert {file for file, _ in found} <= {"transport.py", "kubeconfig.py"}


def test_clients_that_lose_credentials_are_not_accepted():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")

    for version in ("36.0.0", "36.0.1", "36.0.2"):
        assert f"!={version}" in text
