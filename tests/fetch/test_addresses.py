"""No address that is not public can be contacted, in whatever form it comes."""

import socket

import pytest

from web2gpt.fetch.addresses import AddressGuard, RefusedAddressError

PUBLIC = ["8.8.8.8", "93.184.215.14", "172.32.0.1", "100.128.0.1", "2606:2800:220:1::1",
          "2a00:1450:4001::1"]  # fmt: skip
REFUSED = {
    "this network": "0.0.0.0",
    "private a": "10.0.0.1",
    "carrier": "100.64.0.1",
    "loopback": "127.0.0.1",
    "loopback, far end": "127.255.255.254",
    "link-local": "169.254.1.1",
    "metadata": "169.254.169.254",
    "private b": "172.31.255.255",
    "protocols": "192.0.0.8",
    "documentation": "192.0.2.1",
    "6to4 relay": "192.88.99.1",
    "private c": "192.168.1.1",
    "benchmarks": "198.19.0.1",
    "documentation 2": "198.51.100.1",
    "documentation 3": "203.0.113.1",
    "multicast": "224.0.0.1",
    "reserved": "240.0.0.1",
    "broadcast": "255.255.255.255",
    "v6 unspecified": "::",
    "v6 loopback": "::1",
    "mapped private": "::ffff:10.0.0.1",
    "mapped public": "::ffff:8.8.8.8",
    "compatible": "::127.0.0.1",
    "nat64": "64:ff9b::7f00:1",
    "local nat64": "64:ff9b:1::a00:1",
    "discard": "100::1",
    "teredo": "2001:0:53aa:64c::1",
    "v6 documentation": "2001:db8::1",
    "6to4": "2002:7f00:1::1",
    "v6 documentation 2": "3fff::1",
    "segment routing": "5f00::1",
    "unique local": "fd00::1",
    "v6 link-local": "fe80::1",
    "scoped": "fe80::1%eth0",
    "site local": "fec0::1",
    "v6 multicast": "ff02::1",
    "decimal": "2130706433",
    "short": "127.1",
    "no address": "localhost",
}


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed(address):
    assert AddressGuard().allows(address, 80)


@pytest.mark.parametrize("address", REFUSED.values(), ids=REFUSED.keys())
def test_every_other_form_is_refused(address):
    with pytest.raises(RefusedAddressError):
        AddressGuard().check(address, 80)


def test_a_network_named_in_the_configuration_is_allowed_and_no_other():
    guard = AddressGuard(["10.1.0.0/16", "fd00::/8"])
    assert guard.allows("10.1.2.3", 80) and guard.allows("fd00::7", 80)
    assert not guard.allows("10.2.0.1", 80)
    assert not guard.allows("127.0.0.1", 80)


def test_with_a_served_folder_nothing_but_its_server_is_allowed():
    guard = AddressGuard(only=("127.0.0.1", 8123))
    assert guard.allows("127.0.0.1", 8123)
    assert not guard.allows("127.0.0.1", 22)
    assert not guard.allows("8.8.8.8", 80)


def test_no_socket_is_opened_to_a_refused_address():
    info = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 80))
    with pytest.raises(RefusedAddressError):
        AddressGuard().open_socket(info)
