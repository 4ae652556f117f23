"""Rules that come with the installation: secrets and personal data, which have a shape."""

from moderation.rules import Rule

BUILT_IN: tuple[Rule, ...] = (
    Rule(
        "private key",
        "secrets",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s]*"
        r"(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    Rule("AWS access key", "secrets", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    Rule("GitHub token", "secrets", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{50,})"),
    Rule("GitLab token", "secrets", r"\bglpat-[\w-]{20,}"),
    Rule("Slack token", "secrets", r"\bxox[abposr]-[A-Za-z0-9-]{10,}"),
    Rule("Stripe key", "secrets", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    Rule("Google API key", "secrets", r"\bAIza[\w-]{35}"),
    Rule("model provider's key", "secrets", r"\bsk-(?:[a-z]+-)*[\w-]{20,}", check="random"),
    Rule("Hugging Face token", "secrets", r"\bhf_[A-Za-z0-9]{30,}"),
    Rule("Vitrine key", "secrets", r"\bvt_[A-Za-z0-9_]{24,}", check="random"),
    Rule("JSON web token", "secrets", r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    Rule(
        "password in an address",
        "secrets",
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{1,64}:[^\s:/@]{3,128}@[\w.-]+",
    ),
    Rule(
        "value of a secret",
        "secrets",
        r"(?i)\b(?:password|passwd|pwd|secret|api[_-]?key|access[_-]?token|auth[_-]?token)"
        r"['\"]?\s{0,3}[:=]\s{0,3}['\"]?[^\s'\",;]{8,200}",
        probability=0.9,
        check="random",
    ),
    Rule(
        "e-mail address",
        "personal_data",
        r"\b[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,24}\b",
        probability=0.6,
    ),
    Rule(
        "telephone number",
        "personal_data",
        r"(?:\+\d{1,3}[ ./-]?(?:\(\d{1,5}\)[ ./-]?)?|\(0?\d{2,5}\)[ ./-]?)"
        r"\d{2,5}(?:[ ./-]?\d{2,5}){1,4}\b",
        probability=0.6,
    ),
    Rule("payment card", "personal_data", r"\b\d(?:[ -]?\d){12,18}\b", check="card"),
    Rule(
        "bank account (IBAN)",
        "personal_data",
        r"\b[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{4}){2,7}(?: ?[A-Za-z0-9]{1,3})?\b",
        check="iban",
    ),
    Rule("social security number", "personal_data", r"\b\d{3}-\d{2}-\d{4}\b", check="ssn"),
)
