"""Members of a cohort take turns at their steps."""

import random
import threading
import time

from tfstudy.training.cohort import ALONE, Cohort

K = 3


def run_together(member_of, count=K):
    """Start members, which each get their number, and wait for them."""
    cohort, all_started = Cohort(), threading.Event()

    def start(number):
        return cohort.start(lambda member: (all_started.wait(), member_of(member, number)), count)

    threads = [start(number) for number in range(count)]
    all_started.set()
    for thread in threads:
        thread.join()


def test_between_two_steps_of_a_member_every_other_takes_one():
    steps = []
    run_together(lambda member, number: [member.step(lambda: steps.append(number)) for _ in range(3)])
    assert steps == [0, 1, 2] * 3


def test_a_member_that_ends_early_leaves_the_others_to_their_steps():
    steps = []
    run_together(lambda member, number: [member.step(lambda: steps.append(number)) for _ in range(3 - number)])
    assert steps == [0, 1, 2, 0, 1, 0]


def test_a_member_that_joins_later_takes_part():
    steps, threads, cohort = [], [], Cohort()

    def member(me, number):
        for _ in range(3):
            me.step(lambda: steps.append(number))
            if steps == [0]:
                threads.append(cohort.start(lambda me: member(me, 1)))

    threads.append(cohort.start(lambda me: member(me, 0)))
    for thread in threads:
        thread.join()
    assert steps == [0, 0, 1, 0, 1, 1]


def test_only_one_member_runs_at_a_time_and_only_its_time_counts():
    seconds, inside = [], []

    def member(me, number):
        start = me.seconds()
        for _ in range(3):
            me.step(lambda: inside.append(number))
            before = len(inside)
            time.sleep(0.02)
            assert len(inside) == before
        seconds.append(me.seconds() - start)

    began = time.monotonic()
    run_together(member)
    assert all(0.06 <= own < 0.12 for own in seconds)
    assert sum(seconds) <= time.monotonic() - began


def test_each_member_draws_its_own_random_numbers():
    drawn = {}

    def member(me, number):
        random.seed(number)
        drawn[number] = [me.step(random.random) for _ in range(4)]

    run_together(member)
    for number, values in drawn.items():
        expected = random.Random(number)
        assert values == [expected.random() for _ in range(4)]


def test_a_run_alone_computes_its_step_at_once():
    assert ALONE.step(lambda: 3) == 3
    assert ALONE.size == 1
    assert ALONE.shared is None
