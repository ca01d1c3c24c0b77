"""What a server counts, in Prometheus' words."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """One registry a server, so that two in one process do not meet."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own = self.registry
        self.documents = Counter("pdt_documents", "Documents that ended.", ["status"], registry=own)
        self.tokens = Counter("pdt_tokens", "Tokens written, all lanes.", registry=own)
        self.prompt_tokens = Counter("pdt_prompt_tokens", "Tokens read.", registry=own)
        self.rounds = Counter("pdt_rounds", "Rounds, each shared by all documents.", registry=own)
        self.refused = Counter("pdt_refused", "Requests refused.", ["status"], registry=own)
        self.writing = Gauge("pdt_documents_writing", "Documents under way.", registry=own)
        self.waiting = Gauge("pdt_documents_waiting", "Documents that wait.", registry=own)
        self.paused = Gauge("pdt_documents_paused", "Documents at a barrier.", registry=own)
        self.first_token = Histogram(
            "pdt_first_token_seconds",
            "From asking to the first token.",
            buckets=SECONDS,
            registry=own,
        )
        self.document = Histogram(
            "pdt_document_seconds", "From asking to the end.", buckets=SECONDS, registry=own
        )
        self.round = Histogram(
            "pdt_round_seconds", "One shared round.", buckets=SECONDS, registry=own
        )

    def text(self) -> bytes:
        return generate_latest(self.registry)


class CountsRefusals:
    """ASGI middleware around everything else, so that what its guards refuse is counted too."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._refused = app, metrics.refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 400:
                self._refused.labels(message["status"]).inc()
            await send(message)

        await self._app(scope, receive, counted)
