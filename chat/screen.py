"""What policies say about the texts of one answer, and what becomes of that."""

import hashlib
import logging
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from time import monotonic
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext

from chat import cooling, decisions, metrics, moderating, refusals
from chat.asking import AnswerRequest
from chat.blackening import blackened, can_be_taken_out, matches, without_secrets
from chat.events import Failed, Refused, Started
from chat.json_texts import texts_of
from chat.off_loop import off_loop_if_long
from chat.outcomes import Failures, Outcome
from chat.policies_in_force import Chosen, InForce, chosen_for
from chat.prompt_plan import Exchange
from chat.storable import storable
from moderation.categories import Scores, worst
from moderation.classifiers.screener import Screening
from moderation.decision_models import OUR_OWN
from moderation.models import Decision, Review
from moderation.policies import Policy, Reason, Stage, Verdict, by_strength, rank
from moderation.text_hashes import text_hash, text_hashes

logger = logging.getLogger(__name__)

MAX_KEPT_CHARS = 20_000  # of a text for those who review it
_MAX_KNOWN = 4_096
_known: OrderedDict[bytes, Scores] = OrderedDict()  # by a hash of the user and the text
_taken_out: OrderedDict[tuple[bytes, str, float], bool] = OrderedDict()  # whether it can be
_OF_ANSWERED = ("title", "summary")  # what a model was told before, with its author's word
SAME_TEXT_S = 60.0
_struck: OrderedDict[bytes, float] = OrderedDict()  # by the same hash: when it was counted


