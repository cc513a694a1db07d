"""The service: a saved model behind HTTP, which can be taught while it answers.

``served`` wraps a saved model. ``engine`` combines it with the journal of lessons, which is in
``dxml.tagging._journal``. ``batching`` ranks the requests of many clients together. ``schemas`` has
the types of requests and answers, ``app`` the routes, ``pages`` the page for people and ``/docs``,
``label_maps`` the map on the page, ``server`` the processes. ``limits``, ``access``, ``errors`` and
``metrics`` are what their names say.

FastAPI and uvicorn come with ``pip install 'dxml[serve]'``; ``app`` and ``schemas`` need them.
"""
