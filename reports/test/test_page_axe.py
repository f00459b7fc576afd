"""axe finds nothing in the page: wide and narrow, light and dark, folded and unfolded."""
import unittest

import synthetic
from browser import DESKTOP, PHONE, WithPages
from test_page_glance import EVERYTHING, grown

try:
    from axe_playwright_python.sync_playwright import Axe
except ImportError:
    Axe = None


@unittest.skipIf(Axe is None, "no browser test: axe-playwright-python is missing")
class Accessible(WithPages):
    records = {**WithPages.records, "gate": lambda: synthetic.text(synthetic.gate()), "matrix": lambda: synthetic.text(grown())}

    def test_no_violation_of_accessibility(self):
        for name, fragment in (("good", ""), ("good", EVERYTHING), ("gate", ""), ("matrix", "")):
            page = self.open(name, fragment, bypass_csp=True)
            for screen, scheme in ((DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light"), (PHONE, "dark")):
                page.emulate_media(color_scheme=scheme)
                self.show(page, fragment, screen)
                # The scheme changes colours only.
                found = Axe().run(page, options={"resultTypes": ["violations"], **({"runOnly": ["color-contrast"]} if scheme == "dark" else {})}).response["violations"]
                self.assertEqual([(v["id"], [n["html"][:200] for n in v["nodes"][:3]]) for v in found], [], (name, screen, scheme, fragment))


if __name__ == "__main__":
    unittest.main()
