"""axe finds nothing in the page: wide and narrow, light and dark, folded and unfolded."""

import support
import synthetic
from browser import DESKTOP, EVERYTHING, PHONE, WithPages

try:
    from axe_playwright_python.sync_playwright import Axe
except ImportError:
    Axe = None
# The violations alone: axe's whole answer is long.
RUN = "(options) => axe.run(document, options).then((all) => all.violations.map((v) => [v.id, v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200))]))"


class Accessible(WithPages):
    records = {
        **WithPages.records,
        "gate": lambda: synthetic.text(synthetic.gate()),
        "matrix": lambda: synthetic.text(synthetic.grown()),
    }
    missing = WithPages.missing or ("" if Axe else "axe-playwright-python is missing")

    def test_no_violation_of_accessibility(self):
        for name, fragment in (("good", ""), ("good", EVERYTHING), ("gate", ""), ("matrix", "")):
            page = self.open(name, fragment, bypass_csp=True)
            page.evaluate(Axe().axe_script)
            # By day on a phone only the page that has most. The scheme changes colours only.
            screens = (DESKTOP, PHONE) if support.NIGHT or fragment else (DESKTOP,)
            dark = [(DESKTOP, "dark")] * bool(support.NIGHT or fragment or name == "gate")
            dark += [(PHONE, "dark")] * support.NIGHT
            for screen, scheme in [*((screen, "light") for screen in screens), *dark]:
                page.emulate_media(color_scheme=scheme)
                self.show(page, fragment, screen)
                more = {"runOnly": ["color-contrast"]} if scheme == "dark" else {}
                found = page.evaluate(RUN, {"resultTypes": ["violations"], **more})
                self.assertEqual(found, [], (name, screen, scheme, fragment))
