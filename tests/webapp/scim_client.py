"""A directory: what it sends to /scim/v2, and what it gets."""

import json
from typing import Any

from django.test import Client

TOKEN = "a-token-of-the-directory-0123456789abcdef"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"


class Directory:
    """`send` gives the response; the others assert its status and give its body."""

    def __init__(self, token: str = TOKEN) -> None:
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def send(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body else b""
        return Client().generic(
            method,
            f"/scim/v2{path}",
            data,
            "application/scim+json",
            query_params=query,
            headers=self._headers,
        )

    def ask(self, method: str, path: str, body: Any = None, *, status: int = 200, **q: Any) -> Any:
        response = self.send(method, path, body, **q)
        assert response.status_code == status, response.content.decode()
        if status == 204:
            assert not response.content
            return None
        assert response.headers["Content-Type"] == "application/scim+json"
        return response.json()

    def person(self, name: str = "dora", **more: Any) -> Any:
        """Made as Okta does it."""
        body = {
            "schemas": [USER],
            "userName": f"{name}@example.org",
            "name": {"givenName": name.title(), "familyName": "Doe"},
            "emails": [{"primary": True, "value": f"{name}@example.org", "type": "work"}],
            "displayName": f"{name.title()} Doe",
            "externalId": f"ext-{name}",
            "groups": [],
            "active": True,
        }
        return self.ask("POST", "/Users", {**body, **more}, status=201)

    def group(self, name: str = "Writers", *ids: str, **more: Any) -> Any:
        members = [{"value": one} for one in ids]
        body = {"schemas": [GROUP], "displayName": name, "members": members, **more}
        return self.ask("POST", "/Groups", body, status=201)

    def patch(self, path: str, *operations: dict[str, Any], status: int = 200) -> Any:
        body = {"schemas": [PATCH], "Operations": list(operations)}
        return self.ask("PATCH", path, body, status=status)

    def found(self, path: str, filter: str) -> list[str]:
        listed = self.ask("GET", path, filter=filter)
        key = "userName" if path == "/Users" else "displayName"
        assert listed["totalResults"] == len(listed["Resources"])
        return [one[key] for one in listed["Resources"]]
