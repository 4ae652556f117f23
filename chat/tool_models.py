"""What tool servers have said of their tools, and what the operator says of them."""

from typing import Any

from django.db import models


class Asking(models.TextChoices):
    """When a call waits for a person's word."""

    NEVER = "never", "never"
    AFTER_OTHERS = "others", "once words of others are in the chat"
    ALWAYS = "always", "always"


class ServerTool(models.Model):
    """One tool of a server. `name` is what models call it, `definition` what they are shown, as
    `{"title", "description", "parameters", "hints"}`.

    A server that changes a definition could change what its tool does to whoever has allowed it: the
    changed one waits in `proposed`, and the tool with it, until an operator takes it.
    `is_listed`: the server named it when it was last asked.
    """

    server = models.CharField(max_length=32)
    tool = models.CharField(max_length=200)
    name = models.CharField(max_length=64, unique=True)
    definition = models.JSONField()
    proposed = models.JSONField(null=True, blank=True)
    is_enabled = models.BooleanField("switched on", default=True)
    is_listed = models.BooleanField(default=True)
    asks = models.CharField(
        "a person is asked", max_length=8, choices=Asking.choices, default=Asking.ALWAYS
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "tool"
        constraints = [
            models.UniqueConstraint(fields=["server", "tool"], name="server_tool_once"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def title(self) -> str:
        title: Any = self.definition.get("title")
        return str(title or self.tool)
