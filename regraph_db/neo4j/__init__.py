"""The shared store: a Neo4j server, statements from ``cypher/`` alone."""

from __future__ import annotations

from regraph_db.neo4j.care import Neo4jCare
from regraph_db.neo4j.reading import Neo4jKnowledgeReading
from regraph_db.neo4j.search import Neo4jSearch
from regraph_db.neo4j.writing import Neo4jKnowledgeWriting


class Neo4jStore(Neo4jKnowledgeReading, Neo4jKnowledgeWriting, Neo4jSearch, Neo4jCare):
    """``neo4j://HOST`` or ``bolt://HOST``. A write is committed on the server when its method returns."""


__all__ = ["Neo4jStore"]
