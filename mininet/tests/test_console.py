# SPDX-License-Identifier: Apache-2.0
"""The web console in a real Chromium, on a running data centre with requests."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from frontage_testbed.chromium import browser, is_installed
from frontage_testbed.datacentre.livenetwork import LiveNetwork, live_network
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.programs import REPOSITORY
from testbeds import deployment, needs_root

AXE = REPOSITORY / "console" / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = [
    needs_root,
    pytest.mark.slow(seconds=45, together=True),
    pytest.mark.skipif(not is_installed(), reason="needs Chromium: install the package chromium"),
    pytest.mark.timeout(400),
]

SETTINGS = Settings(servers=4, policies=("hash",), load=0.5)
VIP = "web"
SERVER = "s1-web"
LIMIT = 60_000.0
"""Milliseconds for changes to appear."""
VIEWS = ("overview", "vips", f"vips/{VIP}", "flow", "packet", "sites", "handoff", "history")

expect.set_options(timeout=LIMIT)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveNetwork]:
    with live_network(SETTINGS, deployment(SETTINGS), tmp_path_factory.mktemp("console")) as found:
        yield found


def opened(context: BrowserContext, link: str) -> Page:
    """Open the console, and fail the test if a script fails or the content security policy blocks something."""
    page = context.pages[0]
    page.set_default_timeout(LIMIT)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if "Content Security Policy" in message.text else None)
    page.goto(link)
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()
    assert errors == []
    return page


def show(page: Page, view: str) -> None:
    page.evaluate("view => { location.hash = `#/${view}` }", view)


def row(page: Page, server: str) -> Callable[[int], str]:
    """Return a function that returns the text of a column of a server's row."""
    cells = page.locator(f"tr[data-server='{server}'] > *")
    return lambda column: cells.nth(column).inner_text()


def test_operator_drains_a_server_changes_the_policy_and_undoes_both(network: LiveNetwork) -> None:
    with browser(1400, 900) as context:
        page = opened(context, network.link)
        assert "token" not in page.url
        # Watch: traffic, and the loads that servers report.
        expect(page.get_by_role("row", name=VIP).first).to_contain_text("bit/s")
        expect(page.get_by_role("status")).to_contain_text("events: live")

        # Drain: the server gets no new connections, and its flows end.
        show(page, f"vips/{VIP}")
        page.get_by_role("button", name=f"Drain {SERVER}").click()
        expect(page.locator(".message")).to_contain_text(f"server {SERVER} is draining: installed in")
        expect(page.locator(f"tr[data-server='{SERVER}']")).to_contain_text("draining")
        cell = row(page, SERVER)
        until(lambda: (cell(2), cell(6)) == ("0", "0.0\u202f%"))
        page.get_by_role("button", name=f"Activate {SERVER}").click()
        expect(page.locator(f"tr[data-server='{SERVER}']")).to_contain_text("active")
        until(lambda: cell(6)[0] in "123456789")

        # The policy: the switch has it when the button's message appears.
        page.get_by_role("combobox", name="Policy").select_option("cclb4")
        began = time.monotonic()
        page.get_by_role("button", name="Apply to new connections").click()
        expect(page.locator(".message")).to_contain_text("installed in")
        expect(page.locator(".stats")).to_contain_text("cclb4")
        print(f"the new policy was visible after {time.monotonic() - began:.2f} s")
        until(lambda: cell(5)[0].isdigit())

        # Undo, and look at the journal.
        show(page, "history")
        entry = page.locator(".changes > li").filter(has_text="set-policy").first
        entry.get_by_role("button", name="set-policy").click()
        expect(entry).to_contain_text("policy: hash → cclb4")
        entry.get_by_role("button", name="Undo").click()
        page.get_by_role("dialog").get_by_role("button", name="Undo").click()
        expect(page.locator(".changes > li").first).to_contain_text("undo")
        show(page, f"vips/{VIP}")
        expect(page.locator(".stats")).to_contain_text("hash")


