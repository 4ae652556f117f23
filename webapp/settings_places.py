"""Where each setting is, and by which other words people look for it."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True, slots=True)
class Place:
    """`fragment` is the id of an element of the page; `words` find the setting beside its title."""

    title: Promise
    section: Promise
    page: str
    fragment: str = ""
    words: Promise | str = ""

    @property
    def url(self) -> str:
        return f"{self.page}#{self.fragment}" if self.fragment else self.page


_GENERAL, _ACCOUNT, _DATA = _("General"), _("Account"), _("Data")
_SECURITY, _PERSONALISATION = _("Security"), _("Personalisation")
_ALL, _PERSONAL = "/settings/", "/settings/personalisation"
_SAFE = "/settings/security/"

PLACES = (
    Place(_("Appearance"), _GENERAL, _ALL, "theme-label", _("light dark night theme colours")),
    Place(_("Size of texts"), _GENERAL, _ALL, "text-size-label", _("font letters bigger zoom")),
    Place(_("Space between things"), _GENERAL, _ALL, "density-label", _("density compact")),
    Place(_("Send a message with"), _GENERAL, _ALL, "send-key-label", _("Enter key new line")),
    Place(_("A long text that is pasted"), _GENERAL, _ALL, "long-paste-label", _("clipboard file")),
    Place(
        *(_("An answer that comes while you look elsewhere"), _GENERAL, _ALL, "notify-label"),
        _("notification desktop alert background"),
    ),
    Place(_("Language"), _GENERAL, _ALL, "language", _("translation locale")),
    Place(_("Keyboard"), _GENERAL, _ALL, "keyboard-title", _("shortcuts keys hotkeys")),
    Place(_("About you"), _PERSONALISATION, _PERSONAL, "id_about_you", _("custom instructions")),
    Place(
        *(_("How to answer"), _PERSONALISATION, _PERSONAL, "id_how_to_answer"),
        _("custom instructions tone style"),
    ),
    Place(
        *(_("When a chat gets too long for the model, show it"), _PERSONALISATION, _PERSONAL),
        *("id_history_strategy", _("history summary context memory")),
    ),
    Place(
        _("Give the same answer again when I begin a chat with the same question"),
        *(_PERSONALISATION, _PERSONAL, "id_caches_answers", _("cache")),
    ),
    Place(
        *(_("Memory"), _PERSONALISATION, "/settings/memory", ""),
        _("remember forget facts about me"),
    ),
    Place(_("Assistants"), _PERSONALISATION, "/settings/assistants", "", _("presets characters")),
    Place(_("Prompts"), _PERSONALISATION, "/settings/prompts", "", _("templates snippets")),
    Place(
        *(_("Scheduled prompts"), _PERSONALISATION, "/settings/schedules", ""),
        _("tasks reminders every day automatic"),
    ),
    Place(_("Name"), _ACCOUNT, _ALL, "name-label", _("change what I am called")),
    Place(_("E-mail address"), _ACCOUNT, _ALL, "email-label", _("change the address mail")),
    Place(_("Plan"), _ACCOUNT, _ALL, "tier-label", _("tier subscription")),
    Place(_("Usage"), _ACCOUNT, "/settings/usage", "", _("budget limits costs tokens")),
    Place(_("Stopped by a policy"), _ACCOUNT, "/settings/moderation", "", _("blocked appeal")),
    Place(_("Sign out"), _ACCOUNT, _ALL, "this-browser-label", _("log out leave")),
    Place(_("Delete the account"), _ACCOUNT, _ALL, "delete-account-label", _("remove close")),
    Place(_("Export all your data"), _ACCOUNT, _ALL, "export-data-label", _("download privacy")),
    Place(_("Password"), _SECURITY, _SAFE, "password-label", _("change")),
    Place(_("Signed in"), _SECURITY, _SAFE, "signed-in-label", _("sessions devices browsers")),
    Place(_("Passkeys"), _SECURITY, _SAFE, "passkeys-title", _("fingerprint face security key")),
    Place(
        *(_("Authenticator app"), _SECURITY, _SAFE, "app-title"),
        _("two-factor second step codes TOTP"),
    ),
    Place(_("Export all chats"), _DATA, _ALL, "export-all-label", _("download backup")),
    Place(_("Import chats"), _DATA, _ALL, "import-label", _("upload ChatGPT Open WebUI LibreChat")),
    Place(_("My shared links"), _DATA, _ALL, "shares-label", _("share revoke public")),
    Place(
        *(_("Read chats without a connection"), _DATA, _ALL, "keep-chats-label"),
        _("offline cache PWA"),
    ),
    Place(_("Delete all chats"), _DATA, _ALL, "delete-all-label", _("remove history")),
    Place(_("Archived chats"), _DATA, _ALL, "archived-title", _("archive")),
    Place(_("Documents"), _DATA, "/documents/", "", _("files knowledge collections")),
    Place(_("API keys"), _ACCOUNT, "/settings/keys", "", _("programs tokens access")),
    Place(_("Models"), _GENERAL, _ALL, "models-title", _("loaded memory context")),
    Place(_("About"), _GENERAL, _ALL, "about-title", _("version licences")),
)
