"""How the admin console looks, and what its sidebar lists (django-unfold)."""

from functools import partial
from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy


def _may_see(app: str, model: str, request: HttpRequest) -> bool:
    may = request.user.has_perm
    return may(f"{app}.view_{model}") or may(f"{app}.change_{model}")


def _entry(title: str, icon: str, app: str, model: str) -> dict[str, Any]:
    """A list of rows, for who may see them. Icons are names of Material Symbols, in unfold's font."""
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{app}_{model}_changelist"),
        "permission": partial(_may_see, app, model),
    }


NAVIGATION: list[dict[str, Any]] = [
    {
        "title": "",
        "items": [{"title": "Overview", "icon": "monitoring", "link": reverse_lazy("admin:index")}],
    },
    {
        "title": "People",
        "items": [
            _entry("Users", "person", "webapp", "user"),
            _entry("Groups", "group", "auth", "group"),
            _entry("E-mail addresses", "mail", "account", "emailaddress"),
            _entry("Announcement", "campaign", "chat", "announcement"),
        ],
    },
    {
        "title": "Getting in",
        "items": [
            _entry("Sign-up policy", "door_open", "webapp", "signuprule"),
            _entry("Invitations", "person_add", "webapp", "invitation"),
            _entry("Sign-ins", "devices", "webapp", "signin"),
            _entry("Second steps", "encrypted", "mfa", "authenticator"),
            _entry("Second-step policy", "key_vertical", "webapp", "secondsteprule"),
            _entry("Connected accounts", "link", "socialaccount", "socialaccount"),
            _entry("Share links", "share", "chat", "share"),
        ],
    },
    {
        "title": "Models, tools and prices",
        "items": [
            _entry("Tiers", "stacks", "webapp", "tier"),
            _entry("Prices", "sell", "chat", "modelprice"),
            _entry("Tools of servers", "build", "chat", "servertool"),
        ],
    },
    {
        "title": "Documents",
        "items": [
            _entry("What is found", "manage_search", "retrieval", "evaluation"),
            _entry("Vectors", "hub", "retrieval", "embeddingmodel"),
        ],
    },
    {
        "title": "Moderation",
        "items": [
            _entry("Decisions and reviews", "gavel", "moderation", "decision"),
            _entry("Policies", "policy", "moderation", "moderationpolicy"),
            _entry("Versions of policies", "history_edu", "moderation", "policyversion"),
            _entry("Suspensions", "person_off", "moderation", "suspension"),
            _entry("Rules", "rule", "moderation", "editablerule"),
        ],
    },
    {
        "title": "Usage",
        "items": [
            _entry("What readers think", "thumbs_up_down", "chat", "ratedanswer"),
            _entry("Ledger", "receipt_long", "chat", "usage"),
            _entry("API keys", "key", "webapp", "apikey"),
        ],
    },
    {
        "title": "Audit",
        "items": [
            _entry("Sign-ins and what opens accounts", "shield", "webapp", "securityevent"),
            _entry("Log of this console", "history", "admin", "logentry"),
            _entry("Changes by the directory", "sync", "webapp", "scimchange"),
        ],
    },
]

UNFOLD = {
    "SITE_TITLE": "Vitrine",
    "SITE_HEADER": "Vitrine",
    "SITE_SUBHEADER": "Admin console. Times are UTC.",
    "SITE_URL": "/",
    "SITE_ICON": {
        "light": lambda request: static("img/mark-on-light.svg"),
        "dark": lambda request: static("img/mark-on-dark.svg"),
    },
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda request: static("img/favicon.svg"),
        },
    ],
    "SHOW_VIEW_ON_SITE": False,
    "ACCOUNT": {
        "navigation": [
            {"title": "Change password", "link": reverse_lazy("account_change_password")},
        ],
    },
    "DASHBOARD_CALLBACK": "webapp.dashboard.dashboard",
    "STYLES": ["webapp.dashboard.style_sheet"],
    "SCRIPTS": [lambda request: static("js/console.js")],
    "SIDEBAR": {
        "show_search": True,
        "show_all_applications": False,
        "navigation": NAVIGATION,
    },
    # The glass of static/css/tokens.css.
    "COLORS": {
        "primary": {
            "50": "oklch(97.5% .012 192)",
            "100": "oklch(94% .025 192)",
            "200": "oklch(89% .045 192)",
            "300": "oklch(80% .085 190)",
            "400": "oklch(70% .1 190)",
            "500": "oklch(62% .1 190)",
            "600": "oklch(51% .085 193)",
            "700": "oklch(43% .075 195)",
            "800": "oklch(36% .06 195)",
            "900": "oklch(30% .045 197)",
            "950": "oklch(22% .035 200)",
        }
    },
}
