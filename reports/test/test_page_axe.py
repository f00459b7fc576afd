"""axe finds nothing in the page: wide and narrow, light and dark, folded and unfolded."""

import support
import synthetic
from browser import DESKTOP, EVERYTHING, PHONE, WithPages

try:
    from axe_playwright_python.sync_playwright import Axe
except ImportError:
    Axe = None
# The violations alone: axe's whole answer is long.
DAY = (
    ("good", EVERYTHING),
    ("gate", "#q=stride=gap:8 | d=256"),
    ("matrix", "#q=d=512 %26 pass=bwd"),
)
RUN = "(options) => axe.run(document, options).then((all) => all.violations.map((v) => [v.id, v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200))]))"


class Accessible(WithPages):
    records = {
        **WithPages.records,
        "gate": lambda: synthetic.text(synthetic.gate()),
        "matrix": lambda: synthetic.text(synthetic.grown()),
    }
    missing = WithPages.missing or ("" if Axe else "axe-playwright-python is missing")

    def test_no_violation_of_accessibility(self):
        for name, fragment in DAY + (("good", ""), ("gate", ""), ("matrix", "")) * support.NIGHT:
            page = self.open(name, fragment, bypass_csp=True)
            page.evaluate(Axe().axe_script)
            # By day a phone only for the page that has most, and without what a desktop says of colours.
            looks = [(DESKTOP, "light")] + [(DESKTOP, "dark")] * (support.NIGHT or name != "matrix")
            looks += [(PHONE, "light")] * (support.NIGHT or name == "good")
            looks += [(PHONE, "dark")] * support.NIGHT
            for screen, scheme in looks:
                page.emulate_media(color_scheme=scheme)
                self.show(page, fragment, screen)
                more = {
                    "rules": {"color-contrast": {"enabled": support.NIGHT or screen == DESKTOP}}
                }
                if scheme == "dark":  # which changes colours only
                    more = {"runOnly": ["color-contrast"]}
                found = page.evaluate(RUN, {"resultTypes": ["violations"], **more})
                self.assertEqual(found, [], (name, screen, scheme, fragment))
