"""One process, one model, many clients: an OpenAI-compatible server, and a studio in the browser.

A server is a view of a generation's events. The model runs in one thread (engine.py), the
connections in another; between them lie each document's log of events and one queue.
"""
