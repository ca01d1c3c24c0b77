"""A refusal over HTTP: one JSON shape for all of them, the one that OpenAI's clients read."""

from collections.abc import Mapping

from starlette.responses import JSONResponse

KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
}


class Refusal(Exception):
    """A request that is not served: what was wrong, which field, and what to do."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code
        self.headers = dict(headers or {})

    def body(self) -> dict[str, object]:
        """The `error` object."""
        return {
            "error": {
                "message": self.message,
                "type": KINDS.get(self.status, "invalid_request_error"),
                "param": self.param,
                "code": self.code,
            }
        }

    def response(self) -> JSONResponse:
        return JSONResponse(self.body(), self.status, self.headers)
