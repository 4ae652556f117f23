"""The memory ledger: nothing is granted twice, nobody in use has to go, and everybody's turn comes."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from inference import ModelTooLarge
from inference.ledger import Account, Decision, Ledger, NoSpareMemory

BUDGET = 100


class Models(RuleBasedStateMachine):
    """Models as their hosts play them: one that retires takes on nothing new, and goes once idle."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(lambda: BUDGET)
        self.num_asked = 0
        self.overdrawn_bytes = 0
        self.decision = Decision((), frozenset())

    # --- what a test may look at --------------------------------------------------------------

    def accounts(self) -> list[Account]:
        return list(self.ledger._accounts.values())

    def waiting(self) -> list[str]:
        return [a.name for a in self.accounts() if a.held_bytes is None]

    def staying(self) -> list[Account]:
        return [a for a in self.accounts() if a.held_bytes is not None and not a.is_leaving]

    # --- what hosts do ------------------------------------------------------------------------

    def decide(self) -> None:
        in_use = {a.name for a in self.accounts() if a.is_busy}
        self.decision = self.ledger.decide()
        for account in self.staying():
            if account.name in self.decision.retiring and not account.is_busy:
                assert account.name not in in_use
                self.ledger.leave(account.name)

    def ask_for(self, needed_bytes: int, model: str = "") -> None:
        self.num_asked += 1
        self.ledger.ask(f"m{self.num_asked}", needed_bytes, model)
        self.decide()

    @rule(needed_bytes=st.integers(1, BUDGET))
    def ask(self, needed_bytes: int) -> None:
        self.ask_for(needed_bytes)

    @precondition(lambda self: self.staying())
    @rule(data=st.data(), needed_bytes=st.integers(1, BUDGET))
    def ask_for_a_further_worker(self, data: st.DataObject, needed_bytes: int) -> None:
        """It is granted at once and costs nobody anything, or not at all."""
        model = data.draw(st.sampled_from(self.staying())).model
        is_anyone_waiting, retiring = bool(self.waiting()), self.decision.retiring
        is_free = self.ledger.held_bytes + needed_bytes <= BUDGET
        try:
            self.ask_for(needed_bytes, model)
        except NoSpareMemory:
            assert is_anyone_waiting or not is_free
        else:
            assert is_free
            assert not is_anyone_waiting
            assert f"m{self.num_asked}" in self.decision.granted
            assert self.decision.retiring <= retiring

    @rule(needed_bytes=st.integers(BUDGET + 1, 10 * BUDGET))
    def ask_for_too_much(self, needed_bytes: int) -> None:
        with pytest.raises(ModelTooLarge) as refusal:
            self.ask_for(needed_bytes)
        assert refusal.value.needed_bytes == needed_bytes
        assert refusal.value.available_bytes == BUDGET

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        self.ledger.close(data.draw(st.sampled_from(self.waiting())))
        self.decide()

    @precondition(lambda self: self.staying())
    @rule(data=st.data(), share=st.floats(0.1, 1.0), too_much_bytes=st.sampled_from((0, 0, 0, 30)))
    def load(self, data: st.DataObject, share: float, too_much_bytes: int) -> None:
        account = data.draw(st.sampled_from(self.staying()))
        held_bytes = int((account.held_bytes or 0) * share) + too_much_bytes
        self.ledger.settle(account.name, held_bytes)
        self.overdrawn_bytes = max(0, self.ledger.held_bytes - BUDGET)
        self.decide()

    @precondition(lambda self: self.staying())
    @rule(data=st.data(), is_used=st.booleans())
    def use_or_rest(self, data: st.DataObject, is_used: bool) -> None:
        account = data.draw(st.sampled_from(self.staying()))
        if not is_used:
            self.ledger.rest(account.name)
        elif account.name not in self.decision.retiring:
            self.ledger.use(account.name)
        self.decide()

    @precondition(lambda self: any(a.held_bytes is not None for a in self.accounts()))
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        """The end of a worker, as wanted or by a crash."""
        holders = [a.name for a in self.accounts() if a.held_bytes is not None]
        self.ledger.close(data.draw(st.sampled_from(holders)))
        self.decide()

    @precondition(lambda self: self.waiting())
    @rule(newcomers=st.lists(st.integers(1, BUDGET), max_size=4))
    def the_first_turn_comes(self, newcomers: list[int]) -> None:
        """It takes those who have to go and nobody else, whatever is asked meanwhile."""
        first, retiring = self.waiting()[0], self.decision.retiring
        for needed_bytes in newcomers:
            self.ask_for(needed_bytes)
        for name in retiring:
            self.ledger.close(name)
            self.decide()
        assert first not in self.waiting()

    # --- what always holds --------------------------------------------------------------------

    @invariant()
    def nothing_is_granted_twice(self) -> None:
        assert self.ledger.held_bytes <= BUDGET + self.overdrawn_bytes

    @invariant()
    def nobody_waits_without_a_reason(self) -> None:
        """Somebody has to go, or there is room for the first in the queue."""
        assert not self.waiting() or self.decision.retiring

    def teardown(self) -> None:
        """Once everybody comes to rest, all who waited have had their turn, in their order."""
        waiting, served = self.waiting(), []
        while self.waiting():
            before = self.waiting()
            for name in self.decision.retiring:
                self.ledger.close(name)
            self.decide()
            served += [name for name in before if name not in self.waiting()]
        assert sorted(served, key=waiting.index) == sorted(waiting, key=waiting.index)


