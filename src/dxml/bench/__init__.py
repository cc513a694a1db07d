"""The benchmark: experiments are data, runs are stored raw, pages are computed from what is stored.

``spec`` reads an experiment, ``runner`` carries out its runs, each in a process of its own
(``worker``), ``results`` stores them, ``scoring`` and ``summary`` compute numbers from the stored
rankings, and ``report`` makes the page from the summaries and from ``published``, other people's
numbers.
"""
