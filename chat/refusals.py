"""What somebody is told whose text, or whose answer, a policy has stopped."""

from collections.abc import Sequence
from typing import Literal

from django.utils.translation import gettext

from chat.events import Refused
from moderation.policies import Reason, Stage

Place = Literal["", "instructions", "earlier"]

CODE = "content_filter"
ASK_CODE = "confirmation_needed"
UNAVAILABLE_CODE = "moderation_unavailable"


def words_of(category: str) -> str:
    """In the reader's language."""
    return {
        "harassment": gettext("insults or bullying"),
        "harassment/threatening": gettext("threats against a person"),
        "hate": gettext("hate of people for what they are"),
        "hate/threatening": gettext("hate that calls for violence"),
        "illicit": gettext("help with crime"),
        "illicit/violent": gettext("help with violence or weapons"),
        "self-harm": gettext("suicide or self-injury"),
        "self-harm/intent": gettext("the wish to hurt or kill oneself"),
        "self-harm/instructions": gettext("ways to hurt or kill oneself"),
        "sexual": gettext("sexual content"),
        "sexual/minors": gettext("sexual content with minors"),
        "violence": gettext("violence"),
        "violence/graphic": gettext("violence in gory detail"),
        "prompt_injection": gettext("instructions that try to replace the assistant's own"),
        "jailbreak": gettext("an attempt to talk the assistant out of its rules"),
        "secrets": gettext("keys, passwords or tokens"),
        "personal_data": gettext("personal data"),
    }[category]


def refused(
    stage: Stage, policy: str, reasons: Sequence[Reason], decision: str, place: Place = ""
) -> Refused:
    """A text of the stage was blocked. `decision` is the id that an appeal is about; `place` where in
    what goes with a question it stands."""
    what = ", ".join(words_of(one.category) for one in reasons if one.action != "note")
    if not reasons:
        return Refused(
            UNAVAILABLE_CODE,
            gettext("This cannot be checked at the moment, as the policy “%(policy)s” asks for.")
            % {"policy": policy},
            stage=stage,
            decision=decision,
        )
    if stage == "output":
        text = gettext("The answer ended here: the policy “%(policy)s” does not allow %(what)s.")
    else:
        text = gettext("This was not answered: the policy “%(policy)s” does not allow %(what)s.")
    text %= {"policy": policy, "what": what}
    if place == "instructions":
        text += " " + gettext("It stands in the instructions of this chat.")
    elif place == "earlier":
        text += " " + gettext("It stands earlier in this chat.")
    return Refused(CODE, text, stage=stage, decision=decision)


def asks(policy: str, reasons: Sequence[Reason], decision: str, place: Place = "") -> Refused:
    """Its author is asked before a text goes to the model; `place` as in `refused`."""
    what = ", ".join(words_of(one.category) for one in reasons if one.action == "ask")
    if place == "instructions":
        text = gettext(
            "The instructions of this chat seem to hold %(what)s. Send your message all the same?"
        )
    elif place == "earlier":
        text = gettext(
            "Something earlier in this chat seems to hold %(what)s. Send your message all the same?"
        )
    else:
        text = gettext("Your message seems to hold %(what)s. Send it all the same?")
    return Refused(ASK_CODE, text % {"what": what}, stage="input", decision=decision)
