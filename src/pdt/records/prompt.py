"""The prompt that all lanes share: the whole source, then the request. Paper: §2.1, §4.1."""

from pdt.sources.article import Article


def prompt_text(article: Article, request: str, prompt_format: str) -> str:
    """`prompt_format` with the source and the request in place; nothing is cut to fit."""
    before, _, rest = prompt_format.partition("{source}")
    between, _, after = rest.partition("{request}")
    return f"{before}{article.text}{between}{request}{after}"
