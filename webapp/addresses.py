"""Addresses for which somebody vouches, so that no letter has to confirm them."""

from allauth.account.models import EmailAddress

from webapp.models import User


def readdress(user: User, email: str) -> None:
    """The account's new address is the only one, and confirmed: to any other that is kept, letters for a
    new password would still be sent. Raises IntegrityError where another account has confirmed it."""
    EmailAddress.objects.filter(user=user).delete()
    EmailAddress.objects.create(user=user, email=email, verified=True, primary=True)