Models.TestCase.settings = settings(deadline=None, max_examples=150, stateful_step_count=30)
test_models = Models.TestCase


def test_the_least_recently_used_of_the_idle_goes_first() -> None:
    ledger = Ledger(lambda: 30)
    for name in "abc":
        ledger.ask(name, 10)
    ledger.decide()
    for name in "cab":
        ledger.use(name)
    for name in "ab":
        ledger.rest(name)
    ledger.ask("d", 10)
    assert ledger.decide() == Decision((), frozenset("a"))
    ledger.ask("e", 20)
    assert ledger.decide() == Decision((), frozenset("abc")), "c is in use and comes last"


def test_a_further_worker_takes_what_is_free_and_nobody_makes_room_for_it() -> None:
    ledger = Ledger(lambda: 30)
    ledger.ask("a", 10, "a")
    ledger.ask("b", 10, "b")
    ledger.decide()
    ledger.ask("a (2)", 10, "a")
    assert ledger.decide().granted == ("a (2)",)
    ledger.rest("b")
    with pytest.raises(NoSpareMemory):
        ledger.ask("a (3)", 10, "a")
    assert ledger.decide() == Decision((), frozenset())


def test_a_further_worker_goes_before_the_only_one_of_another_model() -> None:
    ledger = Ledger(lambda: 30)
    for name, model in (("b", "b"), ("a", "a"), ("a (2)", "a")):
        ledger.ask(name, 10, model)
        ledger.decide()
    for name in ("b", "a (2)", "a"):
        ledger.use(name)
        ledger.rest(name)
    ledger.ask("c", 10)
    assert ledger.decide().retiring == {"a (2)"}, (
        "b has been idle for longer, but is all there is of it"
    )
    ledger.ask("d", 10)
    assert ledger.decide().retiring == {"a (2)", "b"}


def test_the_next_worker_of_a_model_waits_like_any_where_the_last_one_leaves() -> None:
    ledger = Ledger(lambda: 10)
    ledger.ask("a", 10, "a")
    ledger.decide()
    ledger.leave("a")
    ledger.ask("a (2)", 10, "a")
    assert ledger.decide() == Decision((), frozenset("a"))
    ledger.close("a")
    assert ledger.decide().granted == ("a (2)",)


def test_a_small_one_goes_ahead_only_where_it_costs_the_first_nothing() -> None:
    ledger = Ledger(lambda: 10)
    ledger.ask("busy", 6)
    ledger.ask("large", 8)
    ledger.ask("small", 2)
    ledger.ask("less small", 3)
    assert ledger.decide().granted == ("busy", "small")
    ledger.close("busy")
    assert ledger.decide().granted == ("large",)


def test_what_others_make_room_for_is_not_there_yet() -> None:
    """Those that small ones wait for may be busy for long: the first must not wait for them, too."""
    ledger = Ledger(lambda: 100)
    for number, needed_bytes in enumerate((1, 1, 1, 1, 2, 1)):
        ledger.ask(f"busy {number}", needed_bytes)
    ledger.ask("large", 94)
    assert ledger.decide().retiring == {"busy 0"}
    ledger.ask("small", 4)
    ledger.ask("smaller", 1)
    assert "smaller" not in ledger.decide().granted
    ledger.close("busy 0")
    assert ledger.decide().granted == ("large",)


def test_the_budget_is_measured_again_when_nobody_holds_any() -> None:
    """A web process that follows another may find the memory of its workers not yet given back."""
    budgets = iter((5, 50))
    ledger = Ledger(lambda: next(budgets))
    with pytest.raises(ModelTooLarge, match="all models together"):
        ledger.ask("model", 10)
    ledger.ask("model", 10)
    ledger.ask("another", 40)
    assert ledger.decide().granted == ("model", "another")


def test_the_budget_is_measured_again_before_somebody_has_to_go() -> None:
    """What others on the machine gave back since is for models, too; it never shrinks below them."""
    budgets = iter((20, 50, 30))
    ledger = Ledger(lambda: next(budgets))
    ledger.ask("first", 10)
    ledger.ask("second", 10)
    assert ledger.budget_bytes() == 20
    ledger.ask("large", 30)
    assert ledger.decide() == Decision(("first", "second", "large"), frozenset())
    with pytest.raises(ModelTooLarge) as refusal:
        ledger.ask("too large", 60)
    assert refusal.value.available_bytes == 50
