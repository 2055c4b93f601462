"""TLS is verified, IPv6 works, and the guard stands between the resolver and the network."""

import asyncio
import socket
import ssl
from pathlib import Path

import pytest

from web2gpt.config.fetch import Fetch
from web2gpt.fetch.addresses import AddressGuard, RefusedAddressError
from web2gpt.fetch.client import Client
from web2gpt.fetch.page import PageFetcher
from web2gpt.fetch.resolver import GuardedResolver, Served
from web2gpt.fetch.urllist import ListedUrl

CERTIFICATE = Path(__file__).with_name("unknown_authority.pem")


def outcome(server, url, **settings):
    """What becomes of ``url``, with real resolving, while ``server`` runs."""

    async def run():
        async with server:
            chosen = Fetch(contact="me@example.org", retries=0, delay=0.0, **settings)
            async with Client(chosen) as client:
                listed = ListedUrl(url.format(port=server.port), "list")
                return (await PageFetcher(client, chosen).fetch(listed)).outcome

    return asyncio.run(run())


def test_a_certificate_of_an_unknown_authority_is_refused(server_class, answer, fetch_all):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE)

    async def run():
        async with server_class({"/page": answer()}, tls=context) as server:
            fetched = await fetch_all(server, ["https://site.test/page"])
            return fetched[0].outcome, server.requests

    found, requests = asyncio.run(run())
    assert found.outcome == "tls"
    assert not requests


@pytest.fixture
def ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return "::1"
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")


def test_ipv6_works(server_class, answer, ipv6):
    server = server_class({"/page": answer()}, address=ipv6)
    found = outcome(server, "http://[::1]:{port}/page", allow_networks=("::1/128",))
    assert found.outcome == "kept"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_is_refused_unless_the_configuration_names_it(server_class, answer, host):
    server = server_class({"/page": answer()})
    url = f"http://{host}:{{port}}/page"
    assert outcome(server, url).outcome == "refused_address"
    assert not server.requests
    assert outcome(server, url, allow_networks=("127.0.0.0/8",)).outcome == "kept"


def test_a_host_is_reached_only_by_the_addresses_that_were_checked(monkeypatch):
    """A name with a public and a private address keeps the public one; with none it is refused."""
    answers = {"mixed.test": ["10.0.0.1", "93.184.215.14"], "inside.test": ["10.0.0.1"]}

    def look_up(host, port, *args, **kwargs):
        return [(socket.AF_INET, 1, 6, "", (address, port)) for address in answers[host]]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    async def run():
        resolver = GuardedResolver(AddressGuard())
        (found,) = await resolver.resolve("mixed.test", 80)
        assert (found["host"], found["port"]) == ("93.184.215.14", 80)
        with pytest.raises(RefusedAddressError):
            await resolver.resolve("inside.test", 80)
        await resolver.close()

    asyncio.run(run())


def test_while_a_folder_is_served_no_other_name_is_known():
    async def run():
        served = Served(frozenset(("a.test",)), "127.0.0.1", 8123)
        resolver = GuardedResolver(AddressGuard(only=("127.0.0.1", 8123)), served)
        (found,) = await resolver.resolve("a.test", 80)
        assert (found["host"], found["port"]) == ("127.0.0.1", 8123)
        with pytest.raises(socket.gaierror):
            await resolver.resolve("localhost", 80)
        await resolver.close()

    asyncio.run(run())
