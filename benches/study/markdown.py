"""Tables of the page."""


def mark(passed, better=False):
    return "better" if better else {True: "pass", False: "**FAIL**", None: ""}[passed]


def table(header, rows):
    lines = [" | ".join(header), " | ".join("---" for _ in header)]
    lines += [" | ".join(str(field) for field in row) for row in rows]
    return "\n".join(lines) + "\n\n"
