"""A small OpenID Connect server, which says of its one visitor what a test wants."""

import base64
import hashlib
import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt

CLIENT_ID, CLIENT_SECRET = "vitrine", "a client's secret"
_KEY = "k" * 64  # of the ID token, which comes straight from here and is not verified by signature


class IdentityProvider:
    """`person` are the claims of whoever comes; `id_claims` change those of the ID token alone.

    A code works once, for its client, address and PKCE verifier. `authorize` is what a browser does:
    it is sent here, the person agrees, and it comes back with a code.
    """

    def __init__(self) -> None:
        self.person: dict[str, Any] = {}
        self.id_claims: dict[str, Any] = {}
        self.asked: list[dict[str, str]] = []
        self._codes: dict[str, dict[str, str]] = {}
        self._tokens: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def authorize(self, address: str) -> str:
        """Where the browser is sent back to."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert address.startswith(f"{self.url}/authorize?")
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT_ID)
        assert asked["code_challenge_method"] == "S256"
        self.asked.append(asked)
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        return asked["redirect_uri"] + "?" + urlencode({"code": code, "state": asked["state"]})

    # --- what the server is asked -----------------------------------------------------------------

    def _configuration(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "jwks_uri": f"{self.url}/jwks",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }

    def _token(self, form: dict[str, str]) -> dict[str, Any] | None:
        asked = self._codes.pop(form.get("code", ""), None)
        if asked is None or form.get("redirect_uri") != asked["redirect_uri"]:
            return None
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET):
            return None
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            return None
        self._tokens.add(token := secrets.token_urlsafe(16))
        claims = {"iss": self.url, "aud": CLIENT_ID, "exp": 2**33, **self.person, **self.id_claims}
        id_token = jwt.encode(claims, _KEY, "HS256")
        return {"access_token": token, "token_type": "Bearer", "id_token": id_token}

    def _handler(provider) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/.well-known/openid-configuration":
                    return self._say(200, provider._configuration())
                token = self.headers.get("Authorization", "").removeprefix("Bearer ")
                if self.path == "/userinfo" and token in provider._tokens:
                    return self._say(200, provider.person)
                if self.path.startswith("/authorize?"):
                    self.send_response(302)
                    self.send_header("Location", provider.authorize(provider.url + self.path))
                    self.end_headers()
                    return None
                return self._say(404, {})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = {name: values[0] for name, values in parse_qs(body).items()}
                answer = provider._token(form) if self.path == "/token" else None
                self._say(200 if answer else 400, answer or {"error": "invalid_grant"})

            def _say(self, status: int, value: dict[str, Any]) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
