"""Which sign-up policy holds: the console's, or else VITRINE_SIGNUP.

Asked of the database each time, as sign-ups are rare: so a change counts at once in every process.
"""

from django.conf import settings

from webapp.models import SignupRule
from webapp.signup_policy import SignupPolicy


def current_policy() -> SignupPolicy:
    """One query."""
    rule = SignupRule.objects.first()
    policy: SignupPolicy = settings.SIGNUP if rule is None else rule.policy
    return policy
