//! What a room promises holds in every state of a small world; and where a rule of the room does not hold, that is found.
#![allow(missing_docs, clippy::pedantic)]

use anteroom_model::{Broken, World, worlds};
use stateright::{Checker, HasDiscoveries, Model};

/// Looks at every state: they are this many at least. In one of them a limit is reached, so it was tried.
fn holds(world: World, least: usize) {
    let checker = world.checker().spawn_dfs().join();
    let states = checker.unique_state_count();
    println!("{states} states");
    assert!(checker.is_done());
    checker.assert_properties();
    assert!(states >= least, "only {states}");
}

/// Finds how a room without one of its rules comes to break its promise.
fn breaks(world: World, broken: Broken, promise: &str) {
    let world = World { broken: Some(broken), ..world };
    let checker = world.checker().finish_when(HasDiscoveries::AnyFailures).spawn_dfs().join();
    assert!(checker.discoveries().contains_key(promise), "nothing is found");
}

const ACTIVE: &str = "no more users are active than the limit";
const ONCE: &str = "nobody is counted twice";

#[test]
fn one_slot_is_given_once_while_calls_are_late_or_twice_and_objects_forget() {
    holds(worlds::giving(1, 1), 5_000);
}

#[test]
fn two_slots_are_given_once_while_calls_are_late() {
    holds(worlds::giving(2, 0), 5_000);
}

#[test]
fn what_lies_in_a_stock_is_not_given_to_others() {
    holds(worlds::stock(0), 15_000);
}

#[test]
fn a_minutes_limit_holds_at_its_edge() {
    holds(worlds::edge_of_a_minute(0), 30_000);
}

#[test]
fn a_session_that_is_renewed_at_its_end_keeps_its_slot() {
    holds(worlds::renewals(0), 20_000);
}

#[test]
fn a_session_that_the_origin_ends_frees_its_slot_once() {
    holds(worlds::revocations(0), 5_000);
}

#[test]
fn whom_only_the_pool_knows_is_not_forgotten() {
    holds(worlds::uncounted(0), 1_000);
}

#[test]
fn reports_count_once_while_they_are_late() {
    holds(worlds::reports(0), 80_000);
}

#[test]
fn check_ins_count_once_while_their_reports_are_late() {
    holds(worlds::check_ins(0), 10_000);
}

#[test]
fn an_old_report_after_a_new_one_changes_nothing() {
    holds(worlds::late_reports(0), 5_000);
}

#[test]
fn whom_global_has_not_heard_of_yet_is_not_forgotten() {
    holds(worlds::first_reports(), 200);
}

#[test]
fn nobody_enters_against_an_order_though_objects_forget() {
    holds(worlds::orders(1), 1_000);
}

#[test]
fn what_was_used_must_be_told() {
    breaks(worlds::uncounted(0), Broken::UsedIsUntold, ACTIVE);
}

#[test]
fn a_new_start_of_a_counter_must_be_known_for_one() {
    breaks(worlds::uncounted(1), Broken::EpochIsLost, ACTIVE);
}

#[test]
fn what_was_given_must_be_written_before() {
    breaks(worlds::giving(1, 1), Broken::WritesAreLost, ACTIVE);
}

#[test]
fn a_call_that_was_overtaken_must_be_known_by_its_number() {
    breaks(worlds::giving(3, 0), Broken::CallsAreRenumbered, ACTIVE);
}

#[test]
fn a_report_that_was_overtaken_must_be_known_by_its_number() {
    breaks(worlds::late_reports(0), Broken::ReportsAreRenumbered, ACTIVE);
}

#[test]
fn a_check_in_that_comes_twice_must_be_known_by_its_number() {
    breaks(worlds::check_ins(1), Broken::CheckInsAreRenumbered, ONCE);
}

#[test]
fn an_order_must_reach_the_data_centers() {
    breaks(worlds::orders(0), Broken::OrdersAreLost, "nobody enters against an order");
}
