"""The service: a saved model behind HTTP, which can be taught while it answers.

``served`` is a model as the service sees it, ``store`` the journal of what was taught, ``engine``
both of them together, ``batching`` ranks what many clients send in one go, ``limits``, ``access``,
``errors`` and ``metrics`` are what their names say, ``schemas`` what is sent and answered, ``app``
the routes, ``pages`` the page for a person and ``label_maps`` the map on it, ``server`` the
processes.
FastAPI and uvicorn come with ``pip install 'dxml[serve]'``; ``app`` and ``schemas`` need them.
"""