COUNT_SAMPLES = """name => {
    const original = window.fetch;
    Object.assign(window, {samples: 0, isInstalled: false, samplesUntilSeen: null});
    window.fetch = async (...request) => {
        const answer = await original(...request);
        if (request[1]?.method === "PATCH") window.isInstalled = true;
        else if (window.isInstalled && /samples$/.test(String(request[0]))) window.samples += 1;
        return answer;
    };
    new MutationObserver(() => {
        const isSeen = document.querySelector(".stats").textContent.includes(name);
        if (window.isInstalled && isSeen) window.samplesUntilSeen ??= window.samples;
    }).observe(document.body, {subtree: true, childList: true, characterData: true});
}"""
"""Counts the samples that the page reads from the answer to a change until it shows a text."""


def test_new_policy_is_seen_in_the_next_sample_and_spreads_new_connections(network: LiveNetwork) -> None:
    with browser(1400, 900) as context:
        page = opened(context, network.link)
        show(page, f"vips/{VIP}")
        expect(page.locator(".stats")).to_contain_text("hash")
        page.evaluate(COUNT_SAMPLES, "cheetah-rr")
        page.get_by_role("combobox", name="Policy").select_option("cheetah-rr")
        page.get_by_role("button", name="Apply to new connections").click()
        expect(page.locator(".message")).to_contain_text("installed in")
        # Samples arrive about every second, and one may have been under way: this is within 2 s without load.
        # The page's security policy forbids Page.wait_for_function, which evaluates a text.
        until(lambda: page.evaluate("window.samplesUntilSeen") is not None)
        assert page.evaluate("window.samplesUntilSeen") <= 2
        # The switch assigns connections in turn since the change: each server gets as many, also in a read between two of them.
        # The page's sample may be from before the change, when the switch still hashed.
        changed = time.time()
        until(lambda: vip_sample(network)["time"] > changed)
        before = new_flows(network)
        until(lambda: sum(new_flows(network).values()) - sum(before.values()) >= 40)
        more = [count - before[name] for name, count in new_flows(network).items()]
        assert max(more) - min(more) <= 2, more
        page.get_by_role("combobox", name="Policy").select_option("hash")
        page.get_by_role("button", name="Apply to new connections").click()
        expect(page.locator(".stats")).to_contain_text("hash")


def vip_sample(network: LiveNetwork) -> dict[str, Any]:
    """Return the API's sample of the VIP; ``time`` is when its reading began."""
    request = urllib.request.Request(
        f"http://{network.address}/v1/samples/vips/{VIP}", headers={"Authorization": f"Bearer {network.token}"}
    )
    with urllib.request.urlopen(request, timeout=LIMIT / 1000) as answer:
        return cast(dict[str, Any], json.load(answer))


def new_flows(network: LiveNetwork) -> dict[str, int]:
    """Return how many connections the switch has assigned to each server."""
    return {server["name"]: server["new_flows"] for server in vip_sample(network)["servers"]}


def test_admin_plans_and_installs_an_edited_configuration(network: LiveNetwork) -> None:
    with browser(1400, 900) as context:
        page = opened(context, network.link)
        show(page, "history")
        page.get_by_role("button", name="Edit the configuration").click()
        editor = page.get_by_role("textbox", name="Configuration")
        text = editor.input_value()
        editor.fill(text + "\nfallback: { idle_timeout: 77 }\n")
        page.get_by_role("button", name="Plan", exact=True).click()
        expect(page.locator(".diff")).to_contain_text("idle_timeout: 120 → 77")
        page.get_by_role("button", name="Install this plan").click()
        expect(page.locator(".changes > li").first).to_contain_text("apply")
        expect(page.locator(".changes > li").first).to_contain_text("installed")
        # An invalid configuration has its place in the message, and changes nothing.
        page.get_by_role("button", name="Edit the configuration").click()
        editor.fill(editor.input_value().replace("idle_timeout: 77", "idle_timeout: never"))
        page.get_by_role("button", name="Plan", exact=True).click()
        expect(page.locator(".message")).to_contain_text("fallback.idle_timeout")
        page.get_by_role("button", name="Start again").click()
        page.locator(".changes > li").first.get_by_role("button", name="Undo").click()
        page.get_by_role("dialog").get_by_role("button", name="Undo").click()
        expect(page.locator(".changes > li").first).to_contain_text("undo")
        page.get_by_role("button", name="Start again").click()
        expect(editor).to_have_value(text)


