"""Runs jobs in two sessions at once, or in one where time is measured."""

import queue
import threading

from server import connect


def run_jobs(jobs, progress, sessions=2):
    """Calls `job(connection)` for each `(job, what, weight)`, and returns what they return, in order.

    The first exception of a job ends all."""
    results = [None] * len(jobs)
    waiting = queue.SimpleQueue()
    for place in range(len(jobs)):
        waiting.put(place)
    failures = []

    def work():
        with connect() as connection:
            while not failures:
                try:
                    place = waiting.get_nowait()
                except queue.Empty:
                    return
                job, what, weight = jobs[place]
                try:
                    results[place] = job(connection)
                except BaseException as error:
                    error.add_note(f"in: {what}")
                    failures.append(error)
                progress.step(what, weight)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results
