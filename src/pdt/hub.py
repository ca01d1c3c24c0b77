"""The Hugging Face hub, asked whether it answers before anything is taken from it."""


def silence_of_hub(name: str, revision: str | None) -> str | None:
    """Why the hub does not answer; None if it does.

    Asked once: whoever loads asks again for every file, for minutes and with a warning each time.
    """
    from huggingface_hub import model_info

    try:
        model_info(name, revision=revision, timeout=10)
    except Exception as error:  # network, proxy, authentication: its own words say which
        return " ".join(str(error).split())
    return None
