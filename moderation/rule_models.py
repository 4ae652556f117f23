"""Rules that an operator writes, beside those that come with the installation."""

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from moderation.categories import CATEGORIES, DESCRIPTIONS
from moderation.rules import MAX_PATTERN_CHARS, BadRule, Rule, tried


class EditableRule(models.Model):
    """A pattern of RE2; what matches it is of the category with this probability.

    `must_match` and `must_not_match` are lines of text that a change is tried on before it is saved.
    """

    name = models.CharField(max_length=80, unique=True)
    category = models.CharField(
        max_length=40, choices=[(name, f"{name}: {DESCRIPTIONS[name]}") for name in CATEGORIES]
    )
    pattern = models.TextField(max_length=MAX_PATTERN_CHARS)
    probability = models.FloatField(
        default=1.0, validators=[MinValueValidator(0.01), MaxValueValidator(1.0)]
    )
    must_match = models.TextField("texts that match", blank=True, help_text="One in each line.")
    must_not_match = models.TextField(
        "texts that do not match", blank=True, help_text="One in each line."
    )
    is_enabled = models.BooleanField("enabled", default=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "moderation rule"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def as_rule(self) -> Rule:
        return Rule(self.name, self.category, self.pattern, self.probability)

    def clean(self) -> None:
        """Raises ValidationError for a pattern that RE2 does not take, or that its examples refute."""
        try:
            rules = tried(self.as_rule())
        except BadRule as error:
            raise ValidationError({"pattern": str(error)}) from None
        for line in filter(str.strip, self.must_match.splitlines()):
            if not rules.find(line):
                raise ValidationError({"must_match": f"The pattern does not match: {line[:200]}"})
        for line in filter(str.strip, self.must_not_match.splitlines()):
            if rules.find(line):
                raise ValidationError({"must_not_match": f"The pattern matches: {line[:200]}"})
