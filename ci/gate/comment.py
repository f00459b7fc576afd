#!/usr/bin/env python3
"""Writes a gate's answer into a pull request: one comment for each title, updated by later runs.

usage: comment.py FILE.md TITLE     environment: GITHUB_API_URL, GITHUB_REPOSITORY, GITHUB_TOKEN, PULL (its number)

A token without permission to comment, as in a pull request from a fork, is not an error: the answer is in the job's summary too.
"""

import json
import os
import pathlib
import sys
import urllib.error
import urllib.request


def ask(path, method="GET", **body):
    request = urllib.request.Request(
        f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/issues/{path}",
        method=method,
        data=json.dumps(body).encode() if body else None,
        headers={
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Accept": "application/vnd.github+json",
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def comments(pull):
    page = 1
    while found := ask(f"{pull}/comments?per_page=100&page={page}"):
        yield from found
        page += 1


def main(path, title):
    pull, mark = os.environ["PULL"], f"<!-- facts gate {title.replace('--', '- -')} -->\n"
    body = mark + pathlib.Path(path).read_text(encoding="utf-8")
    try:
        # Anybody can write our mark. Only a bot's comment is edited: its author cannot change the answer afterwards.
        ours = next(
            (
                c["id"]
                for c in comments(pull)
                if c["user"]["type"] == "Bot" and c["body"].replace("\r", "").startswith(mark)
            ),
            None,
        )
        if ours:
            ask(f"comments/{ours}", "PATCH", body=body)
        else:
            ask(f"{pull}/comments", "POST", body=body)
    except OSError as error:  # of urllib too
        refused = isinstance(error, urllib.error.HTTPError) and error.code in (401, 403, 404)
        print(
            f"::notice title=FACTS::This token may not comment on the pull request (HTTP {error.code})."
            if refused
            else f"::warning title=FACTS::The pull request has no comment: {error}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