class Screen:
    """Of one answer. Its policies are those that were in force when it was asked for."""

    def __init__(self, request: AnswerRequest, chosen: Chosen, is_raw: bool = False) -> None:
        self.request = request
        self.is_raw = is_raw  # a prompt of token ids, out of which nothing can be taken
        self.chosen = chosen
        self._begun = frozenset(texts_of(request.begun))  # gone on with as it is, or not at all
        self._own = _own_words(request)
        self.is_let_in = False  # who asks need not wait (must_wait)
        self._partly: dict[bytes, tuple[Scores, Screening]] = {}  # what not all have judged

    def judges(self, stage: Stage) -> bool:
        return self.chosen.judges(stage)

    def decides(self, stage: Stage) -> bool:
        return self.chosen.decides(stage)

    def may_stop(self, stage: Stage) -> bool:
        return self.chosen.may_stop(stage)

    # --- judging ----------------------------------------------------------------------------------

    async def judge(self, stage: Stage, texts: Sequence[str]) -> Outcome:
        """Never raises for a classifier that is away: the policy says what follows."""
        texts = [text for text in texts if text.strip()]
        if not texts or not self.judges(stage):
            return Outcome()
        started_s = monotonic()
        scored, failed = await self._scored(texts)
        pairs = tuple(zip(texts, scored, strict=False))
        outcome = await self._decided(stage, pairs, failed)
        if failed:
            logger.warning("texts were not judged by all: %s", failed)
        action = outcome.verdict.action
        metrics.judged(stage, action, (one["classifier"] for one in failed))
        took_ms = (monotonic() - started_s) * 1e3
        return replace(outcome, worst_text=outcome.worst_text or texts[-1], took_ms=took_ms)

    async def blocked(
        self, stage: Stage, groups: Mapping[str, Sequence[str]]
    ) -> dict[str, Outcome]:
        """The groups of texts that the deciding policy blocks, each by itself. Nothing is counted, and
        what could not be judged is passed over."""
        texts = list(dict.fromkeys(t for own in groups.values() for t in own if t.strip()))
        found, _ = await self._scored(texts) if texts else ([], ())
        scored = dict(zip(texts, found, strict=False))
        if (await self._outcome(stage, list(scored.items()), ())).stop != "block":
            return {}
        outcomes = {
            name: await self._decided(stage, [(t, scored[t]) for t in own if t in scored], ())
            for name, own in groups.items()
        }
        return {name: outcome for name, outcome in outcomes.items() if outcome.stop == "block"}

    async def _decided(
        self, stage: Stage, pairs: Sequence[tuple[str, Scores]], failed: Failures
    ) -> Outcome:
        """What the deciding policy says. A question that it would stop is let pass for what a reviewer
        has found it wrongly stopped for."""
        outcome = await self._outcome(stage, pairs, failed)
        if stage != "input" or not outcome.stop or not pairs:
            return outcome
        hashes = {text: text_hashes(self.request.user, text) for text, _ in pairs}
        passes = await decisions.overturned(self.request.user, list(chain(*hashes.values())))
        if not passes:
            return outcome
        left = [
            (
                text,
                {**scores, **{name: 0.0 for one in hashes[text] for name in passes.get(one, ())}},
            )
            for text, scores in pairs
        ]
        return replace(await self._outcome(stage, left, failed), scores=outcome.scores)

    async def _outcome(
        self, stage: Stage, pairs: Sequence[tuple[str, Scores]], failed: Failures
    ) -> Outcome:
        deciding, verdict = self.chosen.deciding, Verdict()
        if deciding is not None:
            redacts = deciding.policy.redacts(stage)
            num_chars = sum(len(text) for text, _ in pairs) if redacts else 0
            verdict = await off_loop_if_long(
                num_chars, self._verdict, deciding.policy, stage, pairs, failed
            )
        about = verdict.reasons[0].category if verdict.reasons else None
        text = max(pairs, key=lambda one: one[1][about])[0] if about else ""
        scores = worst([one for _, one in pairs]) if pairs else {}
        return Outcome(verdict, scores, tuple(pairs), text, failed)

    def _verdict(
        self, policy: Policy, stage: Stage, texts: Sequence[tuple[str, Scores]], failed: Failures
    ) -> Verdict:
        scores = worst([scores for _, scores in texts]) if texts else {}
        verdict = policy.verdict(stage, scores, has_failed=bool(failed))
        reasons = [self._possible(one, stage, texts) for one in verdict.reasons]
        if not reasons:
            return verdict
        reasons.sort(key=by_strength)
        return replace(verdict, action=reasons[0].action, reasons=tuple(reasons))

    def _possible(
        self, reason: Reason, stage: Stage, texts: Sequence[tuple[str, Scores]]
    ) -> Reason:
        """What cannot be done becomes the next that is stricter: to redact where no rule has matched, or
        something in disguise, and to ask where nobody is there to be asked."""
        action = reason.action
        name, at = reason.category, reason.threshold
        about = [text for text, scores in texts if scores[name] >= at]
        is_fixed = stage == "input" and (self.is_raw or not self._begun.isdisjoint(about))
        if action == "redact" and (
            is_fixed or not all(self._can_be_taken_out(one, name, at) for one in about)
        ):
            action = "block"
        is_confirmed = "input" in self.request.confirmed or self._are_confirmed(about)
        is_settled = is_confirmed or self.request.source in _OF_ANSWERED
        if action == "ask" and stage == "input" and is_settled:
            action = "note"
        elif action == "ask" and (stage != "input" or self.request.source != "chat"):
            action = "block"
        return replace(
            reason, action=action, wanted=reason.action if action != reason.action else ""
        )

    def _can_be_taken_out(self, text: str, category: str, at: float) -> bool:
        """Looked up once: earlier texts come again with each question. Threads share what is known."""
        key = self._key(text), category, at
        can_be = _taken_out.pop(key, None)
        if can_be is None:
            can_be = can_be_taken_out(text, category, at)
        _taken_out[key] = can_be
        if len(_taken_out) > _MAX_KNOWN:
            _taken_out.popitem(last=False)
        return can_be

    def _are_confirmed(self, about: Sequence[str]) -> bool:
        """Of a question that was joined of several, those that it is about count in its place."""
        plan, known = self.request.plan, self.request.confirmed_texts
        if not about or not known:
            return False
        joined = {one.question: one.questions for one in plan.exchanges} if plan else {}
        texts = [one for one in about if set(about).isdisjoint(joined.get(one, ()))]
        return not any(known.isdisjoint(text_hashes(self.request.user, text)) for text in texts)

    async def _scored(self, texts: Sequence[str]) -> tuple[list[Scores], Failures]:
        """Without any scores where nothing is known and nobody could be asked; else zeros of what nobody
        has judged. What not all have judged is kept for this answer alone, so that one that is away is
        waited for once."""
        keys = [self._key(text) for text in texts]
        found = {key: _known[key] for key in keys if key in _known}
        unknown = {
            key: text
            for key, text in zip(keys, texts, strict=True)
            if key not in found and key not in self._partly
        }
        if unknown:
            screening = await moderating.screen(list(unknown.values()), self.request.caller)
            judged = zip(unknown, screening.scores, strict=True)
            if screening.failed:
                self._partly |= {key: (scores, screening) for key, scores in judged}
            else:
                found |= judged
        for key, scores in found.items():
            _known[key] = scores
            _known.move_to_end(key)
        while len(_known) > _MAX_KNOWN:
            _known.popitem(last=False)
        partly = {key: self._partly[key] for key in keys if key not in found}
        screenings = [screening for _, screening in partly.values()]
        failed = _failures(screenings)
        if not found and not any(screening.has_answer for screening in screenings):
            return [], failed
        found |= {key: scores for key, (scores, _) in partly.items()}
        return [found[key] for key in keys], failed

    def _key(self, text: str) -> bytes:
        """With the user, so that no time tells what others have written."""
        said = f"{self.request.user}\0{moderating.stamp()}\0{text}"
        return hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    # --- what follows -----------------------------------------------------------------------------

    def redacts(self, stage: Stage) -> bool:
        deciding = self.chosen.deciding
        return deciding is not None and deciding.policy.redacts(stage)

    def redacted(self, stage: Stage, text: str, begin: int = 0) -> str:
        """The text from character `begin` on, without what the policy takes out of texts of the stage: a
        sign for each match, also for the rest of one that began before."""
        return blackened(text, self._spans(stage, text), begin)

    def open_from(self, stage: Stage, text: str) -> int | None:
        """Where something begins that is taken out, and that may go on behind the end of the text: a key
        of many lines."""
        end = len(text.rstrip())
        return next((start for start, to in self._spans(stage, text) if to >= end), None)

    def _spans(self, stage: Stage, text: str) -> list[tuple[int, int]]:
        deciding = self.chosen.deciding
        if not self.redacts(stage) or deciding is None:
            return []
        own = deciding.policy.thresholds[stage]
        return [
            (match.start, match.end)
            for match in matches(text)
            if own.get(match.category, {}).get("redact", 2.0) <= match.probability
        ]

    async def decide(self, stage: Stage, outcome: Outcome) -> Refused | None:
        """Write down what was decided; what the reader is told, if the text is stopped."""
        deciding = self.chosen.deciding
        for trial in self.chosen.trials:
            self._try(trial, stage, outcome)
        is_judged = bool(outcome.scores or outcome.failed)
        if deciding is None or not deciding.policy.judges(stage) or not is_judged:
            return None
        verdict, stop = outcome.verdict, outcome.stop
        if stop is not None:
            # Nothing that does not go on waits for a review; if its author says yes, it is judged again.
            verdict = replace(verdict, action=stop)
        make = partial(self._decision, stage, outcome, deciding, verdict)
        if stop is None:
            decisions.keep_soon(make)
            return None
        decision = make()
        await decisions.keep(decision, self._points(stage, deciding, outcome))
        place = self._place_of(outcome) if stage == "input" else ""
        if stop == "ask":
            return refusals.asks(deciding.name, verdict.reasons, str(decision.pk), place)
        end = refusals.refused(stage, deciding.name, verdict.reasons, str(decision.pk), place)
        return replace(end, removes=stage == "output" and not deciding.policy.keeps_partial)

    def _place_of(self, outcome: Outcome) -> refusals.Place:
        """Where something was found, if that is not the question."""
        plan = self.request.plan
        about = set(_about(outcome.scored, outcome.verdict.reasons))
        if plan is None or not about:
            return ""
        asked = {t for one in plan.asked for t in (one.question, *one.questions)}
        if not asked.isdisjoint(about):
            return ""
        return "earlier" if about.isdisjoint((plan.system, plan.memory)) else "instructions"

    async def note_earlier(self, stopped: Mapping[str, Outcome]) -> None:
        """Write down once which earlier questions, by their ids, this version of the policy keeps from
        models: their author reads it and can appeal. A temporary chat leaves no traces."""
        deciding = self.chosen.deciding
        if deciding is None or self.request.source != "chat":
            return
        known = await decisions.noted(
            self.request.user, deciding.id, deciding.version, list(stopped)
        )
        for id_, outcome in stopped.items():
            if id_ not in known:
                decision = self._decision("input", outcome, deciding, outcome.verdict)
                decision.message_id = UUID(id_)
                await decisions.keep(decision)

    def _points(self, stage: Stage, deciding: InForce, outcome: Outcome) -> float:
        """Once for a text: several answers to it are asked for at once, and programs ask again. For what
        its author asks now, and nothing else that is read with it: instructions, answers, what tools
        say and what others have shared may be another's words."""
        if stage != "input" or self.request.source in OUR_OWN:
            return 0.0
        verdict = outcome.verdict
        own = [one for one in outcome.scored if self._own is None or one[0] in self._own]
        if len(own) < len(outcome.scored):
            verdict = self._verdict(deciding.policy, stage, own, ())
        points = deciding.policy.points(verdict)
        if not points:
            return 0.0
        is_own = self._own is None or outcome.worst_text in self._own
        key = self._key(outcome.worst_text if is_own else own[-1][0])
        now_s = monotonic()
        is_new = now_s - _struck.get(key, -SAME_TEXT_S) >= SAME_TEXT_S
        if is_new:
            _struck[key] = now_s
            while len(_struck) > _MAX_KNOWN:
                _struck.popitem(last=False)
        return points if is_new else 0.0

    def _try(self, trial: InForce, stage: Stage, outcome: Outcome) -> None:
        if not trial.policy.judges(stage):
            return
        verdict = self._verdict(trial.policy, stage, outcome.scored, outcome.failed)
        if verdict.action != "allow":
            decisions.keep_soon(partial(self._decision, stage, outcome, trial, verdict))

    def _decision(self, stage: Stage, outcome: Outcome, by: InForce, verdict: Verdict) -> Decision:
        request = self.request
        leaves_traces = request.source != "temporary"
        is_kept = leaves_traces and not by.is_dry_run and rank(verdict.action) >= rank("ask")
        is_for_review = verdict.action == "review" and not by.is_dry_run
        return Decision(
            id=uuid.uuid4(),
            owner_id=int(request.user),
            stage=stage,
            source=request.source,
            model=request.model,
            api_key_id=request.api_key[0] if request.api_key else None,
            policy_id=by.id,
            policy_name=by.name,
            policy_version=by.version,
            is_dry_run=by.is_dry_run,
            action=verdict.action,
            reasons=[asdict(one) for one in verdict.reasons],
            scores={name: round(p, 6) for name, p in outcome.scores.items()},
            failed=list(outcome.failed),
            conversation_id=request.conversation_id if leaves_traces else None,
            message_id=request.message_id if leaves_traces else None,
            run_id=request.run_id[:64] if leaves_traces else "",
            text=storable(without_secrets(outcome.worst_text[:MAX_KEPT_CHARS])) if is_kept else "",
            text_hashes=self._hashes(outcome, verdict) if is_kept else None,
            review=Review.OPEN if is_for_review else "",
        )

    def _hashes(self, outcome: Outcome, verdict: Verdict) -> list[str]:
        """Of all texts that the verdict is about, the worst of them first."""
        about = [outcome.worst_text, *_about(outcome.scored, verdict.reasons)]
        return [text_hash(self.request.user, text) for text in dict.fromkeys(about)]


