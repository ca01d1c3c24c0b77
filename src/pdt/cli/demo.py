"""`pdt demo`: the main job, with what is in the box."""


def demo() -> None:
    """Show three lanes at work. No trained weights are in the box yet, and the demo says so."""
    import torch
    from rich.console import Console

    from pdt.config import load_config
    from pdt.model.build import random_model

    console = Console()
    config = load_config("nano")
    model = random_model(config, seed=0)
    console.print(
        "[bold]An untrained model.[/] The weights below are random numbers: this shows the machinery,"
        " three lanes advancing in one grouped call, and not what a trained model writes."
    )
    prompt = model.read_prompt(torch.arange(1, 33)[None])
    frontier = model.open_lanes(prompt, model.plan(prompt))
    console.print(frontier.h_BKD.shape)
