"""The knowledge service: records, errors, settings, the ``GraphStore`` contract and its stores."""
