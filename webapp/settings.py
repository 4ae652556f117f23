"""Every setting, read from the environment and valid without any of it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from inference.catalog import BUILTIN_EMBEDDING
from inference.config import (
    DEVICES,
    DTYPES,
    GPU_STEP,
    KV_DTYPES,
    KV_LAYOUTS,
    MAX_NUM_DRAFTING,
    EngineConfig,
    default_num_threads,
)
from inference.upstreams.spec import is_upstream
from moderation.heads_adapter import HEADS_ADAPTER
from moderation.strikes import Limits as StrikeLimits
from webapp.console_settings import UNFOLD as UNFOLD
from webapp.databases import database_settings
from webapp.directory_settings import directory_settings
from webapp.env import (
    env_bool,
    env_choice,
    env_email,
    env_float,
    env_folder,
    env_int,
    env_list,
    env_secret,
    env_secrets,
    env_str,
)
from webapp.hosts import allowed_hosts, egress_rules, trusted_networks
from webapp.logs import LEVELS, logging_settings
from webapp.mail_settings import sender, smtp_encryption
from webapp.model_settings import adapters, draft_models, gpu_step, ranks, workers
from webapp.moderation_settings import classifier_specs
from webapp.prices import currency, prices
from webapp.providers import allauth_settings, sign_in_providers
from webapp.redis_settings import broker_url, redis_url
from webapp.scim.configuration import scim_provider, scim_token
from webapp.secret_key import stored_secret_keys
from webapp.signup_policy import signup_policy
from webapp.tool_server_settings import search_engine, tool_server_specs
from webapp.upstreams import upstream_specs

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = env_folder("DATA_DIR", BASE_DIR / "var")
HOST = env_str("HOST", "127.0.0.1")
PORT = env_int("PORT", 8000, minimum=1, maximum=65535)
DEBUG = env_bool("DEBUG", False)
HTTPS = env_bool("VITRINE_HTTPS", False)
TRUSTED_PROXIES = trusted_networks(env_list("TRUSTED_PROXIES"))
DRAIN_TIMEOUT_S = env_int("DRAIN_TIMEOUT_S", 10)

SECRET_KEY, *_STORED_FALLBACKS = (
    [own] if (own := env_secret("SECRET_KEY")) else stored_secret_keys(DATA_DIR)
)
SECRET_KEY_FALLBACKS = [*env_secrets("SECRET_KEY_FALLBACKS"), *_STORED_FALLBACKS]
SITE_NAMES = env_list("ALLOWED_HOSTS")  # as the operator names the site, if at all
ALLOWED_HOSTS = allowed_hosts(SITE_NAMES, HOST)

_MODELS = env_list("VITRINE_MODELS")
_MEMORY_GIB = env_float("VITRINE_MEMORY_GIB", None, minimum=0.5)
ENGINE = EngineConfig(
    models_dir=DATA_DIR / "models",
    extra_models=tuple(entry for entry in _MODELS if not is_upstream(entry)),
    upstreams=upstream_specs([entry for entry in _MODELS if is_upstream(entry)]),
    default_model=env_str("VITRINE_DEFAULT_MODEL"),
    num_threads=env_int("VITRINE_THREADS", default_num_threads(), minimum=1),
    dtype=env_choice("VITRINE_DTYPE", DTYPES, "auto"),
    device=env_choice("VITRINE_DEVICE", DEVICES, "auto"),
    gpu_step=gpu_step(env_list("VITRINE_GPU_STEP", GPU_STEP)),
    kv_layout=env_choice("VITRINE_KV_LAYOUT", KV_LAYOUTS, "auto"),
    kv_dtype=env_choice("VITRINE_KV_DTYPE", KV_DTYPES, "auto"),
    memory_bytes=None if _MEMORY_GIB is None else int(_MEMORY_GIB * 2**30),
    sleep_after_s=env_int("VITRINE_SLEEP_AFTER_S", 0) or None,
    max_num_sequences=env_int("VITRINE_SEQUENCES", 0, maximum=1024) or None,
    step_budget_tokens=env_int("VITRINE_STEP_TOKENS", 0, maximum=65_536) or None,
    max_num_drafting=env_int("VITRINE_DRAFTING", MAX_NUM_DRAFTING),
    draft_models=draft_models(env_list("VITRINE_DRAFT_MODELS")),
    adapters=(*adapters(env_list("VITRINE_ADAPTERS")), HEADS_ADAPTER),
    workers=workers(env_list("VITRINE_WORKERS")),
    tensor_parallel=ranks(env_list("VITRINE_TENSOR_PARALLEL")),
)
MODERATION = classifier_specs(env_list("VITRINE_MODERATION", ["builtin"]))
WEB_SEARCH = search_engine(env_str("VITRINE_WEB_SEARCH"))
TOOL_SERVERS = tool_server_specs(
    env_str("VITRINE_MCP"),
    has_python=env_bool("VITRINE_PYTHON", True),
    has_search=WEB_SEARCH is not None,
    has_images=any(spec.kind == "image" for spec in ENGINE.upstreams),
)
PRICES = prices(env_list("VITRINE_PRICES"))
CURRENCY = currency(env_str("VITRINE_CURRENCY", "EUR"))
PRELOAD_MODEL = env_bool("VITRINE_PRELOAD", True)
MAX_IMPORT_BYTES = env_int("VITRINE_MAX_IMPORT_MIB", 2048, minimum=1) * 2**20
MAX_FILES_BYTES = env_int("VITRINE_FILES_MIB", 4096, minimum=1) * 2**20
MAX_DOCUMENTS_BYTES = env_int("VITRINE_DOCUMENTS_MIB", 16_384, minimum=1) * 2**20
EMBEDDING_MODEL = env_str("VITRINE_EMBEDDING_MODEL", BUILTIN_EMBEDDING)
RERANK_MODEL = env_str("VITRINE_RERANK_MODEL")
QUESTION_MODEL = env_str("VITRINE_QUESTION_MODEL")
QUESTION_S = env_float("VITRINE_QUESTION_S", 2.0, minimum=0.1)
DOCUMENT_TOKENS = env_int("VITRINE_DOCUMENT_TOKENS", 4096, minimum=64)
CACHE_TTL_S = env_int("VITRINE_CACHE_TTL_S", 24 * 3600, minimum=60)
CACHE_SIMILARITY = env_float("VITRINE_CACHE_SIMILARITY", 0.95, minimum=0.5, maximum=1)
CHUNK_TOKENS = env_int("VITRINE_CHUNK_TOKENS", 512, minimum=32, maximum=8192)
CHUNK_OVERLAP_TOKENS = env_int("VITRINE_CHUNK_OVERLAP", 128, maximum=4096)
OCR_LANGUAGES = env_str("VITRINE_OCR_LANGUAGES", "eng")
BATCH_LINES_AT_ONCE = env_int("VITRINE_BATCH_LINES", 4, minimum=1, maximum=1024)
EGRESS_ALLOW = egress_rules(env_list("VITRINE_EGRESS_ALLOW"))
STRIKES = StrikeLimits(
    half_life=timedelta(days=env_int("VITRINE_STRIKE_HALF_LIFE_DAYS", 7, minimum=1)),
    cool_down=env_float("VITRINE_STRIKES_COOL_DOWN", 3.0),
    suspend=env_float("VITRINE_STRIKES_SUSPEND", 10.0),
)
SIGNUP_WORK_BITS = env_int("VITRINE_SIGNUP_WORK_BITS", 16, maximum=24)
MODERATION_DAYS = env_int("VITRINE_MODERATION_DAYS", 90, minimum=1)
PROMPT_DAYS = env_int("VITRINE_PROMPT_DAYS", 365)
SECURITY_DAYS = env_int("VITRINE_SECURITY_DAYS", 90, minimum=1)
CHAT_MEANING = env_bool("VITRINE_CHAT_MEANING", True)
PUBLIC_SHARES = env_bool("VITRINE_PUBLIC_SHARES", False)
SIGN_IN_PROVIDERS = sign_in_providers()
SCIM_TOKEN = scim_token()
SCIM_PROVIDER = scim_provider(SCIM_TOKEN, SIGN_IN_PROVIDERS)
DIRECTORY = directory_settings()

INSTALLED_APPS = [
    "webapp",
    "chat",
    "retrieval",
    "moderation",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    *sorted({f"allauth.socialaccount.providers.{one.kind}" for one in SIGN_IN_PROVIDERS}),
    "unfold",  # before the admin, whose templates it replaces
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
]

# All of it stays on the event loop: none moves a request, or a stream, to a thread.
MIDDLEWARE = [
    "webapp.security_headers.SecurityHeadersMiddleware",
    "webapp.streaming.StreamingMiddleware",
    "webapp.stock_middleware.SessionMiddleware",
    "webapp.stock_middleware.CommonMiddleware",
    "webapp.stock_middleware.CsrfMiddleware",
    "webapp.authentication.AuthenticationMiddleware",
    "webapp.limits.LimitsMiddleware",
    "webapp.languages.LanguageMiddleware",
    "webapp.stock_middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TIME_ZONE = "UTC"
USE_TZ = True
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch"), ("ar", "العربية")]
FORMAT_MODULE_PATH = "webapp.formats"
LANGUAGE_COOKIE_NAME = "vitrine_language"
DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 2**20

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "webapp.security_headers.nonce_context",
                "webapp.accounts.account_context",
            ],
        },
    }
]

# --- data --------------------------------------------------------------------------------------

DATABASES = {"default": database_settings(env_str("DATABASE_URL"), DATA_DIR)}

REDIS_URL = redis_url(env_str("REDIS_URL"), DATA_DIR)
CACHES = {
    "default": {
        "BACKEND": "webapp.cache.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "vitrine",
        "OPTIONS": {"serializer": "webapp.cache.JsonSerializer"},
    }
}
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "webapp.channel_layer.ChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": "vitrine"},
    }
}
CELERY_BROKER_URL = broker_url(REDIS_URL)

# --- people ------------------------------------------------------------------------------------

AUTH_USER_MODEL = "webapp.User"
AUTHENTICATION_BACKENDS = [
    "allauth.account.auth_backends.AuthenticationBackend",  # first: it needs no directory
    *(["webapp.directory_sign_in.DirectoryBackend"] if DIRECTORY else []),
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation." + name}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"

SMTP_HOST = env_str("SMTP_HOST")
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if SMTP_HOST else 'dummy'}.EmailBackend"
EMAIL_HOST = SMTP_HOST
EMAIL_PORT = env_int("SMTP_PORT", 587, minimum=1, maximum=65535)
EMAIL_HOST_USER = env_str("SMTP_USER")
EMAIL_HOST_PASSWORD = env_secret("SMTP_PASSWORD") or ""
EMAIL_USE_TLS, EMAIL_USE_SSL = smtp_encryption(EMAIL_PORT)
EMAIL_TIMEOUT = 15
DEFAULT_FROM_EMAIL = sender(env_email("SMTP_FROM", f"vitrine@{HOST}"))

SIGNUP = signup_policy(
    env_str("VITRINE_SIGNUP", "open"),
    has_mail=bool(SMTP_HOST),
    has_providers=bool(SIGN_IN_PROVIDERS),
)
ACCOUNT_ADAPTER = "webapp.accounts.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_FORMS = {
    "login": "webapp.sign_in_forms.LoginForm",
    "signup": "webapp.forms.SignupForm",
    "reset_password": "webapp.sign_in_forms.ResetPasswordForm",
    "reset_password_from_key": "webapp.sign_in_forms.ResetPasswordKeyForm",
    "change_password": "webapp.sign_in_forms.ChangePasswordForm",
    "set_password": "webapp.sign_in_forms.SetPasswordForm",
}
ACCOUNT_EMAIL_VERIFICATION = "mandatory" if SMTP_HOST else "none"
ACCOUNT_CHANGE_EMAIL = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_RATE_LIMITS = False  # ours are in webapp/rate_limits.py, for all doors alike
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_EMAIL_NOTIFICATIONS = bool(SMTP_HOST)
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if HTTPS else "http"

SOCIALACCOUNT_ADAPTER = "webapp.provider_sign_in.SocialAccountAdapter"
SOCIALACCOUNT_PROVIDERS = allauth_settings(SIGN_IN_PROVIDERS)
SOCIALACCOUNT_FORMS = {"signup": "webapp.provider_sign_in.SocialSignupForm"}

SECOND_STEP = env_choice("VITRINE_SECOND_STEP", ("nobody", "staff", "everybody"), "nobody")
MFA_ADAPTER = "webapp.two_step.MFAAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
# Without mail no address is ever verified. With it nobody gets in by one that is not; but while a new
# one waits for its confirmation, allauth would else allow no second step, and with one no new address.
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_TOTP_ISSUER = "Vitrine"
MFA_TOTP_TOLERANCE = 1
MFA_RATE_LIMITS = False
MFA_FORMS = {
    "authenticate": "webapp.two_step_forms.AuthenticateForm",
    "reauthenticate": "webapp.two_step_forms.ReauthenticateForm",
    "add_webauthn": "webapp.two_step_forms.AddPasskeyForm",
}

# --- cookies -----------------------------------------------------------------------------------

SESSION_ENGINE = "webapp.sessions"
SESSION_COOKIE_NAME = "__Host-vitrine_session" if HTTPS else "vitrine_session"
SESSION_COOKIE_AGE = ACCOUNT_SESSION_COOKIE_AGE = 30 * 24 * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_NAME = "__Host-vitrine_csrf" if HTTPS else "vitrine_csrf"
# A cookie of the prefix __Host- would be sent to every path.
REFRESH_COOKIE_NAME = "__Secure-vitrine_refresh" if HTTPS else "vitrine_refresh"
CSRF_FAILURE_VIEW = "webapp.error_pages.csrf_failure"
MESSAGE_STORAGE = "django.contrib.messages.storage.cookie.CookieStorage"  # needs no I/O

# --- static files ------------------------------------------------------------------------------

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "webapp.static_storage.JoinedStorage"
    },
}

# --- logs --------------------------------------------------------------------------------------

LOG_TO = env_choice("LOG_TO", ("file", "stderr"), "file")
LOG_FILE = DATA_DIR / "logs" / "vitrine.log"
LOG_LEVEL = env_choice("LOG_LEVEL", LEVELS, "INFO")
LOGGING = logging_settings(LOG_FILE if LOG_TO == "file" else None, LOG_LEVEL)
