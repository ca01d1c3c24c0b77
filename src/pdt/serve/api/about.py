"""`/v1/models`, `/health`, `/ready` and `/metrics`."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from pdt.generation.interventions import INTERVENTION_FORMS
from pdt.serve.api.admission import check_model, engine_of, writer_of

router = APIRouter()


@router.get("/v1/models")
async def models(request: Request) -> dict[str, Any]:
    """The one model there is."""
    return {"object": "list", "data": [_model(request)]}


@router.get("/v1/models/{name}")
async def model(request: Request, name: str) -> dict[str, Any]:
    check_model(request, name)
    return _model(request)


def _model(request: Request) -> dict[str, Any]:
    engine = engine_of(request)
    config = writer_of(engine).model.config
    return {
        "id": request.app.state.model_name,
        "object": "model",
        "created": request.app.state.started,
        "owned_by": "pdt",
        "pdt": {
            "digest": engine.digest,
            "lanes": config.lanes.count,
            "block_tokens": config.lanes.block_tokens,
            "plan_nodes": config.planner.nodes,
            "codebooks": config.notes.codebooks,
            "codes": config.notes.codes,
            "max_prompt_tokens": config.planner.max_prompt_tokens,
            "max_positions": config.trunk.shape.max_positions,
            "interventions": [form.split("  ")[0] for form in INTERVENTION_FORMS],
        },
    }


@router.get("/health")
async def health() -> dict[str, str]:
    """The process lives."""
    return {"status": "alive"}


@router.get("/ready", response_model=None)
async def ready(request: Request) -> Response:
    """The model is loaded and the server takes documents in."""
    engine = engine_of(request)
    state = "ready" if engine.ready else "draining" if engine.places.closed else "loading"
    return JSONResponse({"status": state}, 200 if engine.ready else 503)


@router.get("/metrics", response_model=None)
async def metrics(request: Request) -> Response:
    return Response(
        engine_of(request).metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8"
    )
