"""Addresses that requests may be sent to."""

import socket

import httpx2
import pytest

from annotruth.serve.outgoing import (
    CheckedTransport,
    PrivateAddressError,
    allowed_addresses,
    is_public,
)
from annotruth.serve.worker.deliver import SendingError, send


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "0.0.0.0"),
        *(
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "fe80::1%eth0",
            "fc00::1",
            "ff02::1",
        ),
        *("::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::"),
        *(
            "64:ff9b:1::1",
            "64:ff9b:1:ffff::a00:1",
            "fec0::1",
            "feff::1",
            "::127.0.0.1",
            "::8.8.8.8",
        ),
        *("::ffff:0:127.0.0.1", "3fff::1", "5f00::1", "4000::1", "192.0.0.8", "192.88.99.1"),
    ],
)
def test_private_addresses(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34"])
def test_public_addresses(address):
    assert is_public(address)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1"])
def test_names_of_this_machine(host):
    with pytest.raises(PrivateAddressError, match="is a private address"):
        allowed_addresses(host, 80, allow_private=False)
    assert allowed_addresses(host, 80, allow_private=True)[0] in ("127.0.0.1", "::1")


def test_a_name_is_looked_up_once_and_the_checked_address_is_used(monkeypatch):
    looked_up, connected = [], []

    def look_up(host, port, *args, **options):
        looked_up.append(host)
        address = "93.184.216.34" if len(looked_up) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    def connect(address, *args, **options):
        connected.append(address[0])
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(SendingError, match="no response"):
        send("http://example.org/hook", b"", {})
    assert (looked_up, connected) == (["example.org"], ["93.184.216.34"])
    with pytest.raises(SendingError, match="is a private address"):  # now it is another one
        send("http://example.org/hook", b"", {})
    assert connected == ["93.184.216.34"]
    looked_up.clear()
    transport = CheckedTransport(allow_private=False)
    sent = []
    monkeypatch.setattr(
        transport._inner,
        "handle_request",
        lambda request: sent.append(request.url.host) or httpx2.Response(302),
    )
    with httpx2.Client(transport=transport, follow_redirects=True) as client:
        assert client.get("http://example.org/api").status_code == 302
        with pytest.raises(PrivateAddressError):
            client.get("http://example.org/api")
    assert sent == ["93.184.216.34"]


def test_redirects_to_private_addresses_are_checked_too(monkeypatch):
    transport = CheckedTransport(allow_private=False)
    monkeypatch.setattr(
        transport._inner,
        "handle_request",
        lambda request: httpx2.Response(302, headers={"location": "http://[::1]/secret"}),
    )
    with (
        httpx2.Client(transport=transport, follow_redirects=True) as client,
        pytest.raises(PrivateAddressError),
    ):
        client.get("http://93.184.216.34/api")
