"""JUnit: what CI servers read. Reports and comparisons write it with these functions."""

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def escape(text):
    """As xml.sax.saxutils has it, which takes longer to import than most commands run."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def quoteattr(text):
    text = escape(text).replace('"', "&quot;").replace("\n", "&#10;")
    return '"' + text.replace("\r", "&#13;").replace("\t", "&#9;") + '"'


def case(classname, name, seconds, tag, message="", kind="", details=""):
    """One test. `tag`: failure, error, skipped or "" (passed); `kind`: of a failure or an error."""
    details = escape(details)
    body = f"<system-out>{details}</system-out>" if details else ""
    if tag == "skipped" or tag and not kind:
        body = f"<{tag} message={quoteattr(message)}/>{body}"
    elif tag:
        body = f"<{tag} message={quoteattr(message)} type={quoteattr(kind)}>{details}</{tag}>"
    head = f'<testcase classname={quoteattr(classname)} name={quoteattr(name)} time="{seconds:.3f}"'
    return f"{head}>{body}</testcase>\n" if body else head + "/>\n"


def suite(name, seconds, counts, properties, cases):
    """`counts` {attribute: number}: tests, failures ...; `properties` {name: value}; `cases`: the text of its tests."""
    said = "".join(f' {word}="{number}"' for word, number in counts.items())
    values = "".join(
        f"<property name={quoteattr(word)} value={quoteattr(str(value))}/>"
        for word, value in properties.items()
    )
    values = f"<properties>{values}</properties>\n" if values else ""
    return f'<testsuite name={quoteattr(name)} time="{seconds:.3f}"{said}>\n{values}{cases}</testsuite>\n'
