"""Back in after a session's end, while a page of it is still open.

That page keeps what was written. Its owner signs in in a window of its own, by whatever way there is;
the window ends here and tells the pages that wait, which go on where they were.
"""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe


@never_cache
@require_safe
def signed_in(request: HttpRequest) -> HttpResponse:
    """Where such a window's sign-in leads to."""
    return render(request, "account/signed_in.html")


@never_cache
@require_safe
def who(request: HttpRequest) -> JsonResponse:
    """Whose session it is now, and its token for forms: a page goes on for its own user alone."""
    return JsonResponse({"user": str(request.user.pk), "csrf": get_token(request)})
