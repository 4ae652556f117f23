"""What an operator tells everybody who opens a chat."""

from django.db import models


class Announcement(models.Model):
    """One row at most. Whoever has put it away sees it again once it has changed."""

    class Tone(models.TextChoices):
        NEWS = "news", "news"
        WARNING = "warning", "a warning"

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    text = models.CharField(max_length=300)
    tone = models.CharField(max_length=8, choices=Tone.choices, default=Tone.NEWS)
    until = models.DateTimeField("shown until", null=True, blank=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "announcement"
        verbose_name_plural = "announcement"
        constraints = [
            models.CheckConstraint(condition=models.Q(id=1), name="announcement_only_one")
        ]

    def __str__(self) -> str:
        return self.text

    @property
    def key(self) -> str:
        """Another one after each change: what a browser keeps of the one that was put away."""
        return str(int(self.changed_at.timestamp() * 1000))
