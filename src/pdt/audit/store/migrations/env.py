"""Alembic's way in: the caller hands over a connection, and the transaction is the caller's."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()