async def must_wait(screen: Screen) -> Failed | None:
    """What somebody is told who has written too much that was stopped. Not for our own titles."""
    deciding = screen.chosen.deciding
    is_own = screen.request.source in OUR_OWN
    has_begun = any(isinstance(event, Started) for event in screen.request.events)
    if deciding is None or not deciding.policy.strikes or is_own or has_begun or screen.is_let_in:
        return None
    end = await cooling.waits_until(screen.request.user)
    if end is None:
        screen.is_let_in = True  # the whole answer; it is asked for more than once
        return None
    text = gettext("Much of what you asked lately was stopped. You can go on at %(time)s (UTC).")
    wait_s = (end - timezone.now()).total_seconds()
    return Failed("cooling_down", text % {"time": f"{end:%H:%M}"}, max(1.0, wait_s))


async def screen_of(request: AnswerRequest, *, is_raw: bool = False) -> Screen:
    prefix = request.api_key[1] if request.api_key else ""
    return Screen(request, await chosen_for(request.user, request.model, prefix), is_raw)


def _failures(screenings: Sequence[Screening]) -> Failures:
    """Each classifier once, with what it said last."""
    failed = {one.classifier: str(one.error)[:500] for each in screenings for one in each.failed}
    return tuple(
        {"classifier": name, "reason": storable(reason)} for name, reason in failed.items()
    )


def _about(pairs: Sequence[tuple[str, Scores]], reasons: Sequence[Reason]) -> list[str]:
    """The texts that some reason is about, but for those to take a note alone."""
    at = [(one.category, one.threshold) for one in reasons if one.action != "note"]
    return [text for text, scores in pairs if any(scores[name] >= least for name, least in at)]


def _own_words(request: AnswerRequest) -> frozenset[str] | None:
    """What its author surely has written, and asks now; None: all of it, as a raw prompt is."""
    if request.plan is not None:
        asked = (one for one in request.plan.asked if not one.is_brought)
        return frozenset((one.questions or (one.question,))[-1] for one in asked)
    if not request.messages:
        return None
    own: list[str] = []
    for message in reversed(request.messages):
        if message["role"] == "user":
            own.append(message["content"])
        elif own and message["role"] == "assistant":
            break
    return frozenset(own)


def texts_in_exchange(exchange: Exchange) -> list[str]:
    """What of it no model has written here; of a question that was joined, also each by itself."""
    return [*exchange.questions, exchange.question, *texts_of(exchange.unjudged)]