def test_operator_follows_a_packet_and_finds_its_server(network: LiveNetwork) -> None:
    with browser(1400, 900) as context:
        page = opened(context, network.link)
        show(page, "packet")
        page.get_by_label("To the VIP").select_option(VIP)
        happened = page.get_by_role("region", name="What happened")
        # Requests pause between two rounds.
        while not happened.is_visible():
            page.get_by_role("button", name="Follow", exact=True).click()
            happened.or_(page.get_by_text("No such packet came in time")).wait_for()
        expect(happened).to_contain_text("transmitted")
        expect(page.get_by_role("region", name="1. ingress")).to_contain_text("vip.vip4")
        expect(page.get_by_role("region", name="1. ingress")).to_contain_text("203.0.113.10")

        # A segment to a port without a service is dropped for a named reason.
        page.get_by_role("tab", name="Inject a segment").click()
        page.get_by_label("Client", exact=True).fill("127.0.0.1")
        page.get_by_role("button", name="Inject", exact=True).click()
        expect(page.get_by_role("region", name="What happened")).to_contain_text("martian-source")

        show(page, "flow")
        page.get_by_label("Address, client:port").fill("198.51.100.7:40000")
        page.get_by_role("combobox", name="VIP", exact=True).select_option(VIP)
        page.get_by_role("button", name="Explain").click()
        expect(page.get_by_role("region", name="This is a client without a cookie")).to_contain_text("belongs to SID")


def test_viewer_sees_no_buttons_that_it_may_not_use(network: LiveNetwork) -> None:
    with browser(1400, 900) as context:
        page = opened(context, network.link.replace(network.token, network.viewer))
        show(page, f"vips/{VIP}")
        expect(page.locator(f"tr[data-server='{SERVER}']")).to_be_visible()
        assert page.get_by_role("button", name="Drain").count() == 0
        assert page.get_by_role("form", name="Change the policy").count() == 0
        show(page, "packet")
        expect(page.get_by_role("main")).to_contain_text("it needs the role operator")


def test_log_in_with_a_wrong_token_says_why(network: LiveNetwork) -> None:
    with browser(400, 800) as context:
        page = context.pages[0]
        page.goto(network.link.split("#")[0])
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_contain_text("frontage token --help")
        page.get_by_label("Token").fill(network.token)
        page.keyboard.press("Enter")
        expect(page.get_by_role("navigation", name="Views")).to_be_visible()
        page.reload()
        expect(page.get_by_role("navigation", name="Views")).to_be_visible()
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Token")).to_be_visible()


@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_views_are_accessible_and_fit(network: LiveNetwork, width: int, dark: bool) -> None:
    with browser(width, 900, dark=dark) as context:
        page = opened(context, network.link)
        for view in VIEWS:
            show(page, view)
            expect(page.locator("main .view")).to_be_visible()
            page.wait_for_timeout(700)
            assert violations(page) == [], view
            assert page.evaluate("document.documentElement.scrollWidth") <= width, view


def violations(page: Page) -> list[list[str]]:
    """Return the names of the rules of axe that the page violates, each with an element."""
    page.evaluate(AXE.read_text())
    found: list[list[str]] = page.evaluate("axe.run().then(found => found.violations.map(one => [one.id, one.nodes[0].html]))")
    return found


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT / 1000
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
